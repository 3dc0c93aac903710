"""Labelled series of vectors made ready for training."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from glassformer.data.counted import counted
from glassformer.data.labelled_batch import SeriesExamples
from glassformer.data.series import Series
from glassformer.errors import require
from glassformer.model import EncoderOnly
from glassformer.model.inputs import Vectors
from glassformer.tasks.classifier import Classifier
from glassformer.tasks.classify import ClassifyRecipe
from glassformer.tasks.classify_answers import Classifying
from glassformer.tasks.classify_baselines import majority, nearest_vector
from glassformer.tasks.classify_data import DividedSubject, Prepared, divide, require_labels
from glassformer.tasks.classify_scores import Scores
from glassformer.tasks.evaluate_classify import Exam, Examined, spread
from glassformer.tasks.model_dir import LoadedModel
from glassformer.tasks.run import Run

MAX_STEPS = 4096


@dataclass(frozen=True)
class Standard:
    """Features are learned as so many deviations from their means; in the end the front-end does that itself."""

    mean: NDArray[np.float32]
    deviation: NDArray[np.float32]

    @classmethod
    def of(cls, values: list[NDArray[np.float32]]) -> "Standard":
        # In float64: a float32 sum of many values soon stops growing.
        steps = np.concatenate(values).astype(np.float64)
        mean, deviation = steps.mean(axis=0), steps.std(axis=0)
        varies = deviation > np.finfo(np.float32).eps * np.abs(mean)
        return cls(mean.astype(np.float32), np.where(varies, deviation, 1.0).astype(np.float32))

    def apply(self, values: list[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
        return [(row - self.mean) / self.deviation for row in values]

    @torch.no_grad()
    def put_into(self, model: Classifying) -> None:
        """W (x - mean) / deviation + b, as one product of x."""
        assert isinstance(model, EncoderOnly)
        assert isinstance(model.source, Vectors)
        projection: nn.Linear = model.source.projection
        mean, deviation = (torch.from_numpy(part).to(projection.weight) for part in (self.mean, self.deviation))
        projection.weight.div_(deviation)
        projection.bias.sub_(projection.weight @ mean)


@dataclass(frozen=True)
class SeriesSubject(DividedSubject[Series]):
    """All labelled series of a run; made by `judge_series`."""

    def describe(self) -> list[str]:
        return [str(self.train), *self.describe_division()]

    def prepare(self, recipe: ClassifyRecipe, run: Run, identity: str, start: LoadedModel | None) -> Prepared:
        if not run.is_prepared(identity, recipe):
            run.prepared(identity)
        longest = recipe.max_tokens or MAX_STEPS
        values = self.train.values
        chosen = [values[i] for i in self.division.train]
        standard = Standard.of(chosen) if start is None else None  # a trained front-end does it already
        others = [values[i] for i in self.division.valid] if self.valid is None else self.valid.values
        targets = self.train_targets, self.valid_targets
        parts = [chosen, others] if standard is None else [standard.apply(chosen), standard.apply(others)]
        train, valid = (SeriesExamples(part, longest, t) for part, t in zip(parts, targets, strict=True))
        n_cut = sum(len(row) > longest for row in (*chosen, *others))
        if n_cut:
            run.report.say(
                f"Not read to the end: {counted(n_cut, 'series', 'series')} of over {longest:,} steps (max_tokens)."
            )
        width = self.train.n_features
        _check_width(start, width)
        front_end = {"kind": "vectors", "n_features": width, "positions": "none"}
        about = {"input": "vectors", "n_features": width, "max_tokens": longest}
        return Prepared(train, valid, front_end, None, about, standard)


def judge_series(train: Series, valid: Series | None, recipe: ClassifyRecipe) -> SeriesSubject:
    """Check everything, before anything is written."""
    for part in (train, *(() if valid is None else (valid,))):
        require_labels(part)
    require(
        valid is None or valid.n_features == train.n_features,
        f"{valid.paths[0] if valid else ''} has vectors of another width than {train.paths[0]}.",
        "Give both the same features.",
    )
    return SeriesSubject(train, valid, divide(train, valid, recipe, [str(train)]))


def exam_of_series(classifier: Classifier, series: Series, memory: Series | None) -> Exam:
    """Series to test on, and baselines fitted on the memory."""
    labels, n = classifier.labels, len(series.values)
    require_labels(series)
    shown = SeriesExamples(series.values, MAX_STEPS, np.zeros(n, dtype=np.int64))
    tested = Examined(
        paths=tuple(map(str, series.paths)),
        data=classifier.readable(series.values),
        targets=labels.encode(series.labels, series.places.__getitem__),
        show=shown.show,
        place=series.places.__getitem__,
    )
    if memory is None:
        return Exam(tested, {})
    known = labels.encode(memory.labels, memory.places.__getitem__)
    means = [np.stack([values.mean(axis=0) for values in part.values]) for part in (memory, series)]
    baselines: dict[str, Scores] = {
        "mean" if labels.kind == "number" else "majority": majority(labels, known, n),
        "nearest neighbour": nearest_vector(labels, means[0], known, means[1]),
    }
    keys = set(memory.keys())
    return Exam(tested, baselines, sum(key in keys for key in series.keys()))  # noqa: SIM118 (not a mapping)


def limited(series: Series, limit: int | None) -> Series:
    """So many of them, evenly spread."""
    rows = spread(range(len(series.values)), limit)
    chosen = [series.labels[i] for i in rows] if series.labels else []
    return Series(series.paths, [series.values[i] for i in rows], chosen, [series.places[i] for i in rows])


def _check_width(start: LoadedModel | None, width: int) -> None:
    if start is None:
        return
    source = getattr(start.model.settings, "source", None)
    wanted = getattr(source, "n_features", None)
    require(
        wanted == width,
        f"The vectors have {width} numbers, but {start.path} reads {wanted or 'no vectors'}.",
        "Start from a model for such vectors, or from none.",
    )
