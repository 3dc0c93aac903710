"""Take a head away and see what changes in the answer."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from glassformer.errors import require
from glassformer.look.change import Change, changed
from glassformer.model import Transformer
from glassformer.model.attention import MultiHeadAttention


def without_heads(heads: Iterable[int]) -> Change:
    """A change of z (b, h, n, d_v): these heads find nothing."""
    gone = list(heads)

    def change(z: Tensor) -> Tensor:
        z = z.clone()
        z[:, gone] = 0.0
        return z

    return change


def without_units(units: Iterable[int]) -> Change:
    """A change of hidden (b, n, d_ff): these units stay silent."""
    gone = list(units)

    def change(hidden: Tensor) -> Tensor:
        hidden = hidden.clone()
        hidden[..., gone] = 0.0
        return hidden

    return change


def attentions(model: nn.Module) -> dict[str, MultiHeadAttention]:
    """All attentions of a model by their paths."""
    return {path: module for path, module in model.named_modules() if isinstance(module, MultiHeadAttention)}


@torch.no_grad()
def ablate_heads(model: Transformer, score: Callable[[], float], only: str = "") -> dict[str, Tensor]:
    """How far the score falls without each head (h), for every attention whose path begins with `only`."""
    found = {path: part for path, part in attentions(model).items() if path.startswith(only)}
    require(bool(found), f"The model has no attention below {only!r}.", f"It has {', '.join(attentions(model))}.")
    whole = score()
    falls: dict[str, Tensor] = {}
    for path, part in found.items():
        rest = []
        for head in range(part.n_heads):
            with changed(model, {f"{path}.z": without_heads([head])}):
                rest.append(score())
        falls[path] = whole - torch.tensor(rest)
    return falls
