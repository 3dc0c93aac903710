"""Means of weights: a running one with decay, and the plain one of several saved models."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from glassformer.train.checkpoint import trained


class RunningMean:
    """mean = decay * mean + (1 - decay) * weights, after every step; young runs use a smaller decay."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.tensors = {name: p.detach().clone() for name, p in trained(model).items()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        decay = min(self.decay, step / (step + 10))
        mine = list(self.tensors.values())
        torch._foreach_lerp_(mine, [p.detach() for p in trained(model).values()], 1 - decay)

    @torch.no_grad()
    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Copy by name: `update` relies on the order of the model's parameters, which a file does not keep."""
        for name, mine in self.tensors.items():
            mine.copy_(tensors[name])


def mean_of(models: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The plain mean, name by name."""
    return {name: torch.stack([m[name].float() for m in models]).mean(dim=0) for name in models[0]}
