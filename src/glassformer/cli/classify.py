"""`glassformer classify MODEL [TEXT…]`."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.cli.stdin import stdin_lines

if TYPE_CHECKING:
    from glassformer.tasks.classifier import Answer, Classifier


def classify(
    model: Annotated[str, typer.Argument(help="A model directory.")],
    text: Annotated[
        list[str] | None,
        typer.Argument(
            help="What to classify, a tab between the texts of a pair; files for a model of vectors; pictures or "
            "folders of them for a model of pictures; without it, each line of stdin."
        ),
    ] = None,
    top: Annotated[int, typer.Option(help="Show so many labels with their probabilities; 1 is the best alone.")] = 1,
    pixels: Annotated[
        str | None, typer.Option(help="Read pictures in this size, such as 56x56, not in that of the training.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a line: label and all probabilities.")
    ] = False,
) -> None:
    """Say the label of each text and how likely it is: one line out for each line in; before it a picture's name.

    glassformer classify runs/mood "I liked it a lot"
    """
    from glassformer.api import load_classifier
    from glassformer.errors import require

    require(top >= 1, f"--top is {top}.", "It must be 1 or more.")
    classifier = load_classifier(model)
    if classifier.input == "pictures":
        from glassformer.cli.classify_pictures import run_classify_pictures

        run_classify_pictures(classifier, text, pixels, lambda a: _as_line(a, top), _as_json if as_json else None)
        return
    require(pixels is None, f"--pixels is for pictures, but {model} reads {classifier.input}.", "Leave it out.")
    for chunk in [text] if text else stdin_lines():
        names, inputs = _read(chunk, classifier, are_files=bool(text))
        for given, answer in zip(names, classifier.classify(inputs), strict=True):
            print(_as_json(given, answer) if as_json else _as_line(answer, top))
        sys.stdout.flush()


def _read(chunk: list[str], classifier: "Classifier", are_files: bool) -> tuple[list[str], list[Any]]:
    """What each answer is about, and what the model reads."""
    if classifier.input == "text":
        return chunk, chunk if classifier.n_texts == 1 else [line.split("\t") for line in chunk]
    from glassformer.data.series import parse_series, read_series

    if are_files:
        series = read_series([Path(name) for name in chunk])
        return series.places, list(series.values)
    return chunk, [parse_series(line, i + 1) for i, line in enumerate(chunk)]


def _as_line(answer: "Answer", top: int) -> str:
    if isinstance(answer.label, float):
        return f"{answer.label:.4g}"
    shown = list(answer.probabilities.items())[:top]
    if isinstance(answer.label, tuple) and top == 1:
        shown = [(name, answer.probabilities[name]) for name in answer.label]
    return "\t".join(f"{name}\t{p:.4f}" for name, p in shown)


def _as_json(given: str, answer: "Answer") -> str:
    said = {"input": given, "label": answer.label, "probabilities": dict(answer.probabilities)}
    return json.dumps(said, ensure_ascii=False)
