"""Weights as 8-bit whole numbers in the order that C++ reads them.

d_in and d_out widths of a linear layer
"""

import mmap
from contextlib import suppress

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from glassformer.errors import require
from glassformer.fast import native
from glassformer.model.settings import StackSettings
from glassformer.model.stack import Block, Stack

BLOCK, FOUR, STEP = 16, 4, 8  # outputs that are summed side by side, inputs that lie together, inputs of one step
ROTARY = {"halves": 1, "interleaved": 2}
LARGE_PAGE = 2**21
LEAST = 1e-12  # a row of zeros must not divide by zero


class PackedLinear:
    """One or more linear layers of the same input as one matrix of whole numbers, in the order that C++ reads."""

    def __init__(self, *linears: nn.Linear) -> None:
        weight = torch.cat([linear.weight.detach().float() for linear in linears])  # (d_out, d_in)
        biases = [torch.zeros(each.out_features) if each.bias is None else each.bias.detach() for each in linears]
        self.scale = row_scales(weight)
        whole = (weight / self.scale[:, None]).round_().to(torch.int8)
        self.bias = torch.cat(biases).float().contiguous()
        require(
            bool((self.scale.sum() + self.bias.sum()).isfinite()),
            "The model has weights that are not finite: its training went wrong.",
            "Take earlier weights, or train it again with a lower learning rate.",
        )
        self.shift = 128 * whole.sum(dim=1, dtype=torch.int32)
        d_out, d_in = whole.shape
        whole = F.pad(whole, (0, -d_in % STEP, 0, -d_out % BLOCK))
        blocks = whole.view(whole.shape[0] // BLOCK, BLOCK, whole.shape[1] // FOUR, FOUR)
        self.weight = _in_large_pages(blocks.transpose(1, 2))
        self.struct = native.Linear(
            *(t.data_ptr() for t in (self.weight, self.scale, self.bias, self.shift)), whole.shape[1], d_out
        )


class PackedStack:
    """All layers of a stack; `struct` is valid as long as this lives."""

    def __init__(self, stack: Stack, settings: StackSettings) -> None:
        self.kept: list[object] = []  # what C++ has addresses of
        layers = (native.Layer * settings.n_layers)(*(self._layer(block) for block in stack.blocks))
        self.kept.append(layers)
        attention = settings.attention
        self.struct = native.Stack(
            layers=layers,
            last=self._norm(stack.norm),
            n_layers=settings.n_layers,
            d_model=settings.d_model,
            h=attention.n_heads,
            h_kv=attention.kv_heads,
            d_k=settings.d_k,
            d_v=settings.d_v,
            d_ff=settings.feed_forward.d_ff,
            activation=native.ACTIVATIONS[settings.feed_forward.activation],
            pre_norm=settings.norm.place == "pre",
            rotary=0 if attention.rotary is None else ROTARY[attention.rotary.layout],
        )

    def _layer(self, block: nn.Module) -> native.Layer:
        assert isinstance(block, Block)
        attention, feed_forward = block.self_attention, block.feed_forward
        gate = feed_forward.w_gate
        layer = native.Layer(
            qkv=self._pack(attention.w_q, attention.w_k, attention.w_v),
            o=self._pack(attention.w_o),
            w_1=self._pack(feed_forward.w_1),
            gate=native.Linear() if gate is None else self._pack(gate),
            w_2=self._pack(feed_forward.w_2),
            attention_norm=self._norm(block.self_residual.norm),
            ff_norm=self._norm(block.feed_forward_residual.norm),
        )
        if block.cross_attention is not None and block.cross_residual is not None:
            cross = block.cross_attention
            layer.cross_q, layer.cross_o = self._pack(cross.w_q), self._pack(cross.w_o)
            layer.cross_kv = self._pack(cross.w_k, cross.w_v)
            layer.cross_norm = self._norm(block.cross_residual.norm)
        return layer

    def _pack(self, *linears: nn.Linear) -> native.Linear:
        packed = PackedLinear(*linears)
        self.kept.append(packed)
        return packed.struct

    def _norm(self, norm: nn.Module | None) -> native.Norm:
        struct, owned = native.norm_of(norm)
        self.kept.append(owned)
        return struct


def row_scales(weight: Tensor) -> Tensor:
    """What one step is worth in each row (d_out, d_in): 127 steps hold the largest weight.

    Where sums begin in 16 bits, those that are added there hold together no more than they may.
    """
    largest = weight.abs().amax(dim=1) / 127
    if most := native.most_together():
        together = torch.cat(
            [_most_of_one_sign(part) for part in torch.split(weight, 256)]
        )  # that many stay in the cache
        largest = torch.maximum(largest, together / (most - 2))  # rounding adds up to a half each
    return largest.clamp(min=LEAST)


def _most_of_one_sign(weight: Tensor) -> Tensor:
    """Of each row (d_out, d_in) the largest sum of weights that meet in 16 bits: two of a four and two of the next."""
    padded = F.pad(weight, (0, -weight.shape[1] % STEP))
    most = []
    for part in (padded.clamp(min=0), padded.clamp(max=0).neg_()):
        first, second = (part[:, ::2] + part[:, 1::2]).view(len(weight), -1, 2, FOUR // 2).unbind(dim=2)
        most.append((first + second).flatten(1).amax(dim=1))
    return torch.stack(most).amax(dim=0)


def _in_large_pages(tensor: Tensor) -> Tensor:
    """A copy in pages of 2 MB where it is that large: reading it from end to end looks up fewer addresses."""
    size = tensor.numel() * tensor.element_size()
    if size < LARGE_PAGE:
        return tensor.contiguous()
    memory = mmap.mmap(-1, size)
    with suppress(OSError):  # a kernel may have none
        memory.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(memory, dtype=tensor.dtype).view(tensor.shape).copy_(tensor)
