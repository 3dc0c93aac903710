"""How a person sees the evaluation of a language model."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from glassformer.cli.bar import Bar
from glassformer.data.counted import counted

if TYPE_CHECKING:
    from glassformer.tasks.completer import Completer
    from glassformer.tasks.evaluate_complete import CompleteReport

WIDTH = 40  # characters of the longest bar


def run_evaluate_complete(
    model: str,
    completer: "Completer",
    data: list[Path],
    memory: list[Path] | None,
    stride: int | None,
    field: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Measure and say it."""
    from glassformer.data.documents import open_documents
    from glassformer.tasks.evaluate_complete import evaluate_complete

    files = open_documents(data, field)
    if not quiet:
        typer.echo(f"engine: {completer.engine}", err=True)
    with Bar(quiet, "read") as bar:
        report = evaluate_complete(
            completer, files, open_documents(memory, field) if memory else None, stride, bar.show
        )
    if as_json:
        typer.echo(json.dumps({"model": model, **dataclasses.asdict(report)}, ensure_ascii=False))
    else:
        typer.echo("\n".join(explain_complete(model, report)))


def explain_complete(model: str, report: "CompleteReport") -> Iterator[str]:
    """The report line by line: a bar a rung, so that one sees what each rung buys."""
    documents = counted(report.n_documents, "document")
    yield f"{model} on {', '.join(report.paths)}: {documents}, {report.n_bytes:,} bytes, {report.n_tokens:,} tokens."
    yield f"Context {report.context:,} tokens, sliding by {report.stride:,}."
    yield ""
    yield f"loss {report.loss:.4f} nats per token, perplexity {report.perplexity:.2f}"
    yield ""
    rows = [(row.name, row.bits_per_byte) for row in report.rungs] + [("this model", report.bits_per_byte)]
    longest = max(bits for _, bits in rows)
    yield f"{'bits per byte':<16}"
    for name, bits in rows:
        yield f"  {name:<14}{bits:>7.3f}  {'█' * max(1, round(WIDTH * bits / longest))}"
    if report.rungs:
        yield ""
        yield f"The rungs were fitted on {report.rungs_from} ({report.rungs[0].n_train_bytes:,} bytes)."
        best = min(report.rungs, key=lambda row: row.bits_per_byte)
        if best.bits_per_byte <= report.bits_per_byte:
            yield f"The model is no better than counting: {best.name}."
    else:
        yield "With --memory TRAIN_TEXT the rungs of the ladder stand beside it."
