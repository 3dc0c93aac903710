"""What 8-bit layers are to find, by the textbook."""

import shutil
from pathlib import Path
from typing import TypeVar

import pytest
from torch import Tensor, nn

from glassformer.fast.native_pack import row_scales

Model = TypeVar("Model", bound=nn.Module)

needs_compiler = pytest.mark.skipif(
    shutil.which("g++") is None or "avx2" not in Path("/proc/cpuinfo").read_text(),
    reason="no compiler, or no AVX2",
)


has_vnni = "avx512_vnni" in Path("/proc/cpuinfo").read_text() or "avx_vnni" in Path("/proc/cpuinfo").read_text()


class Rounded(nn.Module):
    """A Linear whose weight and input are rounded to 255 steps a row, multiplied without any trick."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.scale = row_scales(linear.weight)
        self.whole = (linear.weight / self.scale[:, None]).round().double()
        self.bias = 0 if linear.bias is None else linear.bias

    def forward(self, x: Tensor) -> Tensor:
        scale = x.abs().amax(dim=-1, keepdim=True) / 127
        whole = (x * (1 / scale)).round().nan_to_num(0).double()
        return ((whole @ self.whole.T) * (scale * self.scale)).float() + self.bias


def rounded(model: Model) -> Model:
    """The model with all of its linear layers rounded, in torch."""
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear):
                setattr(module, name, Rounded(child))
    return model
