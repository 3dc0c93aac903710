"""`glassformer look MODEL INPUT [INPUT2]`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.cli.options import Model

if TYPE_CHECKING:
    from glassformer.look.scene import Scene
    from glassformer.look.subject import LookOptions

KINDS = (".html", ".png", ".svg", ".npz")


def look(
    model: Model,
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="INPUT",
            help="What to give the model: a text, or the file that it reads: sound, picture, series (file.npz:3).",
        ),
    ] = None,
    other: Annotated[str | None, typer.Argument(metavar="[INPUT2]", help="A second input to compare with.")] = None,
    out: Annotated[
        Path, typer.Option(help="page.html, map.png or map.svg for attention, trace.npz for every tensor.")
    ] = Path("look.html"),
    attention: Annotated[
        str, typer.Option(help="For a map: cross, decoder or encoder; auto is what the model has.")
    ] = "auto",
    layer: Annotated[
        int | None, typer.Option(help="For a map: this layer, from 0; without it, all on average.")
    ] = None,
    head: Annotated[int | None, typer.Option(help="For a map: this head, from 0; without it, all on average.")] = None,
    rolled: Annotated[bool, typer.Option("--rollout", help="For a map: all layers multiplied out.")] = False,
    answer: Annotated[str | None, typer.Option(help="Make the model say this, instead of its own answer.")] = None,
    beam: Annotated[int, typer.Option(help="Hypotheses that the search of a translation or transcript holds.")] = 4,
    max_tokens: Annotated[
        int | None, typer.Option(help="Tokens of the answer at most; a completion shows 12 if not told.")
    ] = None,
    ablate: Annotated[
        bool | None, typer.Option(help="Try the answer without each head, one by one; if not told, where it is quick.")
    ] = None,
    training: Annotated[
        bool, typer.Option("--training", help="Show how a run was trained, and with an input how attention formed.")
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Serve the page on this machine, for inputs typed there.")
    ] = False,
    port: Annotated[int, typer.Option(help="With --live, where; 0 takes a free one.")] = 8765,
    as_json: Annotated[bool, typer.Option("--json", help="Print what the page shows, and write no file.")] = False,
) -> None:
    """See every step of what a model does with an input: one offline page, a picture, or the numbers.

    glassformer look en-de "Where is the station?" --out page.html
    """
    from glassformer.errors import UserError, require
    from glassformer.look.scene import look_at
    from glassformer.look.subject import LookOptions
    from glassformer.tasks.built_in import find_model
    from glassformer.tasks.model_dir import load_model

    kind = out.suffix.lower()
    require(kind in KINDS, f"{out} is no kind of file that look writes.", f"End its name in {', '.join(KINDS)}.")
    options = LookOptions(beam=beam, max_tokens=max_tokens, answer=answer)
    idle = [name for name, given in (("--layer", layer), ("--head", head)) if given is not None]
    idle += ["--rollout"] if rolled else []
    idle += ["--attention"] if attention != "auto" else []
    is_map = kind in (".png", ".svg") and not as_json
    require(is_map or not idle, f"{', '.join(idle)} chooses a map.", "Give --out map.png or map.svg.")
    is_page = kind == ".html" or as_json
    require(is_page or other is None, "Two inputs are compared on a page.", "Give --out page.html, or one input.")
    alone = not (live and (training or as_json or other is not None))
    require(alone, "--live serves one page and goes with no --training, --json or second input.", "Leave them out.")
    if training:
        require(
            kind == ".html" and other is None, "--training is a page of one input at most.", "Give --out page.html."
        )
        _write_training(model, out, text, options, as_json)
        return
    if live:
        _serve(model, text, options, ablate, port)
        return
    if text is None:
        raise UserError("There is no input to look at.", "Give one, or --training for the run itself.")
    loaded = load_model(find_model(model))
    scenes = [look_at(loaded, given, options) for given in (text, other) if given is not None]
    if as_json:
        print(json.dumps(_as_json(model, loaded.task, scenes, ablate), ensure_ascii=False))
        return
    if is_map:
        _write_map(scenes[0], out, attention, layer, head, rolled)
    elif kind == ".npz":
        from glassformer.look.packing import write_npz

        write_npz(out, scenes[0].seen, {"source": scenes[0].subject.source, "target": scenes[0].subject.target})
    else:
        from glassformer.look.page import write_page

        write_page(out, Path(model).name, loaded.task, scenes, ablate)
    for scene in scenes:
        typer.echo(f"{scene.subject.text} → {scene.subject.answer}", err=True)
    typer.echo(f"Open {out} in a browser." if kind == ".html" else f"Written: {out}", err=True)


def _write_training(model: str, out: Path, text: str | None, options: "LookOptions", as_json: bool) -> None:
    from glassformer.look.training import training_data, write_training_page
    from glassformer.tasks.built_in import find_model

    run = find_model(model)
    if as_json:
        print(json.dumps(training_data(run, text, options), ensure_ascii=False))
        return
    write_training_page(out, run, text, options)
    typer.echo(f"Open {out} in a browser.", err=True)


def _serve(model: str, text: str | None, options: "LookOptions", ablate: bool | None, port: int) -> None:
    from glassformer.errors import require
    from glassformer.look.live import answer_query, make_server
    from glassformer.tasks.built_in import find_model
    from glassformer.tasks.model_dir import load_model

    loaded = load_model(find_model(model))
    reads_text = loaded.task != "transcribe" and loaded.about.get("input", "text") == "text"
    require(text is not None or reads_text, f"{model} reads files, not text.", "Give one as INPUT to begin with.")
    example = text or {"fill": "The ___ is here.", "complete": "Once"}.get(loaded.task, "Where is the station?")

    def answer(texts: list[str]) -> tuple[int, str]:
        return answer_query(loaded, Path(model).name, options, ablate, texts, example)

    with make_server(port, answer) as server:
        typer.echo(f"Open http://127.0.0.1:{server.server_port}/ in a browser; Ctrl-C ends it.", err=True)
        server.serve_forever()


def _as_json(model: str, task: str, scenes: "list[Scene]", ablate: bool | None) -> dict[str, Any]:
    inputs = []
    for scene in scenes:
        names = [name for name in scene.seen.names if name.endswith(".weights")]
        weights = {name.removesuffix(".weights"): scene.seen[name][0].tolist() for name in names}
        points = {name: list(scene.seen[name].shape) for name in scene.seen.names}
        inputs.append(scene.data(ablate) | {"attention": weights, "points": points})
    return {"model": model, "task": task, "inputs": inputs}


def _write_map(scene: "Scene", out: Path, attention: str, layer: int | None, head: int | None, rolled: bool) -> None:
    from glassformer.look.choose_map import choose_map
    from glassformer.look.picture import draw_map

    chosen = choose_map(scene, attention, layer, head, rolled)
    draw_map(chosen.weights, chosen.rows, chosen.columns, chosen.title, out)
