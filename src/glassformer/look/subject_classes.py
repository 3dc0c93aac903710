"""What a classifier reads, and what it says to it: positions are tokens, patches of a picture, or steps of a series."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from glassformer.data.series import Vectors, parse_series, read_series
from glassformer.errors import require
from glassformer.look.subject import (
    AnswerKind,
    LookOptions,
    Subject,
    check_length,
    check_patches,
    refuse_answer,
    show_tokens,
)
from glassformer.model import DecoderOnly, EncoderOnly
from glassformer.tasks.classifier import Answer, Classifier
from glassformer.tasks.model_dir import LoadedModel
from glassformer.tasks.picture_settings import use_of

KINDS: dict[str, AnswerKind] = {"class": "choice", "classes": "choices", "number": "number"}


@dataclass(frozen=True)
class Reading:
    """An input as it is called, as the classifier takes it, and how its positions lie where they are no words."""

    title: str
    given: Any
    places: list[str] | None = None  # None: the tokens themselves
    sense: dict[str, Any] | None = None


def classified(loaded: LoadedModel, text: str, options: LookOptions) -> Subject:
    """`text` is a text, or the name of a file where the model reads pictures or vectors."""
    refuse_answer(options)
    classifier = Classifier(loaded)
    reading = {"pictures": _picture, "vectors": _series}.get(classifier.input, _text)(classifier, text)
    model, batch = classifier.model, classifier.readable([reading.given]).load(np.array([0]))
    assert isinstance(model, DecoderOnly | EncoderOnly)
    batch = batch.to(next(model.parameters()).device)
    places = reading.places or show_tokens(loaded.tokenizer.tokens(batch.source[0].tolist()))
    (check_patches if classifier.input == "pictures" else check_length)(len(places))
    inputs: tuple[Tensor | None, ...] = (batch.source, batch.keep)
    inputs = inputs if isinstance(model, DecoderOnly) else (*inputs, batch.types)
    kind = KINDS[classifier.labels.kind]
    return Subject(
        text=reading.title,
        inputs=inputs,
        source=places,
        target=[],
        answer=_said(classifier.classify([reading.given])[0]),
        answers=[-1 if kind == "number" else int(model(*inputs)[0].argmax())],
        name=lambda i: classifier.labels.names[i],
        kind=kind,
        sense=reading.sense,
    )


def _said(answer: Answer) -> str:
    label = answer.label
    if isinstance(label, float):
        return f"{label:.4g}"
    return label if isinstance(label, str) else ", ".join(label) or "none"


def _text(_: Classifier, text: str) -> Reading:
    parts = text.split("\t")  # a pair is parted by a tab, as everywhere
    return Reading(text, parts if len(parts) > 1 else text)


def _picture(classifier: Classifier, path: str) -> Reading:
    source, _ = use_of(classifier.loaded)
    rows, columns, extra = source.height // source.patch, source.width // source.patch, int(source.class_token)
    # Rows and columns in short: they stand at the heads of tables.
    places = ["class token"] * extra + [f"r{i} c{j}" for i in range(rows) for j in range(columns)]
    sense = {"kind": "picture", "rows": rows, "columns": columns, "extra": extra}
    return Reading(Path(path).name, path, places, sense)


def _series(classifier: Classifier, text: str) -> Reading:
    """A file, of which `file.npz:3` chooses the third series; or a list of vectors as JSON."""
    width = int(classifier.loaded.about.get("n_features", 1))
    if text.lstrip().startswith(("[", "{")):
        title, values = "a series", parse_series(text, 1)
    else:
        title, values = _chosen_series(text, width)
    n_steps = int(classifier.readable([values]).lengths[0])  # of a long series the model reads the beginning
    return Reading(title, values, [f"step {i}" for i in range(n_steps)], {"kind": "series"})


def _chosen_series(text: str, width: int) -> tuple[str, Vectors]:
    name, _, number = text.rpartition(":")
    chosen = number.isdecimal() and not Path(text).exists()
    path = Path(name if chosen else text)
    values = read_series([path]).values
    if width > 1 and len({len(row) for row in values} | {width}) == 1 and values[0].shape[1] == 1:
        values = [np.stack(values)[:, :, 0]]  # (steps, features): one series alone, saved as it is
    n = int(number) if chosen else 1
    require(1 <= n <= len(values), f"{path} has no series {n}.", f"It holds {len(values):,}; the first is :1.")
    return path.name if len(values) == 1 else f"{path.name}:{n}", values[n - 1]
