"""What a set of recordings holds and what is wrong with it: durations, rates, clipping, silence, missing files."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from glassformer.data.audio import Series, is_there, is_vectors, level, read_sound, read_vectors, sound_info
from glassformer.data.check import MUCH
from glassformer.data.counted import counted
from glassformer.data.findings import BAD, ODD, Finding, FirstLines, explain_findings, having_seen
from glassformer.data.pairs import BadLine
from glassformer.data.recordings import Recording, RecordingFiles, read_recordings
from glassformer.errors import UserError, require

CLIPPED, FULL = 1e-3, 0.999  # a share of samples at full scale that is heard
SILENT = -60.0  # decibels: nothing is said there
FACTOR = 4  # times more or fewer characters a second than usual: suspicious
VECTORS_A_SECOND = 100.0  # the custom of nearly all speech features


@dataclass(frozen=True)
class Overlap:
    """What there is to validate on, and how much of it training hears too, by whatever name."""

    path: str
    n_recordings: int
    n_bad: int
    n_same: int
    bad: tuple[Finding, ...]
    bad_lines: tuple[int, ...]


@dataclass(frozen=True)
class RecordingReport:
    """All that `check_recordings` found: plain data, ready for JSON."""

    path: str
    notes: tuple[str, ...]
    n_recordings: int
    n_bad: int
    seconds: float
    median: float
    p95: float
    longest: float
    rates: dict[int, int]  # samples a second and how many recordings have them; nothing for vectors
    width: int  # of vectors; 0 for sound
    n_characters: int
    n_distinct: int  # transcripts
    commonest: str
    alphabet: str
    bad: tuple[Finding, ...]
    suspicious: tuple[Finding, ...]
    bad_lines: tuple[int, ...]  # all of them, in order
    valid: Overlap | None = None

    @property
    def rate(self) -> int:
        """The rate that most recordings have at least."""
        ordered = sorted(self.rates.items())
        middle, seen = self.n_recordings / 2, 0
        for rate, n in ordered:
            seen += n
            if seen >= middle:
                return rate
        return 16_000


@dataclass
class _Heard:
    """What one list or folder holds, as far as it was read."""

    files: RecordingFiles
    width: int  # of vectors; 0 for sound, -1 where nothing was read yet
    kept: list[Recording] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    contents: list[bytes] = field(default_factory=list)
    rates: Counter[int] = field(default_factory=Counter)
    bad: FirstLines[str] = field(default_factory=FirstLines)
    odd: FirstLines[str] = field(default_factory=FirstLines)
    bad_lines: list[int] = field(default_factory=list)
    example: str = ""  # of what is wrong, in brackets

    def add(self, item: Recording, series: Series, rate: int) -> None:
        self.width = 0 if series.ndim == 1 else series.shape[1]
        self.kept.append(item)
        self.seconds.append(len(series) / (rate or VECTORS_A_SECOND))
        self.contents.append(hashlib.blake2b(np.ascontiguousarray(series).data, digest_size=16).digest())
        self.rates[rate] += 1
        for reason in _oddities(series):
            self.odd.add(reason, item.line)

    def skip(self, line: int, reason: str, said: str) -> None:
        self.bad.add(reason, line)
        self.bad_lines.append(line)
        self.example = self.example or f" (line {line}{said})"


def check_recordings(files: RecordingFiles, valid: RecordingFiles | None = None) -> RecordingReport:
    """Read everything once; a UserError if there is nothing to learn from, or to validate on."""
    heard = _hear(files)
    with having_seen([*explain_findings(BAD, heard.bad.findings()), *explain_findings(ODD, heard.odd.findings())]):
        n = counted(len(heard.kept), "usable recording")
        require(
            len(heard.kept) > 1, f"{files.path} holds {n}{heard.example}.", "Training needs many, better thousands."
        )
        return _report(heard, None if valid is None else _overlap(heard, _hear(valid, heard.width)))


def _hear(files: RecordingFiles, width: int = -1) -> _Heard:
    heard = _Heard(files, width)
    for item in read_recordings(files):
        if isinstance(item, BadLine):
            heard.skip(item.line, item.reason, f" {item.reason}")
            continue
        try:
            series, rate = _read(item.path, heard.width)
        except UserError as error:
            heard.skip(item.line, _reason(item.path, error), f": {error.message}")
        else:
            heard.add(item, series, rate)
    return heard


def _overlap(train: _Heard, valid: _Heard) -> Overlap:
    path, bad = valid.files.path, valid.bad.findings()
    with having_seen(explain_findings(f"{path}: {BAD.lower()}", bad)):
        require(bool(valid.kept), f"{path} holds no usable recording{valid.example}.", "Validation needs some.")
    known = set(train.contents)
    return Overlap(
        path=str(path),
        n_recordings=len(valid.kept),
        n_bad=len(valid.bad_lines),
        n_same=sum(content in known for content in valid.contents),
        bad=bad,
        bad_lines=tuple(valid.bad_lines),
    )


def _report(heard: _Heard, valid: Overlap | None) -> RecordingReport:
    files, kept, odd = heard.files, heard.kept, heard.odd
    for item in _hurried(kept, heard.seconds):
        odd.add(f"has over {FACTOR} times more or fewer characters a second than usual", item.line)
    texts = Counter(item.text for item in kept)
    require(len(texts) > 1, f"The transcript is the same in all {len(kept):,} recordings of {files.path}.", "")
    seen = Counter(heard.contents)
    for item, content in zip(kept, heard.contents, strict=True):
        if seen[content] > 1:
            odd.add("has a recording that another line has too", item.line)
    order = np.sort(heard.seconds)
    return RecordingReport(
        path=str(files.path),
        notes=files.notes,
        n_recordings=len(kept),
        n_bad=len(heard.bad_lines),
        seconds=float(order.sum()),
        median=float(np.median(order)),
        p95=float(order[math.ceil(0.95 * len(order)) - 1]),
        longest=float(order[-1]),
        rates={rate: n for rate, n in sorted(heard.rates.items()) if rate},
        width=heard.width,
        n_characters=sum(len(item.text) for item in kept),
        n_distinct=len(texts),
        commonest=texts.most_common(1)[0][0],
        alphabet="".join(sorted(set("".join(texts)))),
        bad=heard.bad.findings(),
        suspicious=odd.findings(),
        bad_lines=tuple(heard.bad_lines),
        valid=valid,
    )


def _read(path: Path, width: int) -> tuple[Series, int]:
    """The series and its rate; 0 for vectors."""
    if is_vectors(path):
        require(width != 0, f"{path} holds vectors, but the others hold sound.", "Give one kind.")
        return read_vectors(path, None if width < 0 else width), 0
    require(width <= 0, f"{path} holds sound, but the others hold vectors.", "Give one kind.")
    rate = sound_info(path).rate
    return read_sound(path, rate), rate


def _reason(path: Path, error: UserError) -> str:
    """The message as a sentence about a line, so that equal faults are counted together."""
    message = error.message.rstrip(".")
    return f"is a file that is not there: {path.name}" if not is_there(path) else f"has a recording: {message}"


def _oddities(series: Series) -> list[str]:
    if series.ndim == 2:
        return []
    found = []
    if float(np.mean(np.abs(series) >= FULL)) > CLIPPED:
        found.append("has a clipped recording")
    if level(series) < SILENT:
        found.append("has a silent recording")
    return found


def _hurried(kept: list[Recording], seconds: list[float]) -> list[Recording]:
    speeds = np.array([len(item.text) / s for item, s in zip(kept, seconds, strict=True)])
    usual = float(np.median(speeds))
    return [item for item, s in zip(kept, speeds, strict=True) if not usual / FACTOR <= s <= usual * FACTOR]


def explain_recordings(report: RecordingReport) -> str:
    """The report as `glassformer check` prints it."""
    r = report
    kind = f"vectors of {counted(r.width, 'number')} (taken as {VECTORS_A_SECOND:g} a second)" if r.width else _rates(r)
    lines = [f"{r.path}: {counted(r.n_recordings, 'recording')}, {_time(r.seconds)}; {kind}."]
    lines += [f"  {note}" for note in r.notes]
    lines.append(f"  durations: half up to {r.median:.1f} s, 95 % up to {r.p95:.1f} s, longest {r.longest:.1f} s.")
    lines.append(
        f"  transcripts: {r.n_distinct:,} different, {r.n_characters / r.n_recordings:.1f} characters on average, "
        f"made of {counted(len(r.alphabet), 'character')}: {r.alphabet[:80]!r}."
    )
    lines += [*explain_findings(BAD, r.bad), *explain_findings(ODD, r.suspicious)]
    if r.n_bad > MUCH * (r.n_bad + r.n_recordings):
        lines.append(f"Warning: {r.n_bad / (r.n_bad + r.n_recordings):.0%} of the recordings cannot be used.")
    return "\n".join([*lines, *(_explain_overlap(r.valid) if r.valid is not None else ())])


def _explain_overlap(v: Overlap) -> Iterator[str]:
    yield f"Validation: {counted(v.n_recordings, 'recording')}, {counted(v.n_bad, 'line')} skipped."
    yield f"  Also in training: {v.n_same:,} of the recordings."
    yield from explain_findings(f"{v.path}: {BAD.lower()}", v.bad)
    if v.n_bad > MUCH * (v.n_bad + v.n_recordings):
        yield f"Warning: {v.n_bad / (v.n_bad + v.n_recordings):.0%} of the validation recordings cannot be used."
    if v.n_same > MUCH * v.n_recordings:
        share = v.n_same / v.n_recordings
        yield f"Warning: {share:.0%} of the validation recordings are in training too, so scores will be too good."


def _rates(report: RecordingReport) -> str:
    several = len(report.rates) > 1
    return ", ".join(
        f"{rate:,} samples a second" + (f" ({n:,})" if several else "") for rate, n in report.rates.items()
    )


def _time(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds >= 7200 else f"{seconds / 60:.1f} minutes"
