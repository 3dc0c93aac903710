"""The one face of all rungs: fit on sequences, predict the next word, complete, measure, and say why.

A sequence is a list of words; what a word is (a word, a character, a byte as text) is the caller's choice. The
vocabulary is sorted. Rungs that only count votes say so: votes are no probabilities and have no perplexity.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from glassformer.errors import UserError

Words = Sequence[str]
Scores = NDArray[np.float64]
Kind = Literal["probabilities", "votes"]


@dataclass(frozen=True)
class Prediction:
    """One score for each word that may come next."""

    vocabulary: tuple[str, ...]
    scores: Scores
    kind: Kind

    def __getitem__(self, word: str) -> float:
        return float(self.scores[self.vocabulary.index(word)])

    def top(self, k: int = 5) -> list[tuple[str, float]]:
        """The best first; of equals, the first in the vocabulary."""
        order = np.argsort(-self.scores, kind="stable")[:k]
        return [(self.vocabulary[i], float(self.scores[i])) for i in order]


@dataclass(frozen=True)
class Reason:
    """One thing that had a say: its name (such as 'battery … ran'), its weight, and the scores that it gave."""

    name: str
    weight: float
    scores: Scores


@dataclass(frozen=True)
class Explanation:
    """A prediction and what decided it; the weighted scores of the reasons add up to the prediction where
    `adds_up` says so (counting does, deep models do not)."""

    prediction: Prediction
    reasons: list[Reason]
    adds_up: bool = True


class Rung(ABC):
    """One model of the ladder."""

    name: str
    kind: Kind = "probabilities"
    vocabulary: tuple[str, ...] = ()

    @abstractmethod
    def fit(self, sequences: Iterable[Words], weights: Sequence[float] | None = None) -> Self:
        """Learn from sequences; `weights` says how often each stands for (all alike without)."""

    @abstractmethod
    def predict(self, prefix: Words) -> Prediction: ...

    @abstractmethod
    def explain(self, prefix: Words) -> Explanation: ...

    def complete(
        self, prefix: Words, n: int, sample: bool = False, temperature: float = 1.0, seed: int = 1
    ) -> list[str]:
        """The prefix and up to n words more: always the best one, or drawn. Ends early when nothing can follow."""
        random = np.random.default_rng(seed)
        words = list(prefix)
        for _ in range(n):
            scores = self.predict(words).scores
            if not (scores > 0).any():
                break
            words.append(self.vocabulary[_draw(scores, temperature, random) if sample else int(scores.argmax())])
        return words

    def log_probabilities(self, sequence: Words) -> Scores:
        """log p of each word, given those before it."""
        scores = [self.predict(sequence[:i])[word] for i, word in enumerate(sequence)]
        with np.errstate(divide="ignore"):
            logs: Scores = np.log(np.array(scores, dtype=np.float64))
        return logs

    def perplexity(self, sequences: Iterable[Words]) -> float:
        """How many words the rung hesitates between, on average; infinite if it held something for impossible."""
        if self.kind != "probabilities":
            raise UserError(
                f"{self.name} gives votes, not probabilities.", "Perplexity needs a rung with probabilities."
            )
        total, n = 0.0, 0
        for sequence in sequences:
            total += float(self.log_probabilities(sequence).sum())
            n += len(sequence)
        if n == 0:
            raise UserError("There is not a word to measure.", "Give sequences that are not empty.")
        return math.exp(-total / n) if total > -math.inf else math.inf


def _draw(scores: Scores, temperature: float, random: np.random.Generator) -> int:
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(scores, 0)) / temperature
    shares = np.exp(logs - logs.max())
    return int(random.choice(len(scores), p=shares / shares.sum()))


def sorted_vocabulary(sequences: Iterable[Words]) -> tuple[str, ...]:
    return tuple(sorted({word for sequence in sequences for word in sequence}))
