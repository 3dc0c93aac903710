"""Skips and mask once more, as nothing but matrix products: attention and feed-forward with hand-made weights.

Every word is a one-hot row. The last word, as a query, pulls its mask out of a matrix of masks: Q Kᵀ. The mask lets
through the earlier words that matter. A layer with a bias and ReLU joins them with the last word to pairs, and a last
matrix holds the votes of each pair. Dense, so for small vocabularies; the skip rungs hold the same numbers sparsely.

N words of the vocabulary, n words of the prefix, F features (pairs, then words alone)
"""

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np

from glassformer.errors import UserError
from glassformer.ladder.counts import UNKNOWN
from glassformer.ladder.rung import Explanation, Matrix, Prediction, Reason, Rung, Scores, Words
from glassformer.ladder.skips import MaskedSkips, Skips, pair_name

LARGEST = 100  # words: a million and more weights for the pairs alone
BIAS = "bias"


class OneHotAttention(Rung):
    """The numbers of `MaskedSkips` (or of `Skips`, with masked=False) by matrix products."""

    name = "one-hot attention"
    kind = "votes"

    def __init__(self, masked: bool = True, vocabulary: Iterable[str] | None = None) -> None:
        self.skips: Skips = MaskedSkips(vocabulary) if masked else Skips(vocabulary)
        self.keys: Matrix  # K: (N, N), a row for each earlier word, a column for each last word
        self.pair_weights: Matrix  # W: (2N + 1, F)
        self.transitions: Matrix  # (F, N)

    def fit(self, sequences: Iterable[Words], weights: Sequence[float] | None = None) -> Self:
        self.skips.fit(sequences, weights)
        n = len(self.skips.vocabulary)
        if n > LARGEST:
            raise UserError(
                f"One-hot attention with full matrices is for up to {LARGEST} words, but the data has {n:,}.",
                "Use Skips or MaskedSkips, which give the same votes, or fewer words.",
            )
        self.vocabulary = self.skips.vocabulary
        mask = self.skips.mask()
        self.keys = Matrix(mask.columns, mask.rows, mask.values.T)
        self.pair_weights = self._make_pair_weights()
        self.transitions = self._make_transitions()
        return self

    def predict(self, prefix: Words) -> Prediction:
        return Prediction(self.vocabulary, self.matrices(prefix)["votes"].values[0], self.kind)

    def explain(self, prefix: Words) -> Explanation:
        """The features that fired, each with its row of the transition matrix."""
        features = self.matrices(prefix)["features"]
        reasons = [
            Reason(features.columns[f], float(features.values[0, f]), self.transitions.values[f])
            for f in np.flatnonzero(features.values[0])
        ]
        return Explanation(self.predict(prefix), reasons)

    def matrices(self, prefix: Words) -> dict[str, Matrix]:
        """Every matrix on the way from the words to the votes, in order, with names for rows and columns."""
        self.check_fitted()
        words = self.vocabulary
        one_hot = self._one_hot(prefix)  # (n, N)
        query = one_hot[len(prefix) - 1 :] if len(prefix) else np.zeros((1, len(words)))  # (1, N)
        mask = query @ self.keys.values.T  # Q Kᵀ: (1, N)
        earlier = np.minimum(1, one_hot[:-1].sum(axis=0, keepdims=True))  # (1, N)
        attended = mask * earlier
        inputs = np.concatenate([attended, query, [[1.0]]], axis=1)  # (1, 2N + 1)
        sums = inputs @ self.pair_weights.values  # (1, F)
        features = np.maximum(0, sums)  # ReLU
        last = (prefix[-1],) if len(prefix) else ("(nothing)",)
        names = self.pair_weights.columns
        return {
            "one-hot": Matrix(tuple(prefix), words, one_hot),
            "query": Matrix(last, words, query),
            "keys": self.keys,
            "mask": Matrix(last, words, mask),
            "earlier words": Matrix(("earlier",), words, earlier),
            "attended": Matrix(("attended",), words, attended),
            "inputs": Matrix(("inputs",), self.pair_weights.rows, inputs),
            "pair weights": self.pair_weights,
            "sums": Matrix(("sums",), names, sums),
            "features": Matrix(("features",), names, features),
            "transitions": self.transitions,
            "votes": Matrix(("votes",), words, features @ self.transitions.values),
        }

    def _one_hot(self, prefix: Words) -> Scores:
        ids = self.skips.codes.encode(prefix)
        rows = np.zeros((len(ids), len(self.vocabulary)))
        rows[ids != UNKNOWN, ids[ids != UNKNOWN]] = 1  # a word that is not in the vocabulary is all zero
        return rows

    def _make_pair_weights(self) -> Matrix:
        """Hand-made: a pair needs both of its words, a word alone needs that no pair speaks.

        2 for each word of a pair and -3 as its bias: both give 1, one gives -1, none gives -3; ReLU leaves the 1. A
        last word alone gives 1, and each earlier word that the mask lets through takes 1 away.
        """
        words, n = self.vocabulary, len(self.vocabulary)
        last, earlier = np.divmod(self.skips.pairs.keys, n)
        alone = self.skips.alone.keys
        values = np.zeros((2 * n + 1, len(last) + len(alone)))
        pairs, singles = np.arange(len(last)), len(last) + np.arange(len(alone))
        values[earlier, pairs] = 2
        values[n + last, pairs] = 2
        values[-1, pairs] = -3
        values[n + alone, singles] = 1
        values[:n, singles] = -1
        rows = (*(f"{word} …" for word in words), *(f"… {word}" for word in words), BIAS)
        names = [pair_name(words[e], words[w]) for e, w in zip(earlier, last, strict=True)]
        return Matrix(rows, (*names, *(words[w] for w in alone)), values)

    def _make_transitions(self) -> Matrix:
        pairs, alone = self.skips.pairs, self.skips.alone
        rows = [pairs.shares(row) for row in range(len(pairs.keys))]
        rows += [alone.shares(row) for row in range(len(alone.keys))]
        return Matrix(
            self.pair_weights.columns, self.vocabulary, np.array(rows).reshape(len(rows), len(self.vocabulary))
        )
