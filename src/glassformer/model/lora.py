"""LoRA: a trained matrix stays as it is, and beside it a narrow detour learns what a new task needs.

W x + (alpha / rank) · B A x, with A (rank × in) and B (out × rank). B begins at zero, so that nothing changes before
the first step; merging adds the product to W, and nothing is left of the detour.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from glassformer.errors import require
from glassformer.model.dropout import Dropout
from glassformer.model.settings.base import Settings
from glassformer.model.stack import Stack


@dataclass(frozen=True, kw_only=True)
class LoraSettings(Settings):
    # Width of the detour; 4 to 64 are usual.
    rank: int = 8
    # The detour counts alpha / rank.
    alpha: float = 16.0
    dropout: float = 0.0
    # Which matrices of each layer: w_q, w_k, w_v, w_o of attention; w_1, w_2, w_gate of the feed-forward part.
    targets: tuple[str, ...] = ("w_q", "w_k", "w_v", "w_o")

    def __post_init__(self) -> None:
        self._at_least(1, "rank")
        self._share("dropout")
        require(self.alpha > 0, f"lora.alpha is {self.alpha}.", "It must be above 0.")
        require(bool(self.targets), "lora.targets is empty.", "Name at least one matrix, such as w_q.")


class LoraLinear(nn.Module):
    """A Linear and its detour, in the Linear's place."""

    def __init__(self, linear: nn.Linear, settings: LoraSettings) -> None:
        super().__init__()
        self.linear, self.scale = linear, settings.alpha / settings.rank
        self.dropout = Dropout(settings.dropout)
        weight = linear.weight
        self.a = nn.Parameter(torch.empty(settings.rank, linear.in_features, device=weight.device))
        self.b = nn.Parameter(torch.zeros(linear.out_features, settings.rank, device=weight.device))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.linear(x) + (self.dropout(x) @ self.a.T) @ self.b.T * self.scale
        return out

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        self.linear.weight += self.scale * self.b @ self.a
        return self.linear


def add_lora(model: nn.Module, settings: LoraSettings) -> None:
    """Freeze the model and give its stacks detours, which alone are trained."""
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    found = set()
    for module, name, linear in _linears(model):
        if name in settings.targets:
            setattr(module, name, LoraLinear(linear, settings))
            found.add(name)
    known = sorted({name for _, name, _ in _linears(model)} | found)
    missing = sorted(set(settings.targets) - found)
    require(
        not missing, f"lora.targets names {', '.join(missing)}, which the model lacks.", f"It has {', '.join(known)}."
    )


def merge_lora(model: nn.Module) -> None:
    """Put all detours into the matrices that they stand beside."""
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, LoraLinear):
                setattr(module, name, child.merged())
    for parameter in model.parameters():
        parameter.requires_grad_(True)


def _linears(model: nn.Module) -> list[tuple[nn.Module, str, nn.Linear]]:
    """The matrices of all stacks: where each is, its name there, and itself."""
    stacks = [module for module in model.modules() if isinstance(module, Stack)]
    return [
        (module, name, child)
        for stack in stacks
        for module in stack.modules()
        for name, child in module.named_children()
        if isinstance(child, nn.Linear) and not isinstance(module, LoraLinear)
    ]
