"""How good answers are, in numpy: for one class, for many classes, and for numbers.

n examples, c classes; scores are probabilities (n, c), or numbers (n,) where labels are numbers
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from glassformer.data.labels import LabelKind, Targets

Metric = Literal["accuracy", "f1", "f1_binary", "f1_micro", "matthews", "pearson", "spearman", "mean_error"]
Numbers = NDArray[np.float64]
Table = NDArray[np.int64]
Scores = NDArray[np.float32] | Numbers

OF_KIND: dict[LabelKind, tuple[Metric, ...]] = {
    "class": ("accuracy", "f1", "matthews"),
    "classes": ("f1_micro", "f1", "accuracy"),
    "number": ("spearman", "pearson", "mean_error"),
}
LESS_IS_BETTER = ("mean_error",)
RESAMPLED, MOST_DRAWN, FEWEST = 1000, 20_000_000, 50
BINS = 10


def measure(kind: LabelKind, scores: Scores, targets: Targets) -> dict[str, float]:
    """Every metric of this kind of labels, the usual one first."""
    if kind == "number":
        error = float(np.abs(scores - targets).mean())
        return {"spearman": spearman(scores, targets), "pearson": pearson(scores, targets), "mean_error": error}
    if kind == "classes":
        said, true = scores >= 0.5, targets > 0.5
        right, n_said, n_true = (said & true).sum(axis=0), said.sum(axis=0), true.sum(axis=0)
        micro = _f1(right.sum(keepdims=True), n_said.sum(keepdims=True), n_true.sum(keepdims=True))[0]
        exact = float((said == true).all(axis=1).mean())
        return {"f1_micro": float(micro), "f1": float(_f1(right, n_said, n_true).mean()), "accuracy": exact}
    return of_confusion(confusion(targets.astype(np.int64), scores.argmax(axis=1), scores.shape[1]))


def of_confusion(table: Table) -> dict[str, float]:
    """What can be read off a confusion table (true, said); f1_binary is that of the second of two classes."""
    n = max(1, int(table.sum()))
    each = class_f1(table)
    seen = (table.sum(axis=0) + table.sum(axis=1)) > 0
    found = {
        "accuracy": float(np.trace(table) / n),
        "f1": float(each[seen].mean()) if seen.any() else 0.0,
        "matthews": matthews(table),
    }
    return found | ({"f1_binary": float(each[1])} if len(table) == 2 else {})


def confusion(true: NDArray[np.int64], said: NDArray[np.int64], n_classes: int) -> Table:
    """How often class i (row) was called class j (column)."""
    counts: Table = np.bincount(true * n_classes + said, minlength=n_classes**2)
    return counts.reshape(n_classes, n_classes)


def class_f1(table: Table) -> Numbers:
    """The harmonic mean of precision and recall, class by class."""
    return _f1(np.diagonal(table), table.sum(axis=0), table.sum(axis=1))


def _f1(right: NDArray[np.int64], n_said: NDArray[np.int64], n_true: NDArray[np.int64]) -> Numbers:
    both: Numbers = 2 * right / np.maximum(1, n_said + n_true)
    return both


def matthews(table: Table) -> float:
    """Correlation of true and said classes; 0 where either never varies."""
    counts = table.astype(np.float64)
    n, right = counts.sum(), np.trace(counts)
    said, true = counts.sum(axis=0), counts.sum(axis=1)
    spread = (n**2 - (said**2).sum()) * (n**2 - (true**2).sum())
    return float((right * n - (said * true).sum()) / np.sqrt(spread)) if spread > 0 else 0.0


def pearson(a: Scores, b: Targets | Numbers) -> float:
    x, y = a.astype(np.float64) - a.mean(dtype=np.float64), b.astype(np.float64) - b.mean(dtype=np.float64)
    spread = float(np.sqrt((x**2).sum() * (y**2).sum()))
    return float((x * y).sum() / spread) if spread > 0 else 0.0


def spearman(a: Scores, b: Targets) -> float:
    return pearson(ranks(a), ranks(b))


def ranks(values: Scores | Targets) -> Numbers:
    """The place of each value among all; equals share the mean of their places."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends: Numbers = np.cumsum(counts).astype(np.float64)
    return (ends - (counts - 1) / 2)[inverse]


@dataclass(frozen=True)
class Bin:
    """Answers of about the same confidence: how sure they were in the mean, and how many were right."""

    n: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Calibration:
    """Expected calibration error: how far confidence and accuracy lie apart, weighted by how many answers there are."""

    error: float
    bins: tuple[Bin, ...]


def calibrate(probabilities: Scores, targets: NDArray[np.int64], n_bins: int = BINS) -> Calibration:
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == targets
    place = np.minimum((sure * n_bins).astype(np.int64), n_bins - 1)
    bins = []
    for i in range(n_bins):
        chosen = place == i
        if chosen.any():
            bins.append(Bin(int(chosen.sum()), float(sure[chosen].mean()), float(right[chosen].mean())))
    error = sum(b.n * abs(b.confidence - b.accuracy) for b in bins) / len(targets)
    return Calibration(float(error), tuple(bins))


def intervals(measured: Callable[[NDArray[np.int64]], dict[str, float]], n: int, seed: int = 1) -> dict[str, float]:
    """Half the width of each metric's 95 % interval, when the examples are drawn anew with replacement."""
    random = np.random.default_rng(seed)
    times = min(RESAMPLED, max(FEWEST, MOST_DRAWN // n))
    drawn = [measured(random.integers(0, n, n)) for _ in range(times)]
    found = {}
    for name in drawn[0]:
        low, high = np.quantile([one[name] for one in drawn], [0.025, 0.975])
        found[name] = float(high - low) / 2
    return found
