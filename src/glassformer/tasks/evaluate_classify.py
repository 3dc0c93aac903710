"""How good a classifier is: scores with intervals beside honest baselines, what it mixes up, how sure it may be.

Deliberately not here: the scores themselves (`classify_scores`), and how a person sees them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from glassformer.data.labelled import LabelledFiles, LabelledTexts, read_labelled
from glassformer.data.labelled_batch import Readable
from glassformer.data.labels import LabelKind, Targets
from glassformer.errors import require
from glassformer.tasks.classifier import Classifier
from glassformer.tasks.classify_answers import name_answer, name_target, worst_first
from glassformer.tasks.classify_baselines import bag_of_words, majority, nearest_text
from glassformer.tasks.classify_scores import (
    Calibration,
    Scores,
    calibrate,
    confusion,
    intervals,
    measure,
)

E = TypeVar("E")


@dataclass(frozen=True)
class System:
    """What one way of answering reaches, and half the width of each 95 % interval."""

    name: str
    metrics: dict[str, float]
    intervals: dict[str, float]


@dataclass(frozen=True)
class OneClass:
    name: str
    n: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class Mistake:
    place: str
    said: str
    true: str
    shown: str


@dataclass(frozen=True)
class ClassifyReport:
    """All that was measured: plain data, ready for JSON."""

    paths: tuple[str, ...]
    n: int
    n_bad: int
    bad_example: str | None
    kind: LabelKind
    names: tuple[str, ...]
    systems: tuple[System, ...]  # the model first
    confusion: tuple[tuple[int, ...], ...]  # rows are true, columns said; only for one class each
    classes: tuple[OneClass, ...]
    calibration: Calibration | None
    worst: tuple[Mistake, ...]
    n_known: int | None  # examples that are in the memory letter for letter


@dataclass(frozen=True)
class Examined:
    """Examples to test on, whatever they are made of."""

    paths: tuple[str, ...]
    data: Readable
    targets: Targets
    show: Callable[[int], str]
    place: Callable[[int], str]
    n_bad: int = 0
    bad_example: str | None = None


@dataclass(frozen=True)
class Exam:
    """Examples, what baselines fitted on the training data say to them, and how many of them are in that data."""

    tested: Examined
    baselines: dict[str, Scores]
    n_known: int | None = None


def evaluate_classify(classifier: Classifier, exam: Exam, n_worst: int = 5) -> ClassifyReport:
    """Let the classifier answer, and measure it and the baselines alike."""
    tested = exam.tested
    require(n_worst >= 0, f"The number of worst answers is {n_worst}.", "It must be 0 or more.")
    labels, targets = classifier.labels, tested.targets
    scores = classifier.score_data(tested.data, len(targets))
    table = None
    if labels.kind == "class":
        table = confusion(targets.astype(np.int64), scores.argmax(axis=1), labels.n_out)
    worst = [
        Mistake(tested.place(i), name_answer(labels, scores[i]), name_target(labels, targets[i]), tested.show(i))
        for i in worst_first(labels.kind, scores, targets)[:n_worst]
    ]
    systems: dict[str, Scores] = {"model": scores, **exam.baselines}
    return ClassifyReport(
        paths=tested.paths,
        n=len(targets),
        n_bad=tested.n_bad,
        bad_example=tested.bad_example,
        kind=labels.kind,
        names=labels.names,
        systems=tuple(_system(name, labels.kind, said, targets) for name, said in systems.items()),
        confusion=() if table is None else tuple(map(tuple, table.tolist())),
        classes=_classes(labels.names, labels.kind, scores, targets),
        calibration=calibrate(scores, targets.astype(np.int64)) if labels.kind == "class" else None,
        worst=tuple(worst),
        n_known=exam.n_known,
    )


def exam_of_texts(
    classifier: Classifier, files: LabelledFiles, memory: LabelledFiles | None, limit: int | None = None
) -> Exam:
    """Texts to test on, and baselines fitted on the memory."""
    many = classifier.labels.kind == "classes"
    found = read_labelled(files, many)
    _check_texts(classifier, found)
    examples = spread(found.examples, limit)
    targets = classifier.labels.encode([e.label for e in examples], lambda i: examples[i].place)
    first = found.bad[0] if found.bad else None
    tested = Examined(
        paths=tuple(map(str, files.paths)),
        data=classifier.texts([example.texts for example in examples]),
        targets=targets,
        show=lambda i: " ‖ ".join(examples[i].texts),
        place=lambda i: examples[i].place,
        n_bad=len(found.bad),
        bad_example=f"{first[0]} line {first[1].line} {first[1].reason}" if first else None,
    )
    if memory is None:
        return Exam(tested, {})
    known = read_labelled(memory, many)
    _check_texts(classifier, known)
    labels = classifier.labels
    known_targets = labels.encode([e.label for e in known.examples], lambda i: known.examples[i].place)
    texts, wanted = ([" ".join(e.texts) for e in part] for part in (known.examples, examples))
    said: dict[str, Scores | None] = {
        "mean" if labels.kind == "number" else "majority": majority(labels, known_targets, len(examples)),
        "bag of words": bag_of_words(labels, texts, known_targets, wanted),
        "nearest neighbour": nearest_text(labels, texts, known_targets, wanted),
    }
    in_memory = set(texts)
    baselines = {name: scores for name, scores in said.items() if scores is not None}
    return Exam(tested, baselines, sum(text in in_memory for text in wanted))


def spread(examples: Sequence[E], limit: int | None) -> list[E]:
    """Evenly over the file, since many are sorted."""
    require(limit is None or limit > 0, f"The limit is {limit}.", "It must be 1 or more.")
    if limit is None or limit >= len(examples):
        return list(examples)
    return [examples[i * len(examples) // limit] for i in range(limit)]


def _check_texts(classifier: Classifier, found: LabelledTexts) -> None:
    require(
        classifier.n_texts in (None, found.n_texts),
        f"{found.files.paths[0]} has {found.n_texts} text(s) a line, but the model reads {classifier.n_texts}.",
        "Name the columns: --text, --text2, --label.",
    )


def _system(name: str, kind: LabelKind, scores: Scores, targets: Targets) -> System:
    found = intervals(lambda rows: measure(kind, scores[rows], targets[rows]), len(targets))
    return System(name, measure(kind, scores, targets), found)


def _classes(names: tuple[str, ...], kind: LabelKind, scores: Scores, targets: Targets) -> tuple[OneClass, ...]:
    """Precision and recall of each class."""
    if kind == "number":
        return ()
    said = np.eye(len(names))[scores.argmax(axis=1)] > 0 if kind == "class" else scores >= 0.5
    true = np.eye(len(names))[targets.astype(np.int64)] > 0 if kind == "class" else targets > 0.5
    right, n_said, n_true = (said & true).sum(axis=0), said.sum(axis=0), true.sum(axis=0)
    rows = zip(names, n_true, right / np.maximum(1, n_said), right / np.maximum(1, n_true), strict=True)
    return tuple(
        OneClass(name, int(n), float(precision), float(recall), _harmonic(float(precision), float(recall)))
        for name, n, precision, recall in rows
    )


def _harmonic(a: float, b: float) -> float:
    return 2 * a * b / (a + b) if a + b else 0.0
