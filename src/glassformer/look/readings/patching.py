"""Activation patching: run one input with a piece of another's insides, and see whose answer comes out.

Where the answer turns into the other input's, there the difference between the two was at work.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from glassformer.errors import require
from glassformer.look.change import Change, changed
from glassformer.look.trace import Trace
from glassformer.model import Transformer


def put_in(other: Tensor, position: int | None = None, head: int | None = None) -> Change:
    """A change that puts in the other run's tensor: all of it, one position's, one head's.

    Tensors of heads are (b, h, n, ·), all others (b, n, ·).
    """

    def change(own: Tensor) -> Tensor:
        require(
            own.shape == other.shape,
            f"The two inputs have shapes {tuple(other.shape)} and {tuple(own.shape)} here.",
            "Compare inputs of as many tokens.",
        )
        places: list[slice | int] = [slice(None)] * own.dim()
        if head is not None:
            places[1] = head
        if position is not None:
            places[-2] = position
        own = own.clone()
        own[tuple(places)] = other[tuple(places)]
        return own

    return change


@torch.no_grad()
def patch_stream(
    model: Transformer, other: Trace, score: Callable[[], float], stack: str = "decoder"
) -> tuple[Tensor, float]:
    """The score with the other run's stream at each layer's entrance and position (L, n), and the score without."""
    names = [
        name for name in other.names if name.startswith(f"{stack}.blocks.") and name.endswith("self_residual.before")
    ]
    require(bool(names), f"The trace holds no stream of a stack {stack!r}.", "Name encoder or decoder.")
    scores = torch.zeros(len(names), other[names[0]].shape[1])
    for layer, name in enumerate(names):
        for position in range(scores.shape[1]):
            with changed(model, {name: put_in(other[name], position)}):
                scores[layer, position] = score()
    return scores, score()


@torch.no_grad()
def patch_heads(model: Transformer, other: Trace, score: Callable[[], float]) -> dict[str, Tensor]:
    """The score with the other run's result of each single head, for every attention (h)."""
    found: dict[str, Tensor] = {}
    for name in (name for name in other.names if name.endswith("_attention.z")):
        scores = []
        for head in range(other[name].shape[1]):
            with changed(model, {name: put_in(other[name], head=head)}):
                scores.append(score())
        found[name.removesuffix(".z")] = torch.tensor(scores)
    return found
