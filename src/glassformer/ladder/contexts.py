"""Contexts of every length up to an order, counted: a tree whose level k knows the last k words.

A context of k words is its last k - 1 words (a row of the level above) and one word more. So each is one whole number,
however large the vocabulary, and levels are built and searched for all positions at once. Each sequence begins with a
mark, so that what stands first is counted too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from glassformer.ladder.counts import UNKNOWN, Codes, Counts, Ids
from glassformer.ladder.rung import Scores, Words


@dataclass(frozen=True)
class Stream:
    """Sequences one after another, each with a start mark before it, and the places to predict in them."""

    words: Ids
    places: Ids
    depths: Ids  # how many words stand before each place in its sequence, the start mark counted

    @classmethod
    def of(cls, sequences: Sequence[Words], codes: Codes) -> Self:
        """Every word of the sequences is to be predicted."""
        lengths = np.array([len(sequence) for sequence in sequences], dtype=np.int64)
        start = np.array([len(codes)], dtype=np.int64)
        parts = [part for sequence in sequences for part in (start, codes.encode(sequence))]
        first = np.cumsum(lengths + 1) - lengths  # where each sequence's first word stands
        depths = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths) + 1
        return cls(np.concatenate([start[:0], *parts]), np.repeat(first, lengths) + depths - 1, depths)

    @classmethod
    def after(cls, prefix: Words, codes: Codes, order: int) -> Self:
        """Only what comes after the prefix is to be predicted, from its last `order` words."""
        last = codes.encode(prefix[max(0, len(prefix) - order) :])
        words = np.concatenate([[len(codes)], last])
        return cls(words, np.array([len(words)]), np.array([len(words)]))

    @property
    def targets(self) -> Ids:
        return self.words[self.places]

    def back(self, k: int) -> Ids:
        """The word k places before; unknown where the sequence does not reach back so far."""
        return np.where(k <= self.depths, self.words[self.places - np.minimum(k, self.depths)], UNKNOWN)


class ContextTree:
    """How often each word followed each context of 0 … order words."""

    def __init__(self, stream: Stream, weights: Scores, order: int, n_words: int) -> None:
        self.n_words = n_words
        self.levels: list[Counts] = []
        rows = np.zeros(len(stream.places), dtype=np.int64)
        for k in range(order + 1):
            keys = self._keys(rows, stream, k)
            seen = keys != UNKNOWN
            self.levels.append(Counts.count(keys[seen], stream.targets[seen], weights[seen], n_words))
            rows = self.levels[k].find(keys) if k < order else rows

    def find(self, stream: Stream) -> Iterator[Ids]:
        """For each level, the rows of the contexts; -1 where a context was never seen, or is too short."""
        rows = np.zeros(len(stream.places), dtype=np.int64)
        for k, level in enumerate(self.levels):
            rows = level.find(self._keys(rows, stream, k))
            yield rows

    def _keys(self, rows: Ids, stream: Stream, k: int) -> Ids:
        if k == 0:
            return rows
        word = stream.back(k)
        known: NDArray[np.bool_] = (rows != UNKNOWN) & (word != UNKNOWN)
        return np.where(known, rows * (self.n_words + 1) + word, UNKNOWN)

    def variety(self, k: int) -> Scores:
        """For each entry of level k, after how many different longer contexts its word came.

        Nothing is longer than a context with the start mark: there it is how often.
        """
        level, longer = self.levels[k], self.levels[k + 1]
        parents = longer.keys // (self.n_words + 1)
        varied = level.entries(parents[longer.rows_of_entries], longer.words)
        at_start = (level.keys % (self.n_words + 1) == self.n_words) & (k > 0)
        return np.where(
            at_start[level.rows_of_entries], level.counts, np.bincount(varied, minlength=len(level.words)).astype(float)
        )

    def context(self, k: int, row: int) -> list[int]:
        """The ids of the words that make a row of level k, oldest first; n_words is the start mark."""
        words: list[int] = []
        for level in reversed(self.levels[1 : k + 1]):
            row, word = divmod(int(level.keys[row]), self.n_words + 1)
            words.append(word)
        return words
