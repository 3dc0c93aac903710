"""Taking apart without losing: a validation part that training cannot know, and lines that are too long."""

import itertools
import re
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glassformer.data.lines import text_hash
from glassformer.data.pairs import BadLine, Pair, PairFiles, read_pairs
from glassformer.errors import require

Hashes = NDArray[np.uint64]

# Where a long text is cut, best first: after a sentence (Chinese and Japanese need no space there), at a space.
_CUTS = (re.compile(r"(?<=[.!?…])[\"'”’»)\]]*(\s+)|(?<=[。！？])()"), re.compile(r"(\s+)"))

# Where a sentence may end: at a line's end, after its mark and quotes, or after a mark that needs no space behind it.
_ENDS = re.compile(r"(\n\s*)|[.!?…؟।።][\"'”’»)\]]*(\s+)|(?<=[。！？])()(?![\"'”’»)\]」』。！？])")
LONGEST_SHORT = 24  # characters before a mark that may tell whether it ends a sentence
_SHORT = re.compile(r"(?:^|[\s(])(?:Mr|Mrs|Ms|Dr|Prof|St|vs|etc|No|Nr|ca|bzw|z\.\s?B|d\.\s?h|e\.g|i\.e|[^\W\d_])\.$")
_I = re.compile(r"(?:^|\s)[a-z]+\sI\.$")  # the word, where an initial would follow a name
_NUMBER = re.compile(r"(?:^|\s)\d{1,2}\.$")  # "am 5. Mai"; one of more figures counts nothing
_SPACELESS = "。！？"  # marks behind which no space is written
# Languages whose ordinal numbers are written with a point.
ORDINALS = frozenset(
    ("bs", "cs", "da", "de", "et", "fi", "fo", "hr", "hu", "is", "lt", "lv", "nb", "nn", "no", "pl", "sk", "sl", "tr")
)


@dataclass(frozen=True)
class HeldOut:
    """The lines of a file that are kept from training."""

    files: PairFiles
    lines: frozenset[int]

    def train(self) -> Iterator[Pair | BadLine]:
        return (item for item in read_pairs(self.files) if item.line not in self.lines)

    def valid(self) -> Iterator[Pair]:
        return (item for item in read_pairs(self.files) if isinstance(item, Pair) and item.line in self.lines)


def default_number(n_pairs: int) -> int:
    """Pairs to hold out: 2 %, but enough to measure and no more than that takes."""
    return max(1, min(2000, max(n_pairs // 50, min(100, n_pairs // 10))))


def hold_out(files: PairFiles, number: int | None = None, seed: int = 0) -> HeldOut:
    """About `number` pairs none of whose sources and targets occurs in the others; the same ones every time.

    Sources come in the order of their hashes, all pairs of a source together, leaving out each source with a target
    that has another source too. Nothing but hashes is held in memory, and no pair is lost.
    """
    sources, targets, lines = array("Q"), array("Q"), array("q")
    for item in read_pairs(files):
        if isinstance(item, Pair):
            sources.append(text_hash(item.source))
            targets.append(text_hash(item.target))
            lines.append(item.line)
    name = " and ".join(map(str, files.paths))
    number = default_number(len(lines)) if number is None else number
    require(
        0 < number < len(lines),
        f"{number:,} pairs are to be held out, but {name} holds {len(lines):,}.",
        "Ask for fewer, or give a validation file with --valid.",
    )
    chosen = _choose(np.frombuffer(sources, np.uint64), np.frombuffer(targets, np.uint64), number, seed)
    require(
        number // 10 < len(chosen) < len(lines),
        f"Only {len(chosen):,} of {number:,} pairs can be held out of {name}: the others share sources or targets.",
        "Give a validation file with --valid.",
    )
    return HeldOut(files, frozenset(np.frombuffer(lines, np.int64)[chosen].tolist()))


def _choose(sources: Hashes, targets: Hashes, number: int, seed: int) -> NDArray[np.int64]:
    """Rows of the first sources, by hash and seed, that share no target with another source."""
    hashes, source, n_rows = np.unique(sources, return_inverse=True, return_counts=True)
    _, target = np.unique(targets, return_inverse=True)
    # A target is shared if its rows do not all have the same source.
    lowest = np.full(target.max() + 1, len(sources))
    highest = np.zeros_like(lowest)
    np.minimum.at(lowest, target, source)
    np.maximum.at(highest, target, source)
    clean = np.ones(len(n_rows), dtype=bool)
    clean[source[(lowest < highest)[target]]] = False
    # By hash and not by chance: a file that grows keeps most of what was held out before.
    order = np.argsort((hashes ^ np.uint64(text_hash(f"seed {seed}"))) * np.uint64(0x9E3779B97F4A7C15))
    order = order[clean[order] & (n_rows[order] <= number)]
    taken = order[np.cumsum(n_rows[order]) <= number]
    return np.flatnonzero(np.isin(source, taken))


@dataclass(frozen=True)
class Piece:
    """A part of a text, and the white space between it and the next part."""

    text: str
    gap: str


def split_long(text: str, limit: int, count: Callable[[str], int] = len) -> list[Piece]:
    """Cut a text into pieces that count up to `limit`: after sentences, else at spaces, else anywhere.

    All texts and gaps put together give back the text. White space at its start makes a first piece without text.
    """
    start = text[: len(text) - len(text.lstrip())]
    pieces = [Piece("", start)] if start else []
    return pieces + list(_split(text[len(start) :], "", limit, count, 0))


def split_sentences(text: str, most: int = 1, ordinals: bool = True) -> list[Piece]:
    """Cut a text after every `most` sentences; all texts and gaps put together give back the text.

    A point after a short form, a single letter, or a number where the language may have `ordinals`, ends none.
    """
    pieces: list[Piece] = []
    start = 0
    is_small = next(filter(str.isalpha, text), "").islower()
    for match in _ENDS.finditer(text):
        begin, end = match.span(match.lastindex or 1)
        is_line = match.lastindex == 1
        if not is_line and (
            _is_within(text, begin, end, is_small)
            or _is_no_end(text[max(start, begin - LONGEST_SHORT) : begin], ordinals)
        ):
            continue
        begin = start + len(text[start:begin].rstrip())
        if start < begin and end < len(text):
            pieces.append(Piece(text[start:begin], text[begin:end]))
            start = end
    pieces.append(Piece(text[start:], ""))
    return [_together(pieces[i : i + most]) for i in range(0, len(pieces), most)]


def _is_within(text: str, begin: int, end: int, is_small: bool) -> bool:
    """A small letter after a point or a quotation goes on, unless the text's own first letter is small."""
    mark = text[begin - 1 : begin]
    return text[end : end + 1].islower() and mark not in ("!", "?") and not (is_small and mark in (".", "…"))


def _is_no_end(before: str, ordinals: bool) -> bool:
    if before.rstrip(".").isdigit():  # of a list: it goes with what follows
        return True
    is_short = _SHORT.search(before) and not _I.search(before)
    return bool(is_short or (ordinals and _NUMBER.search(before)))


def _together(pieces: list[Piece]) -> Piece:
    return Piece(join_pieces([*pieces[:-1], Piece(pieces[-1].text, "")]), pieces[-1].gap)


def usual_sentences(texts: Iterable[str]) -> int:
    """So many sentences or fewer have 95 % of the texts."""
    counts = np.array([len(split_sentences(text)) for text in texts] or [1])
    return int(np.quantile(counts, 0.95, method="inverted_cdf"))


def join_pieces(pieces: Iterable[Piece]) -> str:
    """The reverse of `split_long`."""
    return "".join(itertools.chain.from_iterable((piece.text, piece.gap) for piece in pieces))


def join_translated(pieces: list[Piece], texts: list[str]) -> str:
    """The same with other texts in the place of the pieces': the spaces behind sentences are those of their script."""
    told = (Piece(text, _gap(piece, text)) for piece, text in zip(pieces[:-1], texts, strict=False))
    return join_pieces([*told, Piece(texts[-1], pieces[-1].gap)])


def _gap(piece: Piece, text: str) -> str:
    if text.endswith(tuple(_SPACELESS)):
        return "" if piece.gap == " " else piece.gap
    return piece.gap or (" " if piece.text.endswith(tuple(_SPACELESS)) else "")


def _split(text: str, gap: str, limit: int, count: Callable[[str], int], level: int) -> Iterator[Piece]:
    if count(text) <= limit:
        yield Piece(text, gap)
        return
    if level == len(_CUTS):
        yield from _chop(text, gap, limit, count)
        return
    waiting: Piece | None = None
    for unit in _units(text, gap, _CUTS[level]):
        if waiting is not None:
            joined = waiting.text + waiting.gap + unit.text
            if count(joined) <= limit:
                waiting = Piece(joined, unit.gap)
                continue
            yield waiting
        waiting = None
        if count(unit.text) <= limit:
            waiting = unit
        else:
            yield from _split(unit.text, unit.gap, limit, count, level + 1)
    if waiting is not None:
        yield waiting


def _units(text: str, gap: str, cut: re.Pattern[str]) -> Iterator[Piece]:
    """The text at its finest: every place to cut is used."""
    start = 0
    for match in cut.finditer(text):
        group = match.lastindex or 1
        begin, end = match.span(group)
        if start < begin and end < len(text):
            yield Piece(text[start:begin], text[begin:end])
            start = end
    end = len(text.rstrip()) if not gap else len(text)
    yield Piece(text[start:end], text[end:] + gap)


def _chop(text: str, gap: str, limit: int, count: Callable[[str], int]) -> Iterator[Piece]:
    """Pieces of as many characters as fit, at least one."""
    while text:
        size = 1
        while size < len(text) and count(text[: 2 * size]) <= limit:
            size *= 2
        low, high = min(size, len(text)), min(2 * size, len(text))
        while low < high:  # low fits, high + 1 does not
            middle = (low + high + 1) // 2
            low, high = (middle, high) if count(text[:middle]) <= limit else (low, middle - 1)
        yield Piece(text[:low], "" if low < len(text) else gap)
        text = text[low:]
