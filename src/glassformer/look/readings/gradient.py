"""Gradient × input: how much a score would fall, to first order, if an input position's vector were taken away.

A check on attribution that also counts what goes by way of later parts. A model that begins with a norm does not mind
how long a vector is, so that little falls if it shrinks; there, ask what changes if it becomes another.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from glassformer.look.change import changed
from glassformer.model import Transformer


def gradient_times_input(
    model: Transformer, score: Callable[[], Tensor], front_end: str = "source", instead: Tensor | None = None
) -> Tensor:
    """One number for each position of each row (b, n); `score` runs the model once and gives one number.

    `instead` (b, n, d) is what the vectors would be otherwise; without it, nothing.
    """
    leaves: list[Tensor] = []

    def remember(x: Tensor) -> Tensor:
        leaves.append(x.detach().requires_grad_())
        return leaves[-1]

    with torch.enable_grad(), changed(model, {f"{front_end}.x": remember}):
        result = score()
        assert len(leaves) == 1, "The score runs the model once."
        (gradient,) = torch.autograd.grad(result, leaves[0])
    lost = leaves[0].detach() if instead is None else leaves[0].detach() - instead
    return (gradient * lost).sum(dim=-1)  # (b, n)
