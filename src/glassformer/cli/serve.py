"""`glassformer serve MODEL…`."""

from pathlib import Path
from typing import Annotated

import typer

from glassformer.cli.options import Engine, Precision


def serve(
    model: Annotated[
        list[str], typer.Argument(help="Model directories or built-in models, of any task; name=folder gives a name.")
    ],
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 lets other machines in.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = 8000,
    api_key: Annotated[
        list[str] | None,
        typer.Option(envvar="GLASSFORMER_API_KEY", help="Who asks must know one of these; else everybody may."),
    ] = None,
    cors: Annotated[
        list[str] | None, typer.Option(help="Web pages of this origin (https://example.org) may ask.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name by which this machine is asked, besides localhost.")
    ] = None,
    languages: Annotated[
        list[str] | None, typer.Option(help="name=en,de says what a translator translates, if it does not say so.")
    ] = None,
    runs: Annotated[
        list[Path] | None, typer.Option(help="A folder with training runs: the page shows their curves.")
    ] = None,
    batch: Annotated[int, typer.Option(help="Texts that run together at most.")] = 64,
    wait_ms: Annotated[float, typer.Option(help="Milliseconds that a batch waits for company.")] = 4.0,
    rows: Annotated[int, typer.Option(help="Completions that are made at once.")] = 64,
    queue: Annotated[int, typer.Option(help="Texts that may wait; then clients are told to come again.")] = 1024,
    max_body: Annotated[int, typer.Option(help="Bytes of a request.")] = 32_000_000,
    max_tokens: Annotated[int, typer.Option(help="Tokens of a prompt with its answer.")] = 8192,
    max_audio: Annotated[float, typer.Option(help="Seconds of a recording.")] = 3600.0,
    timeout: Annotated[float, typer.Option(help="Seconds until a request is given up.")] = 600.0,
    engine: Engine = "auto",
    precision: Precision = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", help="No line for each request.")] = False,
) -> None:
    """Give models to others: an HTTP interface that clients of OpenAI and LibreTranslate know.

    glassformer serve en-de runs/shakespeare --port 8000
    """
    from glassformer.errors import require
    from glassformer.serve.app import Access, create_app
    from glassformer.serve.limits import Limits
    from glassformer.serve.models import load_models, name_languages
    from glassformer.serve.run import address, names_of, open_socket, run
    from glassformer.serve.runs import check_folders

    limits = Limits(
        batch=batch,
        wait_ms=wait_ms,
        rows=rows,
        queue=queue,
        body=max_body,
        tokens=max_tokens,
        audio=max_audio,
        seconds=timeout,
    )
    require(all(api_key or []), "An API key is empty.", "Give one with at least one character.")
    check_folders(runs or [])
    sock = open_socket(host, port)
    here = names_of(host)
    models = load_models(model, engine, precision)  # type: ignore[arg-type]
    name_languages(models, languages or [])
    access = Access(keys=api_key or [], hosts=[*here, *(allow_host or [])], origins=cors or [])

    def ready() -> None:
        for served in models.values():
            typer.echo(f"{served.name}: {served.task}{f' ({served.title})' if served.title else ''}", err=True)
        if "*" in here and not api_key:
            typer.echo("Everybody who can reach this machine may ask; --api-key changes that.", err=True)
        typer.echo(f"Ready at {address(sock)}", err=True)

    run(create_app(models, limits, access, runs or []), sock, timeout, ready, quiet)
