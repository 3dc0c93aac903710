"""Labelled pictures made ready for training, and for tests."""

from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from glassformer import config
from glassformer.data.counted import counted
from glassformer.data.labels import LabelKind, Targets
from glassformer.data.picture_augment import Augmentation
from glassformer.data.picture_batch import PictureExamples, moments
from glassformer.data.picture_file import Frame
from glassformer.data.picture_find import PictureFiles
from glassformer.data.pictures import Pictures, Survey, are_grey, read_pictures, survey
from glassformer.model.settings import PatchesSettings
from glassformer.tasks.classifier import Classifier
from glassformer.tasks.classify import ClassifyRecipe
from glassformer.tasks.classify_baselines import majority, nearest_vector
from glassformer.tasks.classify_data import DividedSubject, Prepared, divide, require_labels
from glassformer.tasks.classify_model import load_start
from glassformer.tasks.classify_scores import Scores
from glassformer.tasks.evaluate_classify import Exam, Examined, spread
from glassformer.tasks.model_dir import LoadedModel
from glassformer.tasks.picture_settings import PictureSettings, PictureUse, use_of
from glassformer.tasks.run import Run

LARGEST = 128  # pixels of the longer side, where no size is asked for
ALONG = 8  # patches along the longer side, about
COMPARED = 32  # pixels of a side by which nearest neighbours are found, at most


@dataclass(frozen=True)
class PictureSubject(DividedSubject[Pictures]):
    """All labelled pictures of a run; made by `judge_pictures`."""

    survey: Survey
    use: PictureUse
    patches: PatchesSettings
    recipe: ClassifyRecipe

    @property
    def front_end(self) -> dict[str, object]:
        return config.to_data(self.patches)

    @property
    def augmentation(self) -> Augmentation:
        wanted = self.recipe.pictures
        flip = self.patches.n_channels == 3 if wanted.flip is None else wanted.flip
        return Augmentation(wanted.augment, flip, wanted.mixup, wanted.shift)

    def describe(self) -> list[str]:
        said = [str(self.train), *(() if self.valid is None else self.valid.skipped())]
        if self.survey.n_other:
            h, w = self.survey.size
            shaped = {"crop": "cropped", "stretch": "stretched", "pad": "padded"}[self.use.fit]
            said.append(
                f"The commonest size is {h} × {w}, but {self.survey.n_other:,} of {self.survey.sizes.total():,} looked "
                f"at have others: they are resized, and {shaped} where the shape differs (pictures.fit)."
            )
        p = self.patches
        margin = f", each with a margin of {counted(p.margin, 'pixel')} (model.source.margin)" if p.margin else ""
        said.append(f"Cut into {p.n_patches} patches of {p.patch} × {p.patch} pixels (model.source.patch){margin}.")
        return [*said, *self.describe_division(), *self._changes()]

    def _changes(self) -> list[str]:
        how = self.augmentation
        changed = f"{self._moved()} (pictures.shift)"
        if how.strength == "off":
            changed = "not moved (pictures.augment)"
        elif how.strength == "strong":
            changed += ", turned, lit and hidden in part (pictures.augment)"
        mirrored = "mirrored at times" if how.flip else "never mirrored"
        mixed = f", mixed in pairs ({how.mixup:g})" if how.mixup else ""
        said = [f"In training pictures are {changed}, {mirrored} (pictures.flip){mixed}."]
        if how.strength == "off" and how.shift != PictureSettings().shift:
            said.append(f"pictures.shift is {how.shift:g}, which has no effect while pictures.augment is off.")
        return said

    def _moved(self) -> str:
        down, across = (round(n * self.augmentation.shift) for n in (self.patches.height, self.patches.width))
        if down == across:
            return f"moved by up to {counted(down, 'pixel')}" if down else "not moved"
        return f"moved by up to {counted(down, 'pixel')} up or down and {across:,} sideways"

    def prepare(self, recipe: ClassifyRecipe, run: Run, identity: str, start: LoadedModel | None) -> Prepared:  # noqa: ARG002
        if not run.is_prepared(identity, recipe):
            run.prepared(identity)
        chosen = self.train.select(self.division.train)
        others = self.train.select(self.division.valid) if self.valid is None else self.valid
        mean, std = (self.use.mean, self.use.std) if self.use.std else moments(chosen.pixels)
        use = replace(self.use, mean=mean, std=std)
        n = self.patches.n_patches + self.patches.class_token

        def examples(part: Pictures, targets: Targets, how: Augmentation) -> PictureExamples:
            return PictureExamples(
                part.pixels, use.mean, use.std, n, targets, part.places, how, n_classes=self.labels.n_out
            )

        train = examples(chosen, self.train_targets, self.augmentation)
        valid = examples(others, self.valid_targets, Augmentation("off"))
        about = {"input": "pictures", "pictures": config.to_data(use)}
        return Prepared(train, valid, self.front_end, None, about)


def judge_pictures(files: PictureFiles, valid: PictureFiles | None, recipe: ClassifyRecipe) -> PictureSubject:
    """Read and check everything, before anything is written."""
    found = survey(files)
    if recipe.start is None:
        wanted = recipe.pictures
        use = PictureUse((), (), wanted.resample, wanted.fit, found.span)
        patches = _new_patches(found, recipe)
    else:
        old, use = use_of(load_start(recipe.start))
        height, width = recipe.pictures.size or (old.height, old.width)
        patches = replace(old, height=height, width=width)
    train = read_pictures(files, use.frame(patches), use.span)
    if recipe.start is None and recipe.pictures.channels is None and are_grey(train.pixels):
        train, patches = train.without_colours(), replace(patches, n_channels=1)
    others = None if valid is None else read_pictures(valid, use.frame(patches), use.span)
    for part in (train, *(() if others is None else (others,))):
        require_labels(part)
    kind: LabelKind | None = "class" if files.are_classes else None
    division = divide(train, others, recipe, [str(train)], kind)
    return PictureSubject(train, others, division, found, use, patches, recipe)


def _new_patches(found: Survey, recipe: ClassifyRecipe) -> PatchesSettings:
    """What a new model reads: the size that was asked for, or the commonest, brought to whole patches."""
    source = recipe.model.get("source", {})
    asked, margin = (source.get(name) if isinstance(source, dict) else None for name in ("patch", "margin"))
    height, width = recipe.pictures.size or _smaller(found.size)
    patch = asked if isinstance(asked, int) and asked > 0 else _patch(height, width)
    if recipe.pictures.size is None:
        height, width = (max(1, round(side / patch)) * patch for side in (height, width))
    return PatchesSettings(
        height=height,
        width=width,
        n_channels=recipe.pictures.channels or (3 if found.is_coloured else 1),
        patch=patch,
        margin=margin if isinstance(margin, int) else 0,
        class_token=recipe.pooling == "first",
    )


def _smaller(size: tuple[int, int]) -> tuple[int, int]:
    share = min(1.0, LARGEST / max(size))
    return max(1, round(size[0] * share)), max(1, round(size[1] * share))


def _patch(height: int, width: int) -> int:
    """About an eighth of the longer side; if it can be, one that divides both."""
    longest = max(height, width)
    best = longest / ALONG
    near = [p for p in range(2, longest + 1) if 0.6 * best <= p <= 2 * best and p <= min(height, width)]
    whole = [p for p in near if height % p == 0 and width % p == 0]
    return min(whole or near or [min(height, width)], key=lambda p: (abs(p - best), p))


def exam_of_pictures(
    classifier: Classifier, files: PictureFiles, memory: PictureFiles | None, limit: int | None = None
) -> Exam:
    """Pictures to test on, and baselines fitted on the memory."""
    source, use = use_of(classifier.loaded)
    frame = use.frame(source)
    found = read_pictures(files, frame, use.span)
    require_labels(found)
    pictures = found.select(spread(range(len(found.places)), limit))
    labels, n = classifier.labels, len(pictures.places)
    tested = Examined(
        paths=tuple(map(str, pictures.paths)),
        data=classifier.pictures(pictures.pixels),
        targets=labels.encode(pictures.labels, pictures.places.__getitem__),
        show=lambda i: f"{pictures.pixels[i].mean() / 255:.0%} of white in the mean",
        place=pictures.places.__getitem__,
        n_bad=len(pictures.bad),
        bad_example=pictures.bad[0] if pictures.bad else None,
    )
    if memory is None:
        return Exam(tested, {})
    known = read_pictures(memory, frame, use.span)
    require_labels(known, "The memory is what the model was trained on.")
    targets = labels.encode(known.labels, known.places.__getitem__)
    baselines: dict[str, Scores] = {
        "mean" if labels.kind == "number" else "majority": majority(labels, targets, n),
        "nearest neighbour": nearest_vector(
            labels, _as_vectors(known, frame), targets, _as_vectors(pictures, frame), 1.0
        ),
    }
    keys = set(known.keys())
    return Exam(tested, baselines, sum(key in keys for key in pictures.keys()))  # noqa: SIM118 (not a mapping)


def _as_vectors(pictures: Pictures, frame: Frame) -> NDArray[np.float32]:
    """The pixels of each in one row, large pictures made smaller."""
    size = (min(frame.height, COMPARED), min(frame.width, COMPARED))
    rows = []
    for begin in range(0, len(pictures.pixels), 1000):
        part = torch.from_numpy(pictures.pixels[begin : begin + 1000]).permute(0, 3, 1, 2).float() / 255
        rows.append(F.interpolate(part, size=size, mode="area").flatten(1).numpy())
    return np.concatenate(rows)
