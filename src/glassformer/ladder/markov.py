"""Markov rungs: the next word from the last ones, by the exact counted row or with shorter contexts to fall back on."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Self

import numpy as np

from glassformer.errors import require
from glassformer.ladder.contexts import ContextTree, Stream
from glassformer.ladder.counts import UNKNOWN, Codes, Counts
from glassformer.ladder.rung import Explanation, Matrix, Prediction, Reason, Rung, Scores, Words, check_sequences, log

START = "(start)"
DISCOUNT = 0.75  # what a count is too high by, as Church and Gale measured it
LARGEST_TABLE = 5_000_000


class _ContextRung(Rung):
    """What both share: a tree of counted contexts."""

    def __init__(self, order: int, vocabulary: Iterable[str] | None = None) -> None:
        require(order >= 0, f"The order is {order}.", "Give 0 or more: how many words the next one depends on.")
        self.order = order
        self._given = None if vocabulary is None else tuple(vocabulary)
        self._codes = Codes(())
        self._tree: ContextTree

    def fit(self, sequences: Iterable[Words], weights: Sequence[float] | None = None) -> Self:
        listed, each = check_sequences(sequences, weights)
        codes = Codes.of(listed, self._given)
        stream = Stream.of(listed, codes)
        self._tree = ContextTree(stream, np.repeat(each, [len(s) for s in listed]), self.order, len(codes))
        self._codes, self.vocabulary = codes, codes.vocabulary
        return self

    def predict(self, prefix: Words) -> Prediction:
        return self.explain(prefix).prediction

    def log_probabilities(self, sequence: Words) -> Scores:
        return self._logs([sequence])

    def log_probability(self, sequences: Iterable[Words]) -> float:
        return float(self._logs(list(sequences)).sum())

    def _logs(self, sequences: Sequence[Words]) -> Scores:
        self.check_fitted()
        stream = Stream.of(sequences, self._codes)
        return log(np.where(stream.targets == UNKNOWN, 0.0, self._probabilities(stream)))

    @abstractmethod
    def _probabilities(self, stream: Stream) -> Scores:
        """p of each target, given what stands before it; the numbers of `predict` for all places at once."""

    def _rows(self, prefix: Words) -> list[int]:
        self.check_fitted()
        return [int(rows[0]) for rows in self._tree.find(Stream.after(prefix, self._codes, self.order))]

    def _name(self, k: int, row: int) -> str:
        ids = self._tree.context(k, row)
        return " ".join(START if i == len(self.vocabulary) else self.vocabulary[i] for i in ids)


class Markov(_ContextRung):
    """Exactly the row of the last `order` words; all zero where they were never seen together.

    A prefix shorter than the order stands for the start of a sequence, which has rows of its own.
    """

    def __init__(self, order: int = 1, vocabulary: Iterable[str] | None = None) -> None:
        super().__init__(order, vocabulary)
        self.name = {0: "unigram", 1: "first order", 2: "second order"}.get(order, f"order {order}")

    @property
    def n_rows(self) -> int:
        """How many rows the full table has: one for each way to choose the last words."""
        return int(len(self.vocabulary) ** self.order)

    @property
    def n_elements(self) -> int:
        return self.n_rows * len(self.vocabulary)

    def explain(self, prefix: Words) -> Explanation:
        k = min(self.order, len(prefix) + 1)
        row = self._rows(prefix)[k]
        words = [START, *prefix][len(prefix) + 1 - k :]
        shares = self._tree.levels[k].shares(row)
        return Explanation(Prediction(self.vocabulary, shares, self.kind), [Reason(" ".join(words), 1.0, shares)])

    def table(self) -> Matrix:
        """The rows that were seen, by name ('battery ran'); of first order a row for every word."""
        self.check_fitted()
        level = self._tree.levels[self.order]
        contexts = {tuple(self._tree.context(self.order, row)): row for row in range(len(level.keys))}
        rows = {context: row for context, row in contexts.items() if len(self.vocabulary) not in context}
        if self.order == 1:
            rows = {(i,): rows.get((i,), UNKNOWN) for i in range(len(self.vocabulary))}
        require(
            len(rows) * len(self.vocabulary) <= LARGEST_TABLE,
            f"The table would hold {len(rows) * len(self.vocabulary):,} numbers.",
            "Ask for single rows with predict.",
        )
        names = tuple(" ".join(self.vocabulary[i] for i in context) for context in sorted(rows))
        values = np.array([level.shares(rows[context]) for context in sorted(rows)])
        return Matrix(names, self.vocabulary, values.reshape(len(rows), len(self.vocabulary)))

    def _probabilities(self, stream: Stream) -> Scores:
        p = np.zeros(len(stream.places))
        for k, rows in enumerate(self._tree.find(stream)):
            level = self._tree.levels[k]
            mine = (np.minimum(stream.depths, self.order) == k) & (rows != UNKNOWN)
            p[mine] = level.at(rows[mine], stream.targets[mine]) / level.totals[rows[mine]]
        return p


class BackOff(_ContextRung):
    """All orders up to n mixed, so that no word of the vocabulary is ever impossible (interpolated Kneser-Ney).

    Every count gives DISCOUNT away, and what a row gives away is shared out by the next shorter context; the shortest
    shares it out to all words alike. A shorter context does not count how often a word followed it, but after how many
    different longer contexts: "Francisco" is frequent, yet follows "San" only, so it is no good guess elsewhere.
    """

    def __init__(self, order: int, vocabulary: Iterable[str] | None = None) -> None:
        super().__init__(order, vocabulary)
        self.name = f"order {order} with back-off"
        self._kept: list[Counts] = []  # for each level the shares that its rows keep
        self._given_away: list[Scores] = []

    def fit(self, sequences: Iterable[Words], weights: Sequence[float] | None = None) -> Self:
        super().fit(sequences, weights)
        self._kept, self._given_away = [], []
        for k, level in enumerate(self._tree.levels):
            counts = replace(level, counts=level.counts if k == self.order else self._tree.variety(k))
            kept = counts.counts - DISCOUNT * np.minimum(1, counts.counts)  # a part of a count gives a part of it
            self._kept.append(replace(level, counts=kept / counts.totals[level.rows_of_entries]))
            self._given_away.append(1 - self._kept[k].totals)
        return self

    def explain(self, prefix: Words) -> Explanation:
        left = 1.0
        reasons = []
        for k, row in reversed(list(enumerate(self._rows(prefix)))):
            if row != UNKNOWN:
                given_away = float(self._given_away[k][row])
                name = self._name(k, row) or "any words"
                reasons.append(Reason(name, left * (1 - given_away), self._kept[k].shares(row)))
                left *= given_away
        reasons.append(Reason("every word alike", left, np.full(len(self.vocabulary), 1 / len(self.vocabulary))))
        scores = sum((reason.weight * reason.scores for reason in reasons), np.zeros(len(self.vocabulary)))
        return Explanation(Prediction(self.vocabulary, scores, self.kind), reasons)

    def _probabilities(self, stream: Stream) -> Scores:
        p = np.full(len(stream.places), 1 / len(self.vocabulary))
        for kept, given_away, rows in zip(self._kept, self._given_away, self._tree.find(stream), strict=True):
            seen = rows != UNKNOWN
            p[seen] = kept.at(rows[seen], stream.targets[seen]) + given_away[rows[seen]] * p[seen]
        return p
