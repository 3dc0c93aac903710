"""What a file of pairs holds and what is wrong with it, read in one pass.

Whatever makes training pointless is a UserError; all else is said in the report. Deliberately not here: how long
training would take.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glassformer.data.counted import counted
from glassformer.data.findings import BAD, ODD, Finding, explain_findings, having_seen
from glassformer.data.labelled_layout import FEW, REPEATED
from glassformer.data.pairs import BadLine, PairFiles, read_pairs
from glassformer.data.tally import SAME_SIDES, SideTally, Tally, percentile
from glassformer.errors import require

Hashes = NDArray[np.uint64]

SEVERAL = 3  # times that a target is there, or it says nothing
MUCH = 0.1  # of the pairs: more than this with the same target, bad, or known from training is worth a warning


@dataclass(frozen=True)
class Lengths:
    total: int
    mean: float
    median: int
    p95: int
    longest: int


@dataclass(frozen=True)
class Side:
    words: Lengths
    characters: Lengths
    script: str
    n_distinct: int


@dataclass(frozen=True)
class Overlap:
    """How much of the validation pairs is known from training, without regard to case and spacing."""

    n_pairs: int
    n_bad: int
    n_same_pairs: int
    n_same_sources: int


@dataclass(frozen=True)
class PairReport:
    """All that `check_pairs` found: plain data, ready for JSON."""

    paths: tuple[str, ...]
    kind: str
    notes: tuple[str, ...]
    n_pairs: int
    n_bad: int
    n_duplicates: int
    same_target: float  # share of the pairs that have the most common target
    source: Side
    target: Side
    bad: tuple[Finding, ...]
    suspicious: tuple[Finding, ...]
    valid: Overlap | None = None


def check_pairs(files: PairFiles, valid: PairFiles | None = None) -> PairReport:
    """Read all pairs once and say what they are; a UserError if there is nothing to learn from them."""
    tally = Tally()
    for item in read_pairs(files):
        tally.add(item)
    n, bad, odd = tally.n_pairs, tally.bad.findings(), tally.suspicious()
    sources, targets = _hashes(tally.source), _hashes(tally.target)
    n_each = np.unique(targets, return_counts=True)[1]
    with having_seen([*explain_findings(BAD, bad), *explain_findings(ODD, odd)]):
        _refuse_useless(_name(files), n, len(n_each), bad)
        known = None if valid is None else _overlap(sources, targets, valid)
    scripts = tally.usual_scripts()
    return PairReport(
        paths=tuple(map(str, files.paths)),
        kind=files.layout.kind,
        notes=files.notes,
        n_pairs=n,
        n_bad=tally.bad.counts.total(),
        n_duplicates=n - len(np.unique(_both(sources, targets))),
        same_target=int(n_each.max()) / n,
        source=_side(tally.source, scripts[0], len(np.unique(sources))),
        target=_side(tally.target, scripts[1], len(n_each)),
        bad=bad,
        suspicious=odd,
        valid=known,
    )


def _refuse_useless(name: str, n: int, n_targets: int, bad: tuple[Finding, ...]) -> None:
    example = f" (line {bad[0].lines[0]} {bad[0].reason})" if bad else ""
    require(n > 0, f"{name} holds no usable pair{example}.", "Write a source, a tab and a target on each line.")
    require(n > 1, f"{name} holds only one usable pair{example}.", "Training needs many, better thousands.")
    require(
        n_targets > 1,
        f"The target is the same in all {n:,} pairs of {name}, so there is nothing to learn.",
        "Check which column or file is the target.",
    )


def explain(report: PairReport) -> str:
    """The report as `glassformer check` prints it."""
    lines = [f"{' and '.join(report.paths)}: {counted(report.n_pairs, 'pair')}."]
    lines += [f"  {note}" for note in report.notes]
    lines += [_explain_side("source", report.source), _explain_side("target", report.target)]
    if report.n_duplicates:
        repeat = "repeats" if report.n_duplicates == 1 else "repeat"
        lines.append(f"  {counted(report.n_duplicates, 'pair')} {repeat} another one.")
    lines += explain_findings(BAD, report.bad)
    lines += explain_findings(ODD, report.suspicious)
    if report.valid is not None:
        known, n = report.valid, report.valid.n_pairs
        lines.append(f"Validation: {counted(n, 'pair')}, {counted(known.n_bad, 'line')} skipped.")
        lines.append(
            f"  Also in training: {known.n_same_pairs:,} of the pairs, {known.n_same_sources:,} of the sources."
        )
    return "\n".join([*lines, *(f"Warning: {warning}" for warning in warnings(report))])


def warnings(report: PairReport) -> Iterator[str]:
    """What a person should act on before training."""
    n_lines = report.n_pairs + report.n_bad
    if report.n_bad > MUCH * n_lines:
        yield f"{report.n_bad / n_lines:.0%} of the lines cannot be used."
    if report.same_target > MUCH and round(report.same_target * report.n_pairs) >= SEVERAL:
        yield f"{report.same_target:.0%} of the pairs have one and the same target."
    if report.target.n_distinct <= min(FEW, report.n_pairs // REPEATED):
        yield f"There are only {report.target.n_distinct} different targets; check labels with --task classify."
    if report.n_duplicates > MUCH * report.n_pairs:
        yield f"{report.n_duplicates / report.n_pairs:.0%} of the pairs repeat others."
    n_same = sum(finding.n for finding in report.suspicious if finding.reason == SAME_SIDES)
    if n_same > MUCH * report.n_pairs and n_same >= SEVERAL:
        yield f"{n_same / report.n_pairs:.0%} of the pairs have the same text on both sides."
    if report.valid is not None and report.valid.n_same_sources > MUCH * report.valid.n_pairs:
        share = report.valid.n_same_sources / report.valid.n_pairs
        yield f"{share:.0%} of the validation sources are in training too, so scores on them will be too good."


def _name(files: PairFiles) -> str:
    return " and ".join(map(str, files.paths))


def _hashes(side: SideTally) -> Hashes:
    return np.frombuffer(side.hashes, dtype=np.uint64)


def _both(sources: Hashes, targets: Hashes) -> Hashes:
    """One hash for each pair; the factor is odd, so that no bit of the source is lost, and pairs have a direction."""
    return sources * np.uint64(0x9E3779B97F4A7C15) + targets


def _overlap(sources: Hashes, targets: Hashes, valid: PairFiles) -> Overlap:
    source, target = SideTally(), SideTally()
    n_bad = 0
    for item in read_pairs(valid):
        if isinstance(item, BadLine):
            n_bad += 1
        else:
            source.add(item.source)
            target.add(item.target)
    require(len(source.hashes) > 0, f"{_name(valid)} holds no usable pair.", "Validation needs some.")
    known = _both(_hashes(source), _hashes(target))
    return Overlap(
        n_pairs=len(known),
        n_bad=n_bad,
        n_same_pairs=int(np.isin(known, _both(sources, targets)).sum()),
        n_same_sources=int(np.isin(_hashes(source), sources).sum()),
    )


def _side(tally: SideTally, script: str, n_distinct: int) -> Side:
    return Side(_lengths(tally.words), _lengths(tally.characters), script, n_distinct)


def _lengths(counts: Counter[int]) -> Lengths:
    total = sum(length * n for length, n in counts.items())
    return Lengths(total, total / counts.total(), percentile(counts, 50), percentile(counts, 95), max(counts))


def _explain_side(name: str, side: Side) -> str:
    words, script = side.words, f"{side.script} script" if side.script else "no letters"
    return (
        f"  {name}: {words.mean:.1f} words and {side.characters.mean:.1f} characters on average; half up to "
        f"{words.median} words, 95 % up to {words.p95}, longest {words.longest:,}; "
        f"{side.n_distinct:,} different; {script}."
    )
