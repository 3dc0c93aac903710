"""Adam, AdamW or Muon over a model's parameters; what is a matrix decays, what is a vector does not.

In fine-tuning each layer may learn slower than the one above it, and the head faster than all.
"""

import re

import torch
from torch import nn

from glassformer.train.muon import Muon
from glassformer.train.settings import FineTuning, TrainSettings

_BLOCK = re.compile(r"(encoder|decoder)\.blocks\.(\d+)\.")


def build_optimizer(model: nn.Module, settings: TrainSettings) -> torch.optim.AdamW:
    """With weight_decay 0 this is Adam. Each group has its `speed`: the loop multiplies the learning rate with it."""
    groups: dict[tuple[float, bool, bool], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            muon = settings.optimizer == "muon" and parameter.dim() == 2 and _BLOCK.match(name) is not None
            kind = (speed_of(name, model, settings), parameter.dim() >= 2, muon)
            groups.setdefault(kind, []).append(parameter)
    kinds = [
        {
            "params": groups[speed, decays, muon],
            "weight_decay": settings.weight_decay if decays else 0.0,
            "speed": speed,
            "muon": muon,
        }
        for speed, decays, muon in sorted(groups, reverse=True)
    ]
    build = Muon if settings.optimizer == "muon" else torch.optim.AdamW
    # The loop sets the learning rate at every step.
    return build(kinds, lr=settings.lr or 0.0, betas=settings.betas, eps=settings.eps, fused=True)


def speed_of(name: str, model: nn.Module, settings: TrainSettings) -> float:
    """How fast a parameter learns beside the top layer, by its name."""
    if not isinstance(settings, FineTuning):
        return 1.0
    if name.startswith("head."):
        return settings.head_speed
    if match := _BLOCK.match(name):
        blocks: nn.ModuleList = model.get_submodule(f"{match[1]}.blocks")  # type: ignore[assignment]
        return settings.layer_decay ** (len(blocks) - 1 - int(match[2]))
    if name.startswith(("source.", "target.")):  # below all layers
        stack = "decoder" if name.startswith("target.") or not hasattr(model, "encoder") else "encoder"
        lowest: nn.ModuleList = model.get_submodule(f"{stack}.blocks")  # type: ignore[assignment]
        return settings.layer_decay ** len(lowest)
    return 1.0
