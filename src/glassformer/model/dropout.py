"""Dropout that does not cost a fifth of a training step on a CPU.

torch draws one number for every element, which takes longer there than the matrix products of a small model. Here one
draw of 64 bits serves eight elements, a byte each, so the rate is kept to 1/256 and the scale fits the rounded rate:
the mean stays exact. Graphics cards and compiled graphs have a fused dropout already and use that.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Dropout(nn.Module):
    """In training, sets a random share `p` of the numbers to zero and scales the others up; else nothing."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.strength = 1.0  # the share of p that counts now; see `set_strength`

    def forward(self, x: Tensor) -> Tensor:
        p = self.p * self.strength
        if not self.training or p == 0:
            return x
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            return F.dropout(x, p)
        return x * _mask(x, self.threshold)

    @property
    def threshold(self) -> int:
        """Of 256: so many values of a byte drop an element; never none, never all."""
        return min(255, max(1, round(self.p * self.strength * 256)))

    def extra_repr(self) -> str:
        return f"p={self.p}"


def _mask(x: Tensor, threshold: int) -> Tensor:
    bits = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
    kept = bits.view(torch.uint8)[: x.numel()].view(x.shape).ge(threshold)
    return kept.to(x.dtype).mul_(256 / (256 - threshold))


def set_strength(model: nn.Module, strength: float) -> None:
    """Let all dropout of a model count by this share of its rate."""
    for module in model.modules():
        if hasattr(module, "strength"):
            module.strength = strength  # type: ignore[assignment]
