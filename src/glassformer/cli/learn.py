"""`glassformer learn`: the lesson in the terminal, or as a page."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def learn(
    step: Annotated[str | None, typer.Argument(help="Only this step: its number or name.")] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List the steps.")] = False,
    data: Annotated[
        Path | None, typer.Option(help="Your own text, one sentence a line, instead of the examples.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the lesson as an offline web page into this folder.")] = None,
) -> None:
    """Learn how a Transformer works, in 26 short steps from counting words on; every number is computed live."""
    from glassformer.errors import require
    from glassformer.learn.find import find_step, list_steps
    from glassformer.learn.sentences import read_sentences
    from glassformer.learn.site import write_site
    from glassformer.learn.steps import STEPS
    from glassformer.learn.terminal import make_console
    from glassformer.learn.walk import print_steps, walk

    require(
        out is None or step is None, "--out writes the whole lesson, but a step is given.", "Leave one of them out."
    )
    idle = show_list and (data is not None or out is not None)
    require(not idle, "--list only lists: --data and --out have no effect.", "Leave them out.")
    chosen = STEPS if step is None else (find_step(step),)
    if show_list:
        typer.echo(list_steps(chosen))
        return
    sentences, note = read_sentences(data) if data is not None else (None, "")
    if note:
        typer.echo(note, err=True)
    if out is not None:
        typer.echo(f"Open {write_site(out, sentences)} in a browser.", err=True)
        return
    # Without a terminal, as wide as most are: a pipe has no width of its own.
    console = make_console(None if sys.stdout.isatty() else 80)
    if sys.stdin.isatty() and sys.stdout.isatty():
        walk(console, chosen, sentences, input)
    else:
        print_steps(console, chosen, sentences)
