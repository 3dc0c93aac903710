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

from glassformer.errors import UserError, require

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
        require(word in self.vocabulary, f"{word!r} is not in the vocabulary.", "Ask for a word that was in the data.")
        return float(self.scores[self.vocabulary.index(word)])

    def top(self, k: int = 5) -> list[tuple[str, float]]:
        """The best first; of equals, the first in the vocabulary."""
        order = np.argsort(-self.scores, kind="stable")[:k]
        return [(self.vocabulary[i], float(self.scores[i])) for i in order]


@dataclass(frozen=True)
class Matrix:
    """Numbers with a name for every row and column."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Scores  # (rows, columns)

    def row(self, name: str) -> Scores:
        require(name in self.rows, f"There is no row {name!r}.", f"The rows are {', '.join(self.rows[:20])} …")
        row: Scores = self.values[self.rows.index(name)]
        return row

    def __getitem__(self, at: tuple[str, str]) -> float:
        row, column = at
        require(column in self.columns, f"There is no column {column!r}.")
        return float(self.row(row)[self.columns.index(column)])


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
        require(n >= 0, f"{n} words more are asked for.", "Ask for 0 or more.")
        require(
            temperature > 0, f"The temperature is {temperature}.", "Give more than 0; for the best word, do not sample."
        )
        random = np.random.default_rng(seed)
        words = list(prefix)
        for _ in range(n):
            scores = self.predict(words).scores
            if not (scores > 0).any():
                break
            words.append(self.vocabulary[_draw(scores, temperature, random) if sample else int(scores.argmax())])
        return words

    def log_probabilities(self, sequence: Words) -> Scores:
        """log p of each word, given those before it; -inf for a word that the rung does not know."""
        predictions = (self.predict(sequence[:i]) for i in range(len(sequence)))
        scores = [p[word] if word in p.vocabulary else 0.0 for p, word in zip(predictions, sequence, strict=True)]
        return log(np.array(scores, dtype=np.float64))

    def log_probability(self, sequences: Iterable[Words]) -> float:
        """log p of all the sequences together."""
        return float(sum(self.log_probabilities(sequence).sum() for sequence in sequences))

    def perplexity(self, sequences: Iterable[Words]) -> float:
        """How many words the rung hesitates between, on average; infinite if it held something for impossible."""
        if self.kind != "probabilities":
            raise UserError(
                f"{self.name} gives votes, not probabilities.", "Perplexity needs a rung with probabilities."
            )
        sequences = list(sequences)
        n = sum(len(sequence) for sequence in sequences)
        require(n > 0, "There is not a word to measure.", "Give sequences that are not empty.")
        mean = self.log_probability(sequences) / n
        return math.exp(-mean) if mean > -math.inf else math.inf

    def check_fitted(self) -> None:
        require(bool(self.vocabulary), f"{self.name} has not been fitted.", "Call fit with your sequences first.")


def _draw(scores: Scores, temperature: float, random: np.random.Generator) -> int:
    logs = log(np.maximum(scores, 0)) / temperature
    shares = np.exp(logs - logs.max())
    return int(random.choice(len(scores), p=shares / shares.sum()))


def log(scores: Scores) -> Scores:
    """The logarithm, with -inf for 0."""
    with np.errstate(divide="ignore"):
        logs: Scores = np.log(scores)
    return logs


def sorted_vocabulary(sequences: Iterable[Words]) -> tuple[str, ...]:
    return tuple(sorted({word for sequence in sequences for word in sequence}))


def check_sequences(
    sequences: Iterable[Words], weights: Sequence[float] | None = None
) -> tuple[list[Words], NDArray[np.float64]]:
    """The sequences as a list and one weight for each; says what is wrong with them."""
    hint = "Give a list of sequences, such as [text] for characters or [text.split()] for words."
    require(not isinstance(sequences, str), "One text is given where a list of sequences is needed.", hint)
    listed = list(sequences)
    bad = next((s for s in listed if isinstance(s, bytes)), None)
    require(bad is None, "A sequence of bytes is given.", "Turn it into text with decode('latin-1').")
    require(any(len(sequence) > 0 for sequence in listed), "There is not a word to learn from.", hint)
    if weights is None:
        return listed, np.ones(len(listed))
    array = np.asarray(weights, dtype=np.float64)
    require(
        array.shape == (len(listed),),
        f"There are {array.size} weights for {len(listed)} sequences.",
        "Give one weight for each sequence.",
    )
    require(
        bool(np.isfinite(array).all() and (array > 0).all()),
        "A weight is not a positive number.",
        "Give weights above 0, and leave out sequences that do not count.",
    )
    return listed, array
