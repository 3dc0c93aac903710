"""What a check finds in lines: counted, with the first line numbers, and said in sentences."""

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from glassformer.data.counted import counted
from glassformer.errors import UserError

K = TypeVar("K")

SHOWN = 8  # findings of a kind that are printed; the report has them all
BAD, ODD = "Skipped, as they cannot be used", "Used, but suspicious"


@dataclass(frozen=True)
class Finding:
    """Something that lines have in common, how many have it, and the first of them by number."""

    reason: str
    n: int
    lines: tuple[int, ...]

    def __str__(self) -> str:
        verb, _, rest = self.reason.partition(" ")
        if self.n > 1:
            verb = {"has": "have", "is": "are"}.get(verb, verb.removesuffix("s"))
        numbers = ", ".join(map(str, self.lines)) + (", …" if self.n > len(self.lines) else "")
        return f"{counted(self.n, 'line')} that {verb} {rest} ({numbers})"


class FirstLines(Generic[K]):
    """Counts by key, each with its first line numbers."""

    def __init__(self, most: int = 5) -> None:
        self.counts: Counter[K] = Counter()
        self.first: dict[K, list[int]] = {}
        self.most = most

    def add(self, key: K, line: int) -> None:
        self.counts[key] += 1
        lines = self.first.setdefault(key, [])
        if len(lines) < self.most:
            lines.append(line)

    def findings(self) -> tuple[Finding, ...]:
        """One finding for each key, the most common first."""
        return tuple(Finding(str(key), n, tuple(self.first[key])) for key, n in self.counts.most_common())

    def merged(self, reason: str, keys: Iterable[K]) -> Iterator[Finding]:
        """One finding for several keys, or none."""
        keys = list(keys)
        lines = sorted(line for key in keys for line in self.first[key])
        if lines:
            yield Finding(reason, sum(self.counts[key] for key in keys), tuple(lines[: self.most]))


def explain_findings(title: str, findings: tuple[Finding, ...]) -> list[str]:
    """The title and a line for each finding; nothing where there is none."""
    if not findings:
        return []
    rest = sum(finding.n for finding in findings[SHOWN:])
    others = [f"  {counted(rest, 'line')} with other faults"] if rest else []
    return [f"{title}:", *(f"  {finding}" for finding in findings[:SHOWN]), *others]


@contextlib.contextmanager
def having_seen(lines: Iterable[str]) -> Iterator[None]:
    """What is fatal in here ends a check, but not before the check could name what it saw: the error's notes."""
    try:
        yield
    except UserError as error:
        for line in lines:
            error.add_note(line)
        raise
