"""Second order with skips: pairs of any earlier word and the last one vote for the next word.

A pair's row holds shares of what followed it, but the rows of all pairs are added up: votes, no probabilities. Where no
pair has a say, the last word's own row votes alone. `MaskedSkips` finds out which pairs help and silences the others.
"""

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from glassformer.errors import require
from glassformer.ladder.counts import UNKNOWN, Codes, Counts, Ids
from glassformer.ladder.rung import Explanation, Matrix, Prediction, Reason, Rung, Scores, Words, check_sequences

MOST_PAIRS = 50_000_000


class Skips(Rung):
    """Every pair (earlier word, last word) that was seen has a vote."""

    name = "second order with skips"
    kind = "votes"

    def __init__(self, vocabulary: Iterable[str] | None = None) -> None:
        self._given = None if vocabulary is None else tuple(vocabulary)
        self.codes = Codes(())
        self.pairs: Counts  # key: last word * n_words + earlier word
        self.alone: Counts  # key: last word
        self.kept: NDArray[np.bool_]  # for each row of pairs, whether it has a vote

    def fit(self, sequences: Iterable[Words], weights: Sequence[float] | None = None) -> Self:
        listed, each = check_sequences(sequences, weights)
        codes = Codes.of(listed, self._given)
        coded = [codes.encode(sequence) for sequence in listed]
        self.pairs = _count_pairs(coded, each, len(codes))
        self.alone = _count_alone(coded, each, len(codes))
        self.kept = self.find_mask()
        self.codes, self.vocabulary = codes, codes.vocabulary
        return self

    def find_mask(self) -> NDArray[np.bool_]:
        """Which pairs may vote: here, all."""
        return np.ones(len(self.pairs.keys), dtype=np.bool_)

    def predict(self, prefix: Words) -> Prediction:
        return self.explain(prefix).prediction

    def explain(self, prefix: Words) -> Explanation:
        self.check_fitted()
        reasons = self._pair_reasons(prefix)
        if not any(reason.weight for reason in reasons):
            reasons += self._alone_reasons(prefix)
        scores = sum((reason.weight * reason.scores for reason in reasons), np.zeros(len(self.vocabulary)))
        return Explanation(Prediction(self.vocabulary, scores, self.kind), reasons)

    def row(self, earlier: str, last: str) -> Scores:
        """The votes of one pair, kept or not; all zero if it was never seen."""
        self.check_fitted()
        ids = self.codes.encode([earlier, last])
        key = UNKNOWN if UNKNOWN in ids else ids[1] * len(self.codes) + ids[0]
        return self.pairs.shares(int(self.pairs.find(np.array([key]))[0]))

    def table(self, last: str | None = None) -> Matrix:
        """The rows of all pairs that may vote, or of those with this last word."""
        self.check_fitted()
        n = len(self.codes)
        ids = self.codes.encode([] if last is None else [last])
        mine = self.kept & (np.isin(self.pairs.keys // n, ids) if last is not None else True)
        rows = np.flatnonzero(mine)
        require(len(rows) <= MOST_PAIRS // n, f"The table would have {len(rows):,} rows.", "Ask for one last word.")
        values = np.array([self.pairs.shares(int(row)) for row in rows]).reshape(len(rows), n)
        return Matrix(tuple(self._name(int(row)) for row in rows), self.vocabulary, values)

    def mask(self) -> Matrix:
        """A row for each last word, with 1 for the earlier words that may vote together with it."""
        self.check_fitted()
        n = len(self.codes)
        require(n * n <= MOST_PAIRS, f"The mask would have {n:,} rows and columns.", "Ask for table(last) instead.")
        values = np.zeros(n * n)
        values[self.pairs.keys[self.kept]] = 1
        return Matrix(self.vocabulary, self.vocabulary, values.reshape(n, n))

    def _pair_reasons(self, prefix: Words) -> list[Reason]:
        """All pairs that were seen in fit; the mask is their weight."""
        ids = self.codes.encode(prefix)
        if len(ids) < 2 or ids[-1] == UNKNOWN:
            return []
        earlier = _in_order_of_appearance(ids[:-1])
        rows = self.pairs.find(ids[-1] * len(self.codes) + earlier[earlier != UNKNOWN])
        seen = rows[rows != UNKNOWN].tolist()
        return [Reason(self._name(row), float(self.kept[row]), self.pairs.shares(row)) for row in seen]

    def _alone_reasons(self, prefix: Words) -> list[Reason]:
        last = self.codes.encode(prefix[len(prefix) - 1 :])
        row = int(self.alone.find(last)[0]) if len(last) else UNKNOWN
        return [] if row == UNKNOWN else [Reason(prefix[-1], 1.0, self.alone.shares(row))]

    def _name(self, row: int) -> str:
        last, earlier = divmod(int(self.pairs.keys[row]), len(self.codes))
        return pair_name(self.codes.vocabulary[earlier], self.codes.vocabulary[last])


class MaskedSkips(Skips):
    """Skips with a mask that is found from the data: only pairs that tell more than their last word does may vote.

    Each pair is put to the proof by leaving one out: would its other cases, mixed with the last word's own row, have
    guessed each case better than that row alone? The gain, summed over its cases, must be above log m + `price` (in
    nats) if m pairs share the last word: of many useless ones some gain a little by chance. A last word that was seen
    less than `enough` times gives nothing to leave out; its pairs are taken at their word, and stay if their rows are
    surer (of lower entropy) than its own.
    """

    name = "second order with skips and a mask"

    def __init__(self, vocabulary: Iterable[str] | None = None, enough: float = 10, price: float = 1.0) -> None:
        super().__init__(vocabulary)
        self.enough = enough
        self.price = price

    def find_mask(self) -> NDArray[np.bool_]:
        last = self._last()
        surer = entropies(self.pairs) < entropies(self.alone)[last] - 1e-9
        rivals = np.bincount(last, minlength=len(self.alone.keys))[last]
        proved = self.gains() > np.log(rivals) + self.price
        return np.where(self.alone.totals[last] < self.enough, surer, proved)

    def gains(self) -> Scores:
        """For each pair, how much better it guesses its cases than the last word alone, each case left out in turn."""
        pairs, rows, last = self.pairs, self.pairs.rows_of_entries, self._last()
        one = np.minimum(1, pairs.counts)  # a case, or the part of one that there is
        others = pairs.counts - one
        share = (self.alone.at(last[rows], pairs.words) - one) / np.maximum(self.alone.totals[last[rows]] - one, 1e-300)
        # (others + kinds * share) / (n + kinds) divided by share; where the share is 0, the others are 0 too.
        expected = np.divide(others, share, out=np.zeros(len(rows)), where=others > 0)
        better = (expected + pairs.kinds[rows]) / (pairs.totals[rows] - one + pairs.kinds[rows])
        return np.bincount(rows, pairs.counts * np.log(better), len(pairs.keys)).astype(np.float64)

    def _last(self) -> Ids:
        """For each pair, the row of its last word."""
        return self.alone.find(self.pairs.keys // self.pairs.n_words)


def pair_name(earlier: str, last: str) -> str:
    return f"{earlier} … {last}"


def entropies(counts: Counts) -> Scores:
    """How unsure each row is, in nats."""
    shares = counts.counts / counts.totals[counts.rows_of_entries]
    return np.bincount(counts.rows_of_entries, -shares * np.log(shares), len(counts.keys)).astype(np.float64)


def _in_order_of_appearance(ids: Ids) -> Ids:
    """Each id once, where it first stands."""
    return ids[np.sort(np.unique(ids, return_index=True)[1])]


def _count_pairs(sequences: list[Ids], weights: Scores, n_words: int) -> Counts:
    """At each place with a word after it, each different earlier word makes one pair with the last word."""
    keys: list[Ids] = []
    firsts = [np.sort(np.unique(ids, return_index=True)[1]) for ids in sequences]
    sizes = [np.searchsorted(first, np.arange(1, len(ids) - 1)) for first, ids in zip(firsts, sequences, strict=True)]
    total = sum(int(size.sum()) for size in sizes)
    require(
        total <= MOST_PAIRS,
        f"The sequences hold {total:,} pairs of words; at most {MOST_PAIRS:,} can be counted.",
        "Cut the data into shorter sequences, such as lines or sentences.",
    )
    words: list[Ids] = []
    for first, size, ids in zip(firsts, sizes, sequences, strict=True):
        # Place t sees the first size[t] different words: 0, then 0 1, then 0 1 2 …
        ramp = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        keys.append(np.repeat(ids[1:-1], size) * n_words + ids[first][ramp])
        words.append(np.repeat(ids[2:], size))
    each = np.repeat(weights, [len(part) for part in words])
    return Counts.count(np.concatenate(keys), np.concatenate(words), each, n_words)


def _count_alone(sequences: list[Ids], weights: Scores, n_words: int) -> Counts:
    last = np.concatenate([ids[:-1] for ids in sequences])
    words = np.concatenate([ids[1:] for ids in sequences])
    return Counts.count(last, words, np.repeat(weights, [max(0, len(ids) - 1) for ids in sequences]), n_words)
