"""How a person sees the evaluation of a model that fills blanks."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from glassformer.tasks.evaluate_fill import FillReport
    from glassformer.tasks.filler import Filler


def run_evaluate_fill(
    model: str,
    filler: "Filler",
    data: list[Path],
    memory: list[Path] | None,
    field: str,
    as_json: bool,
    progress: Callable[[int, int], None],
) -> None:
    from glassformer.data.documents import open_documents
    from glassformer.tasks.evaluate_fill import evaluate_fill

    training = open_documents(memory, field) if memory else None
    report = evaluate_fill(filler, open_documents(data, field), training, progress)
    if as_json:
        typer.echo(json.dumps({"model": model, **dataclasses.asdict(report)}, ensure_ascii=False))
    else:
        typer.echo("\n".join(explain_fill(model, report)))


def explain_fill(model: str, report: "FillReport") -> Iterator[str]:
    yield f"{model} on {', '.join(report.paths)}: {report.n_blanks:,} of {report.n_tokens:,} tokens hidden."
    yield ""
    yield f"{'':<18}{'right':>8}{'in best 5':>12}{'perplexity':>12}"
    for row in report.guessers:
        yield f"{row.name:<18}{row.accuracy:>8.1%}{row.in_top:>12.1%}{row.perplexity:>12.1f}"
    yield ""
    if not report.counted_on:
        yield "With --memory TRAIN_TEXT guesses by counting stand beside it."
        return
    yield f"The guesses by counting know {report.counted_on}."
    *others, own = report.guessers
    best = max(others, key=lambda row: row.accuracy)
    if best.accuracy >= own.accuracy:
        yield f"The model is no better than counting: {best.name}."
