"""How a person sees the evaluation of a recogniser."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from glassformer.data.counted import counted

if TYPE_CHECKING:
    from glassformer.decode.options import DecodeOptions
    from glassformer.tasks.evaluate_transcribe import Rate, TranscribeReport
    from glassformer.tasks.transcriber import Hearing


def run_evaluate_transcribe(
    model: str,
    transcriber: "Hearing",
    data: list[Path],
    columns: tuple[str | None, str | None],
    options: "DecodeOptions",
    limit: int | None,
    worst: int,
    as_json: bool,
    progress: Callable[[int, int], None],
) -> None:
    """Measure and print."""
    from glassformer.data.recordings import open_recordings
    from glassformer.errors import require
    from glassformer.tasks.evaluate_transcribe import evaluate_transcribe

    require(len(data) == 1, f"{len(data)} files were given.", "Give one list, or one folder, of recordings.")
    report = evaluate_transcribe(transcriber, open_recordings(data[0], *columns), options, limit, worst, progress)
    if as_json:
        typer.echo(json.dumps({"model": model, **dataclasses.asdict(report)}, ensure_ascii=False))
    else:
        typer.echo("\n".join(explain_transcribe(model, report)))


def explain_transcribe(model: str, report: "TranscribeReport") -> Iterator[str]:
    """The report line by line."""
    minutes = f"{report.seconds / 60:.1f} minutes"
    said = f"{counted(report.n_recordings, 'recording')}, {counted(report.n_words, 'word')}"
    yield f"{model} on {report.path}: {said}, {minutes}."
    if report.n_bad:
        yield f"Skipped {counted(report.n_bad, 'bad recording')}, the first: {report.bad_example}."
    yield ""
    yield f"{'':<26}{'word errors':>24}{'character errors':>24}{'exact':>9}"
    for system in report.systems:
        name = system.name if len(system.name) <= 25 else system.name[:24] + "…"
        yield f"{name:<26}{_rate(system.wer):>24}{_rate(system.cer):>24}{system.exact:>9.1%}"
    own, *others = report.systems
    yield from (f"The model is no better than this baseline: {o.name}." for o in others if o.wer.rate <= own.wer.rate)
    yield ""
    yield f"Errors per hundred, with the 95 % interval; beam {report.beam}, {report.engine}; counted by jiwer."
    if report.mistakes:
        yield "Commonest errors"
    for mistake in report.mistakes:
        yield f"  {mistake.n:>5} ×  {mistake.wanted or '(nothing)'} → {mistake.heard or '(nothing)'}"
    if report.worst:
        yield "Worst answers"
    for failure in report.worst:
        yield f"  line {failure.line}, {failure.file}"
        yield f"    answer     {failure.answer or '(nothing)'}"
        yield f"    reference  {failure.reference}"


def _rate(rate: "Rate") -> str:
    return f"{rate.rate:.1f} % ({rate.low:.1f}–{rate.high:.1f})"
