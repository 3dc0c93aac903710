"""`glassformer fill MODEL [TEXT…]`."""

import dataclasses
import json
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.options import Model

if TYPE_CHECKING:
    from glassformer.tasks.filler import Filled, Filler


def fill(
    model: Model,
    text: Annotated[
        list[str] | None, typer.Argument(help="Texts with ___ for each blank; without them, stdin.")
    ] = None,
    top: Annotated[int, typer.Option(help="So many words for each blank.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a text: words and probabilities.")] = False,
) -> None:
    """Fill the blanks of a text with the likeliest words.

    glassformer fill runs/book "The ___ ran down the ___."
    """
    from glassformer.api import load_filler
    from glassformer.cli.stdin import stdin_lines

    filler = load_filler(model)
    for texts in [text] if text else stdin_lines():
        answers = filler.fill(texts, top) if text else _fill_lines(filler, texts, top)
        for given, filled in zip(texts, answers, strict=True):
            if as_json:
                typer.echo(json.dumps({"given": given, **dataclasses.asdict(filled)}, ensure_ascii=False))
            else:
                typer.echo("\n".join([filled.text, *_table(filled)]))


def _fill_lines(filler: "Filler", lines: list[str], top: int) -> "list[Filled]":
    """Each line filled; one without a blank stays as it is."""
    from glassformer.tasks.filler import BLANK, Filled

    has_blank = [BLANK.search(line) is not None for line in lines]
    answers = iter(filler.fill([line for line, has in zip(lines, has_blank, strict=True) if has], top))
    return [next(answers) if has else Filled(line, ()) for line, has in zip(lines, has_blank, strict=True)]


def _table(filled: "Filled") -> list[str]:
    """The best words, one line for each blank."""
    rows = [
        [f"{guess.word} {guess.p:.0%}" if guess.p >= 0.01 else f"{guess.word} <1%" for guess in guesses]
        for guesses in filled.blanks
    ]
    return [f"  {number}. {', '.join(row)}" for number, row in enumerate(rows, start=1)]
