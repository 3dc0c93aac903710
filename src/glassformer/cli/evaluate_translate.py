"""How a person sees the evaluation of a translator."""

import dataclasses
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from glassformer.cli.bar import Bar
from glassformer.data.counted import counted

if TYPE_CHECKING:
    from glassformer.decode.options import DecodeOptions
    from glassformer.tasks.evaluate_translate import MemoryReport, TranslateReport
    from glassformer.tasks.scores import Measured, Slice
    from glassformer.tasks.translator import Translator

NO_MEMORY = "With --memory TRAIN_DATA there is a translation memory to compare with, and slices by rare words."

BY_SPACES = ("13a", "none", "intl")  # ways to find words that need spaces between them
SPACELESS = (
    "The references have no spaces, so BLEU takes whole sentences for words: give --tokenize zh for Chinese, ja-mecab "
    "for Japanese, or char."
)


def run_evaluate_translate(
    model: str,
    translator: "Translator",
    data: list[Path],
    memory: list[Path] | None,
    fields: tuple[str | None, str | None],
    options: "DecodeOptions",
    tokenize: str | None,
    limit: int | None,
    worst: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Translate, score, say it."""
    from glassformer.data.pairs import open_pairs
    from glassformer.tasks.evaluate_translate import evaluate_translate

    files = open_pairs(data, *fields)
    # Fields have names in one file only; aligned files beside a table are read as they are.
    training = open_pairs(memory, *(fields if len(memory) == 1 else (None, None))) if memory else None
    if not quiet:
        typer.echo(f"engine: {translator.engine_name(options)}", err=True)
    with Bar(quiet, "translated") as bar:
        report = evaluate_translate(translator, files, training, options, tokenize, limit, worst, bar.show)
    if as_json:
        typer.echo(json.dumps({"model": model, **dataclasses.asdict(report)}, ensure_ascii=False))
        return
    typer.echo("\n".join(explain(model, report)))
    if training is None and not quiet:
        typer.echo(NO_MEMORY, err=True)


def explain(model: str, report: "TranslateReport") -> Iterator[str]:
    """The report as a person reads it, line by line."""
    left_out = f", {report.n_left_out:,} more left out by --limit" if report.n_left_out else ""
    yield f"{model} on {' and '.join(report.paths)}: {counted(report.n_pairs, 'pair')}{left_out}."
    if report.n_bad:
        yield f"Skipped {counted(report.n_bad, 'bad line')}, the first: {report.bad_example}."
    if report.memory is not None:
        yield from _explain_memory(report.memory, report.n_pairs)
    yield ""
    yield f"{'':<22}{'BLEU':>14}{'chrF':>16}{'exact':>10}"
    for system in report.systems:
        yield f"{system.name:<22}{_measured(system.bleu):>14}{_measured(system.chrf):>16}{system.exact:>10.1%}"
    own, *others = report.systems
    for other in others:
        if other.chrf.score >= own.chrf.score:
            yield f"By chrF the model is no better than this baseline: {other.name}."
    yield ""
    yield f"± is half of the 95 % interval; beam {report.beam}, length penalty {report.length_penalty:g}."
    yield f"BLEU {report.signatures['bleu']}"
    yield f"chrF {report.signatures['chrf']}"
    if report.spaceless and report.tokenize in BY_SPACES:
        yield SPACELESS
    yield from _explain_slices(report.slices)
    if report.worst:
        yield ""
        yield "Worst answers by chrF"
    for failure in report.worst:
        yield f"  line {failure.line}, chrF {failure.chrf:.1f}"
        yield f"    source     {_one_line(failure.source)}"
        yield f"    answer     {_one_line(failure.answer) or '(empty)'}"
        yield f"    reference  {_one_line(failure.reference)}"


def _explain_memory(memory: "MemoryReport", n: int) -> Iterator[str]:
    skipped = f" ({counted(memory.n_bad, 'bad line')} skipped)" if memory.n_bad else ""
    yield f"Memory {' and '.join(memory.paths)}: {counted(memory.n_pairs, 'pair')}{skipped}."
    known = f"{memory.n_known_sources:,} of {counted(n, 'test source')}"
    yield f"In the memory letter for letter: {known}, {memory.n_known_pairs:,} with the same target."


def _explain_slices(slices: "tuple[Slice, ...]") -> Iterator[str]:
    for by, group in itertools.groupby(slices, key=lambda part: part.by):
        yield ""
        yield f"{'By ' + by:<36}{'n':>8}{'BLEU':>8}{'chrF':>8}{'exact':>10}"
        for part in group:
            yield f"  {part.name:<34}{part.n:>8,}{part.bleu:>8.1f}{part.chrf:>8.1f}{part.exact:>10.1%}"


def _measured(found: "Measured") -> str:
    return f"{found.score:.1f} ± {found.interval:.1f}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
