"""How a person sees the evaluation of a classifier."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.cells import cell_len, set_cell_size

from glassformer.data.counted import counted

if TYPE_CHECKING:
    from glassformer.data.labelled_layout import Columns
    from glassformer.tasks.classifier import Classifier
    from glassformer.tasks.classify_scores import Calibration
    from glassformer.tasks.evaluate_classify import ClassifyReport

WIDTH = 28  # characters of the longest bar
MOST_CLASSES = 12  # of a table that still fits into a terminal
SHOWN = 160  # characters of an example
NAMES = {
    "accuracy": "accuracy",
    "f1": "F1 macro",
    "f1_binary": "F1 binary",
    "f1_micro": "F1 micro",
    "matthews": "Matthews",
    "spearman": "Spearman",
    "pearson": "Pearson",
    "mean_error": "mean error",
}


def run_evaluate_classify(
    model: str,
    classifier: "Classifier",
    data: list[Path],
    memory: list[Path] | None,
    columns: "Columns",
    labels: Path | None,
    limit: int | None,
    worst: int,
    picture: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Evaluate, say it, and draw it if asked."""
    from glassformer.cli.labelled import open_exam
    from glassformer.errors import require
    from glassformer.tasks.draw_confusion import draw_confusion
    from glassformer.tasks.evaluate_classify import evaluate_classify

    require(
        picture is None or classifier.labels.kind == "class",
        "--picture shows which class was taken for which, but here an example has no single class.",
        "Leave it out.",
    )
    report = evaluate_classify(classifier, open_exam(classifier, data, memory, columns, limit, labels), worst)
    if picture is not None:
        draw_confusion(report.confusion, report.names, f"{model} on {', '.join(report.paths)}", picture)
    if as_json:
        typer.echo(json.dumps({"model": model, **dataclasses.asdict(report)}, ensure_ascii=False))
        return
    typer.echo("\n".join(explain_classify(model, report)))
    if memory is None and not quiet:
        typer.echo("With --memory TRAIN_DATA simple baselines stand beside it.", err=True)


def explain_classify(model: str, report: "ClassifyReport") -> Iterator[str]:
    """The report line by line."""
    yield f"{model} on {', '.join(report.paths)}: {counted(report.n, 'example')}."
    if report.n_bad:
        yield f"Skipped {counted(report.n_bad, 'bad example')}, the first: {report.bad_example}."
    if report.n_known:
        yield f"{report.n_known:,} of them are in the memory letter for letter."
    yield ""
    metrics = list(report.systems[0].metrics)
    rows = [["", *(NAMES[name] for name in metrics)]]
    for system in report.systems:
        figures = [[_figure(name, of[name]) for of in (system.metrics, system.intervals)] for name in metrics]
        rows.append([system.name, *(" ± ".join(pair) for pair in figures)])
    widths = [max(18, *(len(cell) + 2 for cell in column)) for column in zip(*rows, strict=True)]
    for name, *cells in rows:
        yield f"{name:<20}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))
    own, *others = report.systems
    for other in others:
        if other.metrics[metrics[0]] >= own.metrics[metrics[0]] and metrics[0] != "mean_error":
            yield f"By {NAMES[metrics[0]]} the model is no better than this baseline: {other.name}."
    yield "± is half of the 95 % interval under resampling of the examples."
    yield from _explain_classes(report)
    if report.calibration is not None:
        yield from _explain_calibration(report.calibration)
    if report.worst:
        yield ""
        yield "Farthest off" if report.kind == "number" else "Surest mistakes"
    for mistake in report.worst:
        yield f"  {mistake.place}: said {mistake.said}, is {mistake.true}"
        shown = " ".join(mistake.shown.split())
        yield f"    {shown if len(shown) <= SHOWN else shown[: SHOWN - 1] + '…'}"


def _figure(name: str, value: float) -> str:
    """Most lie between 0 and 1; an error is as large as what is measured."""
    if name != "mean_error":
        return f"{value:.3f}"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e12 else f"{value:.4g}"


def _explain_classes(report: "ClassifyReport") -> Iterator[str]:
    if report.kind == "number":
        return
    longest = max(cell_len(name) for name in report.names)
    wide = max(12, min(24, longest + 1))
    yield ""
    yield f"{'class':<{wide}}{'n':>8}{'precision':>11}{'recall':>9}{'F1':>8}"
    for one in report.classes:
        yield f"{_left(one.name, wide)}{one.n:>8,}{one.precision:>11.3f}{one.recall:>9.3f}{one.f1:>8.3f}"
    if not report.confusion or len(report.names) > MOST_CLASSES:
        return
    cell = max(9, min(16, longest + 2))
    yield ""
    yield _left("true ╲ said", wide) + "".join(_right(name, cell) for name in report.names)
    for name, row in zip(report.names, report.confusion, strict=True):
        yield _left(name, wide) + "".join(f"{n:>{cell},}" for n in row)


def _left(text: str, width: int) -> str:
    """A text in so many cells of the terminal; wide characters take two."""
    return set_cell_size(text if cell_len(text) < width else set_cell_size(text, width - 2) + "…", width)


def _right(text: str, width: int) -> str:
    short = text if cell_len(text) < width else set_cell_size(text, width - 2) + "…"
    return " " * (width - cell_len(short)) + short


def _explain_calibration(found: "Calibration") -> Iterator[str]:
    yield ""
    yield f"Calibration: expected error {found.error:.3f}"
    yield f"  {'n':>8}{'sure':>8}{'right':>8}"
    for part in found.bins:
        yield f"  {part.n:>8,}{part.confidence:>8.1%}{part.accuracy:>8.1%}  {'█' * round(WIDTH * part.accuracy)}"
