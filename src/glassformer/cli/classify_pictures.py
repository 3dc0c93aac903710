"""`glassformer classify` for pictures: files, folders and arrays; one that cannot be read does not stop the others."""

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from glassformer.cli.stdin import stdin_lines

if TYPE_CHECKING:
    from glassformer.tasks.classifier import Answer, Classifier

AT_ONCE = 256  # pictures unpacked at a time


def run_classify_pictures(
    classifier: "Classifier",
    names: list[str] | None,
    pixels: str | None,
    as_line: "Callable[[Answer], str]",
    as_json: "Callable[[str, Answer], str] | None",
) -> None:
    """Answer to each picture with its name; exit 2 in the end if some could not be read."""
    from glassformer.data.picture_find import find_pictures
    from glassformer.data.pictures import read_some
    from glassformer.tasks.picture_settings import use_of

    classifier = at_pixels(classifier, pixels)
    source, use = use_of(classifier.loaded)
    n_bad = 0
    for chunk in [names] if names else stdin_lines():
        files = find_pictures([Path(name) for name in _without_empty(chunk)], labelled=False)
        for part in read_some(files, use.frame(source), use.span, AT_ONCE):
            for place, answer in zip(part.places, classifier.answer(classifier.pictures(part.pixels)), strict=True):
                print(as_json(place, answer) if as_json else f"{place}\t{as_line(answer)}")
            sys.stdout.flush()
            n_bad += len(part.bad)
            for reason in part.bad:
                typer.echo(f"{reason}.", err=True)
    if n_bad:
        raise typer.Exit(2)


def at_pixels(classifier: "Classifier", pixels: str | None) -> "Classifier":
    """The classifier for pictures of a size such as 56x56, or 56 for squares."""
    from glassformer.errors import UserError

    if pixels is None:
        return classifier
    found = re.fullmatch(r"(\d{1,5})(?:[x×](\d{1,5}))?", pixels)
    if found is None:
        raise UserError(f"--pixels is {pixels!r}.", "Write height and width, such as 56x56.")
    height = int(found[1])
    return classifier.at_size(height, int(found[2] or height))


def _without_empty(names: Iterable[str]) -> list[str]:
    return [name for name in names if name.strip()]
