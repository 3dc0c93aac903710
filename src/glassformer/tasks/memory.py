"""Translation memory: for each sentence, the training sentence most like it, and that one's translation (or label).

Likeness is the cosine between sets of character 4-grams (n-grams suit any script), rare ones counting more. The
training pairs are read twice and never held together; what stays grows with the sentences looked up only.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from glassformer.data.pairs import BadLine, Pair, PairFiles, read_pairs
from glassformer.errors import require

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
A = TypeVar("A")

ORDER = 4  # characters of an n-gram: 5 finds no better sentences, 3 finds worse ones
BUCKETS = 2**22  # n-grams are known by a hash; so many keep two from meeting by chance, in 32 MB
CHUNK = 2**21  # characters of training text compared at a time
_PAD = " " * (ORDER - 1)  # so that even single characters are compared, above all the first and the last
_DIGITS = 9  # of a likeness that count: the rest depends on the order of summing
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Recalled:
    """What the memory says about each of the pairs looked up, in their order."""

    n_pairs: int  # in the memory
    n_bad: int
    answers: list[str]  # empty where the memory holds nothing alike
    known: list[bool]  # whether the source is in the memory, letter for letter
    n_same_pairs: int  # looked-up pairs that are in the memory with that very target
    words: Counter[str]  # how often each word of the sources occurs in the memory's sources


def recall(files: PairFiles, pairs: Sequence[Pair]) -> Recalled:
    """Look up each pair's source; one that is in the memory answers with its most common target, else the first."""
    wanted = {word for pair in pairs for word in words_of(pair.source)}
    words: Counter[str] = Counter()
    targets: dict[str, Counter[str]] = {pair.source: Counter() for pair in pairs}
    n_each: Ints = np.zeros(BUCKETS, dtype=np.int64)
    n_pairs = n_bad = 0
    for chunk, n_skipped in _chunks(files):
        n_pairs, n_bad = n_pairs + len(chunk), n_bad + n_skipped
        for pair in chunk:
            words.update(word for word in words_of(pair.source) if word in wanted)
            if pair.source in targets:
                targets[pair.source][pair.target] += 1
        n_each += np.bincount(_grams([pair.source for pair in chunk])[0], minlength=BUCKETS)
    require(
        n_pairs > 0,
        f"{' and '.join(map(str, files.paths))} holds no usable pair.",
        "The translation memory needs the training pairs.",
    )
    chunks = (([pair.source for pair in chunk], [pair.target for pair in chunk]) for chunk, _ in _chunks(files))
    nearest = _nearest(chunks, [pair.source for pair in pairs], _rarity(n_pairs, n_each))
    known = [bool(targets[pair.source]) for pair in pairs]
    return Recalled(
        n_pairs=n_pairs,
        n_bad=n_bad,
        answers=[
            targets[pair.source].most_common(1)[0][0] if is_known else found or ""
            for pair, is_known, found in zip(pairs, known, nearest, strict=True)
        ],
        known=known,
        n_same_pairs=sum(pair.target in targets[pair.source] for pair in pairs),
        words=words,
    )


def words_of(text: str) -> list[str]:
    """Words without punctuation and case."""
    return re.findall(r"\w+", text.casefold())


def nearest_answers(texts: Sequence[str], answers: Sequence[A], wanted: list[str]) -> list[A | None]:
    """The answer of the text most like each wanted one, the first of equals; None where nothing is alike."""
    n_each: Ints = np.zeros(BUCKETS, dtype=np.int64)
    parts = list(_parts(texts))
    for part in parts:
        n_each += np.bincount(_grams(list(texts[part]))[0], minlength=BUCKETS)
    return _nearest(((list(texts[p]), answers[p]) for p in parts), wanted, _rarity(len(texts), n_each))


def _rarity(n: int, n_each: Ints) -> Floats:
    """How much each n-gram counts."""
    rarity: Floats = 1 + np.log((n + 1) / (n_each + 1))
    return rarity


def _nearest(chunks: Iterable[tuple[list[str], Sequence[A]]], sources: list[str], idf: Floats) -> list[A | None]:
    """The answer of the most similar text, the first of equals."""
    buckets, rows = _grams(sources)
    order = np.argsort(rows, kind="stable")
    buckets, rows = buckets[order], rows[order]
    ends = np.searchsorted(rows, np.arange(len(sources) + 1))
    squares = idf**2
    norms = _norms(squares[buckets], rows, len(sources))
    best: Floats = np.zeros(len(sources))
    found: list[A | None] = [None] * len(sources)
    for texts, answers in chunks:
        if not texts:
            continue
        index = _Index(texts, squares)
        lists = index.find(buckets)
        for i in range(len(sources)):
            of_source = slice(ends[i], ends[i + 1])
            likeness = np.round(index.compare(buckets[of_source], lists[of_source]) / norms[i], _DIGITS)
            at = int(likeness.argmax())
            if likeness[at] > best[i]:
                best[i], found[i] = likeness[at], answers[at]
    return found


class _Index:
    """For each n-gram the texts that have it."""

    def __init__(self, texts: list[str], squares: Floats) -> None:
        self.buckets, self.rows = _grams(texts)
        self.squares = squares
        self.norms = _norms(squares[self.buckets], self.rows, len(texts))

    def find(self, buckets: Ints) -> Ints:
        """Where in `rows` the texts with each of some n-grams begin and end."""
        return np.stack([np.searchsorted(self.buckets, buckets, side) for side in ("left", "right")], axis=1)

    def compare(self, buckets: Ints, lists: Ints) -> Floats:
        """The likeness of one sentence to every text, but for the length of its own vector."""
        rows = np.concatenate([self.rows[begin:end] for begin, end in lists])
        weights = np.repeat(self.squares[buckets], lists[:, 1] - lists[:, 0])
        dots = np.bincount(rows, weights=weights, minlength=len(self.norms))
        likeness: Floats = dots / self.norms
        return likeness


def _norms(squares: Floats, rows: Ints, n: int) -> Floats:
    norms: Floats = np.sqrt(np.bincount(rows, weights=squares, minlength=n))
    return norms


def _grams(texts: list[str]) -> tuple[Ints, Ints]:
    """Each different n-gram of each text, as its bucket and the text's number, sorted by bucket."""
    lines = "".join(f"\n{_PAD}{' '.join(text.casefold().split())}{_PAD}" for text in texts)
    characters = np.frombuffer(lines.encode("utf-32-le"), dtype=np.uint32).astype(np.uint64)
    is_break = characters == ord("\n")
    n = max(0, len(characters) - ORDER + 1)
    hashes, crosses = np.zeros(n, dtype=np.uint64), np.zeros(n, dtype=bool)
    for i in range(ORDER):
        hashes = (hashes ^ characters[i : i + n]) * _MIX
        hashes ^= hashes >> np.uint64(29)
        crosses |= is_break[i : i + n]
    rows = np.cumsum(is_break)[:n] - 1
    # One number for both, since sorting is quick on plain numbers: the bucket above, the text below.
    keys = ((hashes % np.uint64(BUCKETS)).astype(np.int64) << 32 | rows)[~crosses]
    keys.sort()
    keys = keys[np.diff(keys, prepend=-1) != 0]
    return keys >> 32, keys & (2**32 - 1)


def _parts(texts: Sequence[str]) -> Iterator[slice]:
    """Neighbours of bounded size."""
    begin = size = 0
    for i, text in enumerate(texts):
        size += len(text)
        if size >= CHUNK or i == len(texts) - 1:
            yield slice(begin, i + 1)
            begin, size = i + 1, 0


def _chunks(files: PairFiles) -> Iterator[tuple[list[Pair], int]]:
    """The pairs in parts of bounded size, each with the number of bad lines on the way."""
    chunk: list[Pair] = []
    size = n_bad = 0
    for item in read_pairs(files):
        if isinstance(item, BadLine):
            n_bad += 1
            continue
        chunk.append(item)
        size += len(item.source)
        if size >= CHUNK:
            yield chunk, n_bad
            chunk, size, n_bad = [], 0, 0
    yield chunk, n_bad
