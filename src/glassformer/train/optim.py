"""Adam or AdamW over a model's parameters; what is a matrix decays, what is a vector does not."""

import torch
from torch import nn

from glassformer.train.settings import TrainSettings


def build_optimizer(model: nn.Module, settings: TrainSettings) -> torch.optim.AdamW:
    """With weight_decay 0 this is Adam."""
    matrices = [p for p in model.parameters() if p.requires_grad and p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.requires_grad and p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": settings.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=settings.lr or 0.0,  # the loop sets it at every step
        betas=settings.betas,
        eps=settings.eps,
        fused=True,
    )
