"""How good a recogniser is: word and character errors with intervals, beside a baseline, and what it mixes up."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import jiwer
import numpy as np

from glassformer.data.pairs import BadLine
from glassformer.data.recordings import Recording, RecordingFiles, read_recordings
from glassformer.decode.options import DecodeOptions
from glassformer.errors import UserError, require
from glassformer.tasks.transcriber import DEFAULT, Hearing

N_BOOTSTRAP = 1000
SHOWN = 15  # kinds of errors


@dataclass(frozen=True)
class Rate:
    """Errors per hundred words or characters, and the ends of the 95 % interval under resampling of the recordings."""

    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class HeardBy:
    name: str
    wer: Rate
    cer: Rate
    exact: float  # share of the recordings whose text is right, letter for letter


@dataclass(frozen=True)
class Mistake:
    """`wanted` was heard as `heard`; one of them is empty for a word left out or put in."""

    wanted: str
    heard: str
    n: int


@dataclass(frozen=True)
class Failure:
    line: int
    file: str
    answer: str
    reference: str


@dataclass(frozen=True)
class TranscribeReport:
    """All that was measured: plain data, ready for JSON."""

    path: str
    n_recordings: int
    n_words: int
    n_bad: int
    bad_example: str | None
    seconds: float
    engine: str
    beam: int
    systems: tuple[HeardBy, ...]
    mistakes: tuple[Mistake, ...]
    worst: tuple[Failure, ...]


def evaluate_transcribe(
    transcriber: Hearing,
    files: RecordingFiles,
    options: DecodeOptions = DEFAULT,
    limit: int | None = None,
    n_worst: int = 5,
    progress: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005
) -> TranscribeReport:
    """Transcribe all recordings (or `limit` of them, evenly spread) and compare with the transcripts."""
    items = list(read_recordings(files))
    wanted = [item for item in items if isinstance(item, Recording)]
    bad = [f"line {item.line} {item.reason}" for item in items if isinstance(item, BadLine)]
    require(limit is None or limit > 0, f"The limit is {limit}.", "It must be 1 or more.")
    if limit is not None and limit < len(wanted):
        wanted = [wanted[i * len(wanted) // limit] for i in range(limit)]
    heard: list[tuple[Recording, str]] = []
    seconds = 0.0
    answers = transcriber.transcribe_files([item.path for item in wanted], options)
    for n, (item, answer) in enumerate(zip(wanted, answers, strict=True), start=1):
        if isinstance(answer, UserError):
            bad.append(f"line {item.line}: {answer.message}")
        else:
            heard.append((item, answer.text))
            seconds += answer.seconds
        progress(n, len(wanted))
    example = bad[0] if bad else None
    require(bool(heard), f"{files.path} holds no recording that can be heard ({example}).", "Check the paths.")
    references, guesses = [item.text for item, _ in heard], [text for _, text in heard]
    commonest = Counter(references).most_common(1)[0][0]
    return TranscribeReport(
        path=str(files.path),
        n_recordings=len(heard),
        n_words=sum(len(text.split()) for text in references),
        n_bad=len(bad),
        bad_example=example,
        seconds=seconds,
        engine=transcriber.engine,
        beam=options.beam,
        systems=(
            measure("model", references, guesses),
            measure(f"always {commonest!r}", references, [commonest] * len(heard)),
        ),
        mistakes=count_mistakes(references, guesses),
        worst=_worst(heard, n_worst),
    )


def measure(name: str, references: list[str], guesses: list[str]) -> HeardBy:
    """Error rates of a set of answers."""
    words = [jiwer.process_words(r, g) for r, g in zip(references, guesses, strict=True)]
    letters = [jiwer.process_characters(r, g) for r, g in zip(references, guesses, strict=True)]
    exact = sum(r == g for r, g in zip(references, guesses, strict=True)) / len(references)
    return HeardBy(name, _rate(words), _rate(letters), exact)


def _rate(found: "list[jiwer.WordOutput] | list[jiwer.CharacterOutput]") -> Rate:
    """Errors over what was wanted, of all recordings together; the interval by drawing recordings anew."""
    errors = np.array([f.substitutions + f.deletions + f.insertions for f in found])
    sizes = np.array([f.substitutions + f.deletions + f.hits for f in found])
    random = np.random.default_rng(0)
    drawn = random.integers(len(errors), size=(N_BOOTSTRAP, len(errors)), dtype=np.int32)
    rates = 100 * errors[drawn].sum(axis=1) / np.maximum(1, sizes[drawn].sum(axis=1))
    low, high = np.percentile(rates, [2.5, 97.5])
    return Rate(100 * float(errors.sum() / sizes.sum()), float(low), float(high))


def count_mistakes(references: list[str], guesses: list[str]) -> tuple[Mistake, ...]:
    """The commonest, as pairs of what was wanted and what was heard."""
    counts: Counter[tuple[str, str]] = Counter()
    found = jiwer.process_words(references, guesses)
    for reference, guess, chunks in zip(found.references, found.hypotheses, found.alignments, strict=True):
        for chunk in chunks:
            if chunk.type != "equal":
                wanted = reference[chunk.ref_start_idx : chunk.ref_end_idx]
                heard = guess[chunk.hyp_start_idx : chunk.hyp_end_idx]
                pairs = zip(wanted, heard, strict=True) if chunk.type == "substitute" else _one_sided(wanted, heard)
                counts.update(pairs)
    return tuple(Mistake(wanted, heard, n) for (wanted, heard), n in counts.most_common(SHOWN))


def _one_sided(wanted: list[str], heard: list[str]) -> list[tuple[str, str]]:
    return [(word, "") for word in wanted] + [("", word) for word in heard]


def _worst(heard: list[tuple[Recording, str]], n: int) -> tuple[Failure, ...]:
    rows = [(jiwer.cer(item.text, text), item, text) for item, text in heard if item.text != text]
    rows.sort(key=lambda row: -row[0])
    return tuple(Failure(item.line, str(item.path), text, item.text) for _, item, text in rows[:n])
