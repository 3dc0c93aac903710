"""Linear layers in 8-bit whole numbers: a quarter of the memory to read, which is what one sentence waits for.

Each row of a weight has its own scale, and each row of an input as it comes. Embeddings, norms and attention itself
stay in fp32. Deliberately not here: training with rounded weights.
"""

import copy
import warnings
from typing import TypeVar

import torch
from torch import Tensor, nn

from glassformer.errors import require
from glassformer.model import Transformer
from glassformer.model.stack import Stack

Model = TypeVar("Model", bound=Transformer)

TINY = 1e-12  # a row of zeros must not divide by zero


class Int8Linear(nn.Module):
    """Takes the place of a Linear, at the same path and with the same face, but cannot be trained or saved."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        weight = linear.weight.detach().float()
        scales = weight.abs().amax(dim=1).clamp(min=TINY).double() / 127  # symmetric: zero stays zero
        zeros = torch.zeros(self.out_features, dtype=torch.int64)
        with warnings.catch_warnings():
            # torch means to drop these types one day, and has no other that its fast kernel takes.
            warnings.filterwarnings("ignore", message=".*quantize_per_channel.*", category=UserWarning)
            rounded = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        self.packed = torch.ops.quantized.linear_prepack(rounded, None)
        self.bias = torch.zeros(self.out_features) if linear.bias is None else linear.bias.detach().float().clone()

    def forward(self, x: Tensor) -> Tensor:
        # One scale a row, not one for the whole tensor: a loud row must not blur a quiet one, nor a sentence its
        # neighbours in a batch. In 7 bits, as without VNNI the sum of two products of 8 bits would overflow.
        size = x.abs().amax(dim=-1, keepdim=True).clamp_(min=TINY)
        out: Tensor = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            x / size, 1 / 63, 64, self.packed
        )
        return torch.addcmul(self.bias, out, size)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}"


def can_run_int8() -> bool:
    """Whether torch has the kernel on this machine: on x86, yes."""
    return "fbgemm" in torch.backends.quantized.supported_engines


def quantise_int8(model: Model) -> Model:
    """A copy whose stacks and head multiply in 8 bits; the given model stays as it is."""
    weight = next(model.parameters())
    require(weight.device.type == "cpu", f"The model is on {weight.device}, but int8 runs on a CPU.", "Move it there.")
    require(can_run_int8(), "torch has no int8 kernel for this machine.", "Set the precision to fp32.")
    small = copy.deepcopy(model)
    small.eval()
    parts = [m for m in small.modules() if isinstance(m, Stack)] + [small.head]
    for part in parts:
        for module in list(part.modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, nn.Linear):
                    setattr(module, name, Int8Linear(child))
    return small
