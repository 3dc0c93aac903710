"""What simple means make of the same labels: the commonest one, a bag of words, the nearest neighbour.

Each answers as a model would: zeros and ones (n, classes), or numbers (n,).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.data.labels import Labels, Targets
from glassformer.ladder.baselines import BagOfWords
from glassformer.tasks.classify_scores import Scores
from glassformer.tasks.memory import nearest_answers

MOST_LABELS = 50  # a bag of words for each of more labels would take long
AT_ONCE = 1000  # vectors compared at a time


def majority(labels: Labels, known: Targets, n: int) -> Scores:
    """Always the commonest class; of many classes those that most examples have; of numbers the mean."""
    if labels.kind == "number":
        return np.full(n, known.mean(), dtype=np.float64)
    if labels.kind == "classes":
        return np.tile((known.mean(axis=0) >= 0.5).astype(np.float64), (n, 1))
    return one_hot(np.full(n, np.bincount(known.astype(np.int64)).argmax()), labels.n_out)


def bag_of_words(labels: Labels, texts: Sequence[str], known: Targets, tested: Sequence[str]) -> Scores | None:
    """Naive Bayes on words; there is none for numbers."""
    if labels.kind == "class":
        bag = BagOfWords().fit(texts, [str(i) for i in known])
        return one_hot(np.array([int(name) for name in bag.predict(tested)]), labels.n_out)
    if labels.kind == "number" or labels.n_out > MOST_LABELS:
        return None
    columns = [BagOfWords().fit(texts, [str(yes) for yes in known[:, i]]).predict(tested) for i in range(labels.n_out)]
    return np.array([[float(yes) for yes in column] for column in columns]).T


def nearest_text(labels: Labels, texts: Sequence[str], known: Targets, tested: Sequence[str]) -> Scores:
    """The label of the training text that shares most pieces."""
    found = nearest_answers(texts, range(len(texts)), list(tested))
    plain = majority(labels, known, 1)[0]
    answers = as_scores(labels, known)
    return np.stack([plain if i is None else answers[i] for i in found])


def nearest_vector(
    labels: Labels,
    vectors: NDArray[np.float32],
    known: Targets,
    tested: NDArray[np.float32],
    unit: float | None = None,
) -> Scores:
    """The label of the training example whose vector lies closest; each feature in deviations, or all in one unit."""
    scale = vectors.std(axis=0) + 1e-6 if unit is None else unit
    mine, others = vectors / scale, tested / scale
    squares = (mine**2).sum(axis=1)
    rows = [(squares - 2 * others[i : i + AT_ONCE] @ mine.T).argmin(axis=1) for i in range(0, len(others), AT_ONCE)]
    nearest: Scores = as_scores(labels, known)[np.concatenate(rows)]
    return nearest


def as_scores(labels: Labels, targets: Targets) -> Any:
    """Targets as what a model that knows them would say."""
    return one_hot(targets.astype(np.int64), labels.n_out) if labels.kind == "class" else targets


def one_hot(places: NDArray[np.int64], n: int) -> Scores:
    return np.eye(n)[places]
