"""Muon for the matrices of the stacks, AdamW for all the rest.

A matrix moves in all its directions alike: its gradient's running mean U S V' is replaced by about U V', which a few
products find without a decomposition (Newton and Schulz). The step is as long as Adam's usually is, so that one
learning rate serves both.

b matrices of one shape, m rows, n columns
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

MOMENTUM = 0.95
# An odd polynomial of fifth degree that takes every singular value between 0 and 1 to about 1 in five rounds.
FACTORS, ROUNDS = (3.4445, -4.7750, 2.0315), 5
STEP = 0.2  # the root of the mean square of a usual step of Adam, in learning rates


class Muon(torch.optim.AdamW):
    """Groups with `muon` set go its way; what else the groups hold is AdamW's."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        for group in self.param_groups:
            if group["muon"]:
                by_shape: dict[torch.Size, list[Tensor]] = {}
                for p in group["params"]:
                    if p.grad is not None:
                        by_shape.setdefault(p.shape, []).append(p)
                for shape, matrices in by_shape.items():
                    self._move(matrices, group["lr"] * STEP * math.sqrt(max(shape)), group)
        return super().step(closure)  # has nothing to do where no gradient is left

    def _move(self, matrices: list[Tensor], length: float, group: dict[str, Any]) -> None:
        ahead = []
        for p in matrices:
            state = self.state[p]
            if not state:
                state["step"] = torch.zeros(())  # AdamW looks for it in every state
                state["momentum"] = torch.zeros_like(p)
            assert p.grad is not None
            state["momentum"].lerp_(p.grad, 1 - MOMENTUM)
            ahead.append(p.grad.lerp(state["momentum"], MOMENTUM))  # Nesterov's look ahead
            p.grad = None
        for p, direction in zip(matrices, evened(torch.stack(ahead)), strict=True):
            p.mul_(1 - group["lr"] * group["weight_decay"]).sub_(direction, alpha=length)


def evened(x: Tensor) -> Tensor:
    """(b, m, n) matrices with the same directions, whose singular values are all about 1."""
    if x.shape[-2] > x.shape[-1]:
        return evened(x.mT).mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    a, b, c = FACTORS
    for _ in range(ROUNDS):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return x
