"""What a classifier says: scores of examples, probabilities, and both in words.

b batch, n examples, c classes
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer.data.batch import Rows
from glassformer.data.labelled_batch import Inputs, Readable, in_order
from glassformer.data.labels import LabelKind, Labels, Targets
from glassformer.model import DecoderOnly, EncoderOnly

AT_ONCE, BUDGET = 64, 8192  # examples and places of a batch that is only read

Classifying = EncoderOnly | DecoderOnly


def answer(model: Classifying, inputs: Inputs) -> Tensor:
    """Raw scores, one row an example."""
    if isinstance(model, DecoderOnly):
        scores: Tensor = model(inputs.source, inputs.keep)
    else:
        scores = model(inputs.source, inputs.keep, inputs.types)
    return scores  # (b, c)


@torch.inference_mode()
def score_rows(model: Classifying, data: Readable, rows: Rows) -> NDArray[np.float32]:
    """Raw scores of these examples in their order; those of similar lengths go together."""
    lengths = data.lengths
    device = next(model.parameters()).device
    order = np.argsort(lengths[rows], kind="stable")
    found: NDArray[np.float32] | None = None
    for places in in_order(order, lengths[rows], AT_ONCE, BUDGET):
        scores = answer(model, data.load(rows[places]).to(device)).float().cpu().numpy()
        found = np.zeros((len(rows), scores.shape[1]), dtype=np.float32) if found is None else found
        found[places] = scores
    assert found is not None
    return found  # (n, c)


def as_probabilities(raw: NDArray[np.float32], kind: LabelKind) -> NDArray[np.float32]:
    """Softmax over the classes, a sigmoid for each, or the number itself."""
    match kind:
        case "number":
            return raw[:, 0]
        case "classes":
            return torch.from_numpy(raw).sigmoid().numpy()
        case "class":
            return torch.from_numpy(raw).softmax(dim=-1).numpy()


def worst_first(kind: LabelKind, scores: NDArray[np.float32], targets: Targets) -> list[int]:
    """The wrong answers, the surest first; of numbers, the farthest off."""
    if kind == "number":
        return [int(i) for i in np.argsort(-np.abs(scores - targets), kind="stable")]
    if kind == "classes":
        wrong, by = ((scores >= 0.5) != (targets > 0.5)).any(axis=1), np.abs(scores - targets).max(axis=1)
    else:
        wrong, by = scores.argmax(axis=1) != targets, scores.max(axis=1)
    return [int(i) for i in np.argsort(-by, kind="stable") if wrong[i]]


def name_answer(labels: Labels, scores: Any) -> str:
    """One row of probabilities in words."""
    if labels.kind == "number":
        return f"{float(scores):.3g}"
    if labels.kind == "classes":
        chosen = [f"{name} ({p:.2f})" for name, p in zip(labels.names, scores, strict=True) if p >= 0.5]
        return ", ".join(chosen) or "none"
    return f"{labels.names[int(scores.argmax())]} ({scores.max():.2f})"


def name_target(labels: Labels, target: Any) -> str:
    if labels.kind == "number":
        return f"{float(target):g}"
    if labels.kind == "classes":
        return ", ".join(name for name, t in zip(labels.names, target, strict=True) if t) or "none"
    return labels.names[int(target)]
