"""Baselines for real work: what counting alone gets out of the same data.

For language, the counting rungs on bytes; for labelled texts, the commonest label and a bag of words.
"""

import math
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from glassformer.errors import require
from glassformer.ladder.counts import Codes, Uniform
from glassformer.ladder.markov import BackOff
from glassformer.ladder.rung import Rung, Scores

BYTES = tuple(chr(b) for b in range(256))
HIGHEST_ORDER = 5
MOST_BYTES = 10_000_000  # beyond this the longer contexts take gigabytes
PIECES = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class LanguageRow:
    """What one rung makes of a text."""

    name: str
    bits_per_byte: float
    seconds: float  # to fit and to measure
    n_train_bytes: int


def language_rungs(train: bytes | str, test: bytes | str, highest: int = HIGHEST_ORDER) -> list[LanguageRow]:
    """Bits per byte of each counting rung on `test`, after fitting on `train` (its first ten million bytes).

    From unigram on, every order falls back on the lower ones, so that no byte is impossible.
    """
    learned, measured = _as_bytes(train)[:MOST_BYTES], _as_bytes(test)
    require(len(learned) > 0, "There is no text to learn from.", "Give training data that is not empty.")
    require(len(measured) > 0, "There is no text to measure on.", "Give test data that is not empty.")
    sequence, target = learned.decode("latin-1"), measured.decode("latin-1")
    rows = []
    for name, rung in _rungs(highest):
        start = time.perf_counter()
        bits = -rung.fit([sequence]).log_probability([target]) / len(measured) / math.log(2)
        rows.append(LanguageRow(name, bits, time.perf_counter() - start, len(learned)))
    return rows


def _rungs(highest: int) -> Iterator[tuple[str, Rung]]:
    yield "uniform", Uniform(vocabulary=BYTES)
    names = {0: "unigram", 1: "first order", 2: "second order"}
    for order in range(highest + 1):
        yield names.get(order, f"order {order}"), BackOff(order, vocabulary=BYTES)


def _as_bytes(text: bytes | str) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")


class Majority:
    """Always the commonest label; of equals, the first in order."""

    name = "majority"

    def __init__(self) -> None:
        self.label = ""

    def fit(self, texts: Sequence[str], labels: Sequence[str]) -> Self:
        counts = _count_labels(texts, labels)
        self.label = min(counts, key=lambda label: (-counts[label], label))
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        require(self.label != "" or not texts, "The baseline has not been fitted.", "Call fit first.")
        return [self.label] * len(texts)


class BagOfWords:
    """Naive Bayes: each word speaks for the labels that it was seen with, whatever its place.

    Every word counts once more than it was seen, so that no label is ruled out by a single word. Words that were never
    seen say nothing.
    """

    name = "bag of words"

    def __init__(self) -> None:
        self.labels: tuple[str, ...] = ()
        self._codes = Codes(())
        self._says: Scores = np.zeros((0, 0))  # (words, labels): log p(word | label)
        self._prior: Scores = np.zeros(0)

    def fit(self, texts: Sequence[str], labels: Sequence[str]) -> Self:
        counts = _count_labels(texts, labels)
        self.labels = tuple(sorted(counts))
        places = {label: i for i, label in enumerate(self.labels)}
        pieces = [_pieces(text) for text in texts]
        self._codes = Codes(word for words in pieces for word in words)
        ids = np.concatenate([self._codes.encode(words) for words in pieces])
        label_ids = np.repeat([places[label] for label in labels], [len(words) for words in pieces])
        cells = len(self._codes) * len(self.labels)
        seen = np.bincount(ids * len(self.labels) + label_ids, minlength=cells).reshape(-1, len(self.labels)) + 1
        self._says = np.log(seen / seen.sum(axis=0))
        self._prior = np.log(np.array([counts[label] for label in self.labels]) / len(texts))
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        """The likeliest label of each text; of equals, the first in order."""
        return [self.labels[int(self.scores(text).argmax())] for text in texts]

    def scores(self, text: str) -> Scores:
        """log p(label) + the sum of log p(word | label), for each label."""
        require(bool(self.labels), "The baseline has not been fitted.", "Call fit first.")
        ids = self._codes.encode(_pieces(text))
        scores: Scores = self._prior + self._says[ids[ids >= 0]].sum(axis=0)
        return scores


def _pieces(text: str) -> list[str]:
    return PIECES.findall(text.lower())


def _count_labels(texts: Sequence[str], labels: Sequence[str]) -> Counter[str]:
    require(len(texts) > 0, "There is no text to learn from.", "Give labelled texts.")
    require(
        len(texts) == len(labels),
        f"There are {len(labels)} labels for {len(texts)} texts.",
        "Give one label for each text.",
    )
    return Counter(labels)
