"""What one pass over pairs collects: counts, first line numbers, and sixteen bytes a pair; no text is kept.

A line that can be used but looks wrong is *suspicious*. Which script or length ratio is usual shows only at the end, so
lines are counted by script and by ratio until then.
"""

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from glassformer.data.findings import Finding, FirstLines
from glassformer.data.lines import text_hash
from glassformer.data.pairs import BadLine, Pair
from glassformer.data.scripts import dominant_script

FACTOR = 3  # times longer or shorter than this file's pairs usually are: suspicious
LONG = 20  # characters; shorter sentences vary too much for that
SAME_SIDES = "has the same text on both sides"
MANY_BREAKS = 10  # of lines, within one side
_BINS = 4  # of length ratios, for each doubling
CONTROL = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
GARBLED = re.compile("\ufffd|Ã[\x80-\xbf]|â€")


@dataclass
class SideTally:
    """Lengths of one side, each with how often it occurs, and a hash of every text."""

    words: Counter[int] = field(default_factory=Counter)
    characters: Counter[int] = field(default_factory=Counter)
    hashes: "array[int]" = field(default_factory=lambda: array("Q"))

    def add(self, text: str) -> None:
        self.words[len(text.split())] += 1
        self.characters[len(text)] += 1
        self.hashes.append(text_hash(text))


class Tally:
    """All counts of one file."""

    def __init__(self) -> None:
        self.n_pairs = 0
        self.source, self.target = SideTally(), SideTally()
        self.bad: FirstLines[str] = FirstLines()
        self.odd: FirstLines[str] = FirstLines()
        self.scripts: FirstLines[tuple[str, str]] = FirstLines()
        self.ratios: FirstLines[tuple[int, bool]] = FirstLines()

    def add(self, item: Pair | BadLine) -> None:
        if isinstance(item, BadLine):
            self.bad.add(item.reason, item.line)
            return
        self.n_pairs += 1
        self.source.add(item.source)
        self.target.add(item.target)
        self.scripts.add((dominant_script(item.source), dominant_script(item.target)), item.line)
        ratio = round(_BINS * math.log2(len(item.target) / len(item.source)))
        self.ratios.add((ratio, max(len(item.source), len(item.target)) >= LONG), item.line)
        both = f"{item.source}\n{item.target}"
        if item.source == item.target:
            self.odd.add(SAME_SIDES, item.line)
        if CONTROL.search(both):
            self.odd.add("has control characters", item.line)
        if GARBLED.search(both):
            self.odd.add("has garbled characters, as from a wrong encoding", item.line)
        if max(item.source.count("\n"), item.target.count("\n")) > MANY_BREAKS:
            self.odd.add(f"has over {MANY_BREAKS} line breaks on a side, as where a quote closes too late", item.line)

    def usual_scripts(self) -> tuple[str, str]:
        """The most common script of each side; empty for a side without letters."""
        sides: tuple[Counter[str], Counter[str]] = (Counter({"": 0}), Counter({"": 0}))
        for scripts, n in self.scripts.counts.items():
            for side, script in zip(sides, scripts, strict=True):
                side[script] += n if script else 0
        return sides[0].most_common(1)[0][0], sides[1].most_common(1)[0][0]

    def suspicious(self) -> tuple[Finding, ...]:
        """What looks wrong beside the rest of the file, the most common first."""
        found = [*self.odd.findings(), *self._odd_scripts(), *self._odd_ratios()]
        return tuple(sorted(found, key=lambda finding: -finding.n))

    def _odd_scripts(self) -> Iterator[Finding]:
        usual = self.usual_scripts()
        swapped = usual[::-1] if usual[0] != usual[1] and all(usual) else None
        if swapped in self.scripts.first:
            yield from self.scripts.merged("seems to have its sides swapped", [swapped])
        for side, name in enumerate(("source", "target")):
            odd = [key for key in self.scripts.first if key != swapped and key[side] not in ("", usual[side])]
            yield from self.scripts.merged(f"has a {name} that is not in {usual[side]} script, as most are", odd)

    def _odd_ratios(self) -> Iterator[Finding]:
        # short pairs tell what is usual too: where most are short, the long ones may be just the odd ones
        every: Counter[int] = Counter()
        for (ratio, _), n in self.ratios.counts.items():
            every[ratio] += n
        middle, most = percentile(every, 50), _BINS * math.log2(FACTOR)
        far = [(ratio, long) for ratio, long in self.ratios.first if long and abs(ratio - middle) > most]
        yield from self.ratios.merged(f"has a length ratio over {FACTOR} times off the usual one", far)


def percentile(counts: Counter[int], percent: int) -> int:
    """The smallest number that at least so many per cent do not exceed; 0 of nothing."""
    needed = math.ceil(counts.total() * percent / 100)
    for number in sorted(counts):
        needed -= counts[number]
        if needed <= 0:
            return number
    return 0
