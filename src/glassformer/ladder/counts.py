"""The lowest rungs, which do not look at the words before; and the counting that all counting rungs share.

Words become ids (`Codes`), and what followed what becomes sorted arrays (`Counts`): only what was seen takes room, and
a million words are counted and looked up at once. No smoothing here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from glassformer.errors import UserError, require
from glassformer.ladder.rung import Explanation, Prediction, Reason, Rung, Scores, Words, check_sequences, log

Ids = NDArray[np.int64]
UNKNOWN = -1


class Codes:
    """Words as numbers: their places in the vocabulary, -1 for a word that is not there."""

    def __init__(self, vocabulary: Iterable[str]) -> None:
        self.vocabulary = tuple(sorted(set(vocabulary)))
        self.places = {word: i for i, word in enumerate(self.vocabulary)}
        self._by_character = _table_of_characters(self.vocabulary)

    @classmethod
    def of(cls, sequences: Sequence[Words], vocabulary: Iterable[str] | None) -> Self:
        """The given vocabulary, which must hold all words; or the one of the sequences."""
        seen = {word for sequence in sequences for word in (set(sequence))}
        codes = cls(seen if vocabulary is None else vocabulary)
        missing = sorted(seen - codes.places.keys())
        if missing:
            raise UserError(
                f"The data holds {len(missing)} words that the given vocabulary lacks, such as {missing[0]!r}.",
                "Add them to the vocabulary, or give none.",
            )
        return codes

    def __len__(self) -> int:
        return len(self.vocabulary)

    def encode(self, words: Words) -> Ids:
        if isinstance(words, str):  # characters: one look into a table for all of them
            points = np.frombuffer(words.encode("utf-32-le", "surrogatepass"), dtype="<u4")
            ids: Ids = self._by_character[np.minimum(points, len(self._by_character) - 1)]
            return ids
        return np.fromiter((self.places.get(word, UNKNOWN) for word in words), dtype=np.int64, count=len(words))


def _table_of_characters(vocabulary: tuple[str, ...]) -> Ids:
    characters = {ord(word): i for i, word in enumerate(vocabulary) if len(word) == 1}
    table = np.full(max(characters, default=-1) + 2, UNKNOWN, dtype=np.int64)  # the last place is for all above
    table[list(characters)] = list(characters.values())
    return table


@dataclass(frozen=True)
class Counts:
    """How often each word followed each key, with rows for the keys that were seen only.

    Row r has the key keys[r]; its entries stand at starts[r]:starts[r + 1] of words and counts.
    """

    keys: Ids
    starts: Ids
    words: Ids
    counts: Scores
    n_words: int

    @classmethod
    def count(cls, keys: Ids, words: Ids, weights: Scores, n_words: int) -> Self:
        """Add up the weights of equal (key, word); words lie in 0 … n_words - 1, keys are not negative."""
        # Key and word as one number: sorting it sorts rows, and the words in each row.
        require(
            int(keys.max(initial=0)) < 2**63 // max(1, n_words) - 1,
            f"{n_words:,} different words are too many to count what follows what.",
            "Cut the words into smaller pieces.",
        )
        pairs, counts = _add_up(keys * n_words + words, weights)
        key_of = pairs // n_words
        starts = np.flatnonzero(np.diff(key_of, prepend=-1))
        return cls(key_of[starts], np.append(starts, len(pairs)), pairs % n_words, counts, n_words)

    @cached_property
    def totals(self) -> Scores:
        return np.add.reduceat(self.counts, self.starts[:-1]) if len(self.keys) else np.zeros(0)

    @cached_property
    def kinds(self) -> Ids:
        """How many different words followed each key."""
        return np.diff(self.starts)

    @cached_property
    def rows_of_entries(self) -> Ids:
        return np.repeat(np.arange(len(self.keys)), self.kinds)

    @cached_property
    def _pairs(self) -> Ids:
        return self.rows_of_entries * self.n_words + self.words  # sorted, as rows and the words in them are

    def find(self, keys: Ids) -> Ids:
        """The row of each key, -1 where it was never seen."""
        if not len(self.keys):
            return np.full(keys.shape, UNKNOWN)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, places, UNKNOWN)

    def row(self, row: int) -> Scores:
        """The counts of one row, for every word; all zero for row -1."""
        dense = np.zeros(self.n_words)
        if row != UNKNOWN:
            entries = slice(self.starts[row], self.starts[row + 1])
            dense[self.words[entries]] = self.counts[entries]
        return dense

    def shares(self, row: int) -> Scores:
        """The same as parts of one; all zero for row -1."""
        return self.row(row) / (1.0 if row == UNKNOWN else self.totals[row])

    def entries(self, rows: Ids, words: Ids) -> Ids:
        """Where the entry of each (row, word) stands, -1 where either is -1 or they never met."""
        if not len(self.words):
            return np.full(rows.shape, UNKNOWN)
        wanted = np.where((rows == UNKNOWN) | (words == UNKNOWN), UNKNOWN, rows * self.n_words + words)
        places = np.minimum(np.searchsorted(self._pairs, wanted), len(self._pairs) - 1)
        return np.where(self._pairs[places] == wanted, places, UNKNOWN)

    def at(self, rows: Ids, words: Ids) -> Scores:
        """The count of each (row, word), zero where they have no entry."""
        entries = self.entries(rows, words)
        return np.where(entries == UNKNOWN, 0.0, self.counts[entries]) if len(self.words) else np.zeros(rows.shape)


def _add_up(numbers: Ids, weights: Scores) -> tuple[Ids, Scores]:
    """Each number once, sorted, and the sum of its weights."""
    if len(weights) and (weights == weights[0]).all():  # mere counting is several times faster
        unique, times = np.unique(numbers, return_counts=True)
        return unique, times * weights[0]
    unique, places = np.unique(numbers, return_inverse=True)
    return unique, np.bincount(places, weights, len(unique)).astype(np.float64)


class _Fixed(Rung):
    """A rung that says the same whatever came before."""

    reason: str

    def __init__(self, vocabulary: Iterable[str] | None = None) -> None:
        self._given = None if vocabulary is None else tuple(vocabulary)
        self._shares: Scores = np.zeros(0)
        self._codes = Codes(())

    def _adopt(self, codes: Codes, shares: Scores) -> None:
        self._codes, self.vocabulary, self._shares = codes, codes.vocabulary, shares

    def predict(self, prefix: Words) -> Prediction:  # noqa: ARG002 (all rungs have one face)
        self.check_fitted()
        return Prediction(self.vocabulary, self._shares, self.kind)

    def explain(self, prefix: Words) -> Explanation:
        prediction = self.predict(prefix)
        return Explanation(prediction, [Reason(self.reason, 1.0, prediction.scores)])

    def log_probabilities(self, sequence: Words) -> Scores:
        self.check_fitted()
        ids = self._codes.encode(sequence)
        return log(np.where(ids == UNKNOWN, 0.0, self._shares[ids]))


class Uniform(_Fixed):
    """Every word of the vocabulary alike."""

    name = "uniform"
    reason = "every word alike"

    def fit(self, sequences: Iterable[Words], weights: Sequence[float] | None = None) -> Self:
        listed, _ = check_sequences(sequences, weights)
        codes = Codes.of(listed, self._given)
        self._adopt(codes, np.full(len(codes), 1 / len(codes)))
        return self


class Unigram(_Fixed):
    """Each word as often as it was in the data."""

    name = "unigram"
    reason = "how often each word was seen"

    def fit(self, sequences: Iterable[Words], weights: Sequence[float] | None = None) -> Self:
        listed, each = check_sequences(sequences, weights)
        codes = Codes.of(listed, self._given)
        ids = np.concatenate([codes.encode(sequence) for sequence in listed])
        counts = np.bincount(ids, np.repeat(each, [len(s) for s in listed]), minlength=len(codes))
        self._adopt(codes, counts / counts.sum())
        return self
