"""What a set of recordings holds and what is wrong with it: durations, rates, clipping, silence, missing files."""

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from glassformer.data.audio import Series, is_there, is_vectors, level, read_sound, read_vectors, sound_info
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


def check_recordings(files: RecordingFiles) -> RecordingReport:
    """Read everything once; a UserError if there is nothing to learn from."""
    bad: FirstLines[str] = FirstLines()
    odd: FirstLines[str] = FirstLines()
    seconds: list[float] = []
    kept: list[Recording] = []
    rates: Counter[int] = Counter()
    width = -1
    example = ""
    for item in read_recordings(files):
        if isinstance(item, BadLine):
            bad.add(item.reason, item.line)
            example = example or f" (line {item.line} {item.reason})"
            continue
        try:
            found, rate = _read(item.path, width)
        except UserError as error:
            bad.add(_reason(item.path, error), item.line)
            example = example or f" (line {item.line}: {error.message})"
            continue
        width = 0 if found.ndim == 1 else found.shape[1]
        seconds.append(len(found) / (rate or VECTORS_A_SECOND))
        rates[rate] += 1
        kept.append(item)
        for reason in _oddities(found):
            odd.add(reason, item.line)
    with having_seen([*explain_findings(BAD, bad.findings()), *explain_findings(ODD, odd.findings())]):
        n = counted(len(kept), "usable recording")
        require(len(kept) > 1, f"{files.path} holds {n}{example}.", "Training needs many, better thousands.")
        return _report(files, kept, seconds, rates, width, bad, odd)


def _report(
    files: RecordingFiles,
    kept: list[Recording],
    seconds: list[float],
    rates: Counter[int],
    width: int,
    bad: FirstLines[str],
    odd: FirstLines[str],
) -> RecordingReport:
    for item in _hurried(kept, seconds):
        odd.add(f"has over {FACTOR} times more or fewer characters a second than usual", item.line)
    texts = Counter(item.text for item in kept)
    require(len(texts) > 1, f"The transcript is the same in all {len(kept):,} recordings of {files.path}.", "")
    seen = Counter(item.path for item in kept)
    for item in kept:
        if seen[item.path] > 1:
            odd.add("has a recording that another line has too", item.line)
    order = np.sort(seconds)
    return RecordingReport(
        path=str(files.path),
        notes=files.notes,
        n_recordings=len(kept),
        n_bad=bad.counts.total(),
        seconds=float(order.sum()),
        median=float(np.median(order)),
        p95=float(order[math.ceil(0.95 * len(order)) - 1]),
        longest=float(order[-1]),
        rates={rate: n for rate, n in sorted(rates.items()) if rate},
        width=width,
        n_characters=sum(len(item.text) for item in kept),
        n_distinct=len(texts),
        commonest=texts.most_common(1)[0][0],
        alphabet="".join(sorted(set("".join(texts)))),
        bad=bad.findings(),
        suspicious=odd.findings(),
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
    if r.n_bad > 0.1 * (r.n_bad + r.n_recordings):
        lines.append(f"Warning: {r.n_bad / (r.n_bad + r.n_recordings):.0%} of the recordings cannot be used.")
    return "\n".join(lines)


def _rates(report: RecordingReport) -> str:
    several = len(report.rates) > 1
    return ", ".join(
        f"{rate:,} samples a second" + (f" ({n:,})" if several else "") for rate, n in report.rates.items()
    )


def _time(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds >= 7200 else f"{seconds / 60:.1f} minutes"
