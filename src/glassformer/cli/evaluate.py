"""`glassformer evaluate MODEL DATA…`."""

import dataclasses
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from glassformer.tasks.completer import Completer
    from glassformer.tasks.evaluate_translate import MemoryReport, TranslateReport
    from glassformer.tasks.scores import Measured, Slice

NO_MEMORY = "With --memory TRAIN_DATA there is a translation memory to compare with, and slices by rare words."


def evaluate(
    model: Annotated[str, typer.Argument(help="A model directory, or a built-in model such as en-de.")],
    data: Annotated[
        list[Path], typer.Argument(help="Test pairs (TSV, CSV, JSONL, two aligned files), or text; .gz too.")
    ],
    memory: Annotated[
        list[Path] | None, typer.Option(help="Training data, for simple baselines to compare with.")
    ] = None,
    stride: Annotated[
        int | None, typer.Option(help="For text: tokens that the window slides by; half of the context if left out.")
    ] = None,
    field: Annotated[str, typer.Option(help="The field of JSONL files that holds the text.")] = "text",
    source: Annotated[str | None, typer.Option(help="The source field of a CSV, TSV or JSONL file.")] = None,
    target: Annotated[str | None, typer.Option(help="The target field.")] = None,
    text: Annotated[str | None, typer.Option(help="For labelled texts: the column or field of the text.")] = None,
    text2: Annotated[str | None, typer.Option(help="That of the second text of a pair.")] = None,
    label: Annotated[str | None, typer.Option(help="That of the label.")] = None,
    labels: Annotated[
        Path | None, typer.Option(help="For an NPY file of vectors: its labels, one a line, or NPY.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="For a classifier: draw which class it takes for which (PNG).")
    ] = None,
    beam: Annotated[int, typer.Option(help="Hypotheses kept at each step; 1 is greedy.")] = 4,
    length_penalty: Annotated[float, typer.Option(help="Scores are divided by length to this power.")] = 1.0,
    max_len: Annotated[int, typer.Option(help="Tokens of an answer at most.")] = 256,
    tokenize: Annotated[
        str, typer.Option(help="How BLEU finds words: 13a, none, intl, char, zh, ja-mecab or ko-mecab.")
    ] = "13a",
    limit: Annotated[int | None, typer.Option(help="Only so many pairs, evenly spread over the data.")] = None,
    worst: Annotated[int, typer.Option(help="Show so many of the worst answers.")] = 5,
    engine: Annotated[str, typer.Option(help="auto, ctranslate2 or torch.")] = "auto",
    precision: Annotated[str, typer.Option(help="auto, fp32 or int8.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Nothing on stderr.")] = False,
) -> None:
    """Score a model beside simple baselines.

    A translator with BLEU and chrF, a language model with bits per byte, a classifier with accuracy and F1,
    a recogniser with word and character errors.

    glassformer evaluate runs/en-de test.tsv --memory train.tsv
    """
    from glassformer.api import load
    from glassformer.cli.evaluate_classify import run_evaluate_classify
    from glassformer.cli.evaluate_fill import run_evaluate_fill
    from glassformer.cli.evaluate_transcribe import run_evaluate_transcribe
    from glassformer.data.labelled_layout import Columns
    from glassformer.data.pairs import open_pairs
    from glassformer.decode.options import DecodeOptions
    from glassformer.tasks.classifier import Classifier
    from glassformer.tasks.completer import Completer
    from glassformer.tasks.evaluate_translate import evaluate_translate
    from glassformer.tasks.filler import Filler
    from glassformer.tasks.transcriber import Transcriber
    from glassformer.tasks.whisper import WhisperTranscriber

    loaded = load(model, engine, precision)  # type: ignore[arg-type]
    if isinstance(loaded, Completer):
        _evaluate_text(model, loaded, data, memory, stride, field, as_json, quiet)
        return
    if isinstance(loaded, Classifier):
        columns = Columns(text, text2, label)
        run_evaluate_classify(model, loaded, data, memory, columns, labels, limit, worst, picture, as_json, quiet)
        return
    if isinstance(loaded, Filler):
        with _Bar(quiet, "read") as bar:
            run_evaluate_fill(model, loaded, data, memory, field, as_json, bar.show)
        return
    if isinstance(loaded, Transcriber | WhisperTranscriber):
        with _Bar(quiet, "heard") as bar:
            run_evaluate_transcribe(model, loaded, data, (source, target), beam, limit, worst, as_json, bar.show)
        return
    files = open_pairs(data, source, target)
    # Fields have names in one file only; aligned files beside a table are read as they are.
    fields = (source, target) if memory and len(memory) == 1 else (None, None)
    training = open_pairs(memory, *fields) if memory else None
    options = DecodeOptions(beam=beam, length_penalty=length_penalty, max_len=max_len)
    if not quiet:
        typer.echo(f"engine: {loaded.engine_name(options)}", err=True)
    with _Bar(quiet, "translated") as bar:
        report = evaluate_translate(loaded, files, training, options, tokenize, limit, worst, bar.show)
    if as_json:
        typer.echo(json.dumps({"model": model, **dataclasses.asdict(report)}, ensure_ascii=False))
        return
    typer.echo("\n".join(explain(model, report)))
    if training is None and not quiet:
        typer.echo(NO_MEMORY, err=True)


def _evaluate_text(
    model: str,
    completer: "Completer",
    data: list[Path],
    memory: list[Path] | None,
    stride: int | None,
    field: str,
    as_json: bool,
    quiet: bool,
) -> None:
    from glassformer.cli.evaluate_complete import explain_complete
    from glassformer.data.documents import open_documents
    from glassformer.tasks.evaluate_complete import evaluate_complete

    files = open_documents(data, field)
    if not quiet:
        typer.echo(f"engine: {completer.engine}", err=True)
    with _Bar(quiet, "read") as bar:
        report = evaluate_complete(
            completer, files, open_documents(memory, field) if memory else None, stride, bar.show
        )
    if as_json:
        typer.echo(json.dumps({"model": model, **dataclasses.asdict(report)}, ensure_ascii=False))
    else:
        typer.echo("\n".join(explain_complete(model, report)))


class _Bar:
    """Sentences or tokens done so far, on stderr: a bar in a terminal, else a line now and then."""

    def __init__(self, quiet: bool, done: str) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self.console = Console(stderr=True, quiet=quiet, highlight=False)
        self.bar = Progress(console=self.console, transient=True, disable=not self.console.is_terminal)
        self.done = done
        self.task = self.bar.add_task(done)
        self.tenths = 0

    def __enter__(self) -> "_Bar":
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def show(self, done: int, total: int) -> None:
        self.bar.update(self.task, completed=done, total=total)
        if not self.console.is_terminal and 10 * done // total > self.tenths:
            self.tenths = 10 * done // total
            self.console.print(f"{self.done} {done:,} of {total:,}")


def explain(model: str, report: "TranslateReport") -> Iterator[str]:
    """The report as a person reads it, line by line."""
    left_out = f", {report.n_left_out:,} more left out by --limit" if report.n_left_out else ""
    yield f"{model} on {' and '.join(report.paths)}: {_count(report.n_pairs, 'pair')}{left_out}."
    if report.n_bad:
        yield f"Skipped {_count(report.n_bad, 'bad line')}, the first: {report.bad_example}."
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
    skipped = f" ({_count(memory.n_bad, 'bad line')} skipped)" if memory.n_bad else ""
    yield f"Memory {' and '.join(memory.paths)}: {_count(memory.n_pairs, 'pair')}{skipped}."
    yield (
        f"Of the {n:,} test sources {memory.n_known_sources:,} are in the memory letter for letter, "
        f"{memory.n_known_pairs:,} with the same target."
    )


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


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
