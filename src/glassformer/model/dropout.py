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
        self.threshold = min(255, max(1, round(p * 256))) if p > 0 else 0

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            return F.dropout(x, self.p)
        return x * self._mask(x)

    def _mask(self, x: Tensor) -> Tensor:
        bits = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        kept = bits.view(torch.uint8)[: x.numel()].view(x.shape).ge(self.threshold)
        return kept.to(x.dtype).mul_(256 / (256 - self.threshold))

    def extra_repr(self) -> str:
        return f"p={self.p}"
