"""A decoder whose stack and head run in C++ with 8-bit weights; embedding, cache and choice of tokens stay as they are.

A `NativeStack` takes the place of a Stack, with the same face. What hooks would see inside it is not there.

b batch, n length, m slots so far
"""

import copy
import ctypes
from ctypes import byref, c_void_p
from typing import TypeVar

import torch
from torch import Tensor, nn

from glassformer.errors import require
from glassformer.fast import native
from glassformer.fast.native_pack import PackedLinear, PackedStack
from glassformer.model import DecoderOnly
from glassformer.model.cache import Cache
from glassformer.model.heads import TokenHead
from glassformer.model.masks import join_masks, padding_mask
from glassformer.model.positions import count_positions
from glassformer.model.settings import StackSettings
from glassformer.model.stack import Stack

Module = TypeVar("Module", bound=nn.Module)


class NativeLinear(nn.Module):
    """Takes the place of a Linear; it cannot be trained or saved."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.packed = PackedLinear(linear)

    def forward(self, x: Tensor) -> Tensor:
        x = x.contiguous()
        out = torch.empty(*x.shape[:-1], self.out_features)
        rows = x.numel() // self.in_features
        native.library().glassformer_linear(
            byref(self.packed.struct), x.data_ptr(), self.in_features, rows, out.data_ptr(), torch.get_num_threads()
        )
        return out


def log_totals(scores: Tensor) -> Tensor:
    """As `model.heads.log_totals`: the logarithm of the sum of each row's exponentials (r)."""
    scores, found = scores.contiguous(), torch.empty(len(scores))
    native.library().glassformer_log_totals(
        scores.data_ptr(), scores.shape[1], len(scores), found.data_ptr(), torch.get_num_threads()
    )
    return found


class NativeStack(nn.Module):
    """A causal stack without cross-attention, all of it in one call."""

    cache_dtype = torch.float16

    def __init__(self, stack: Stack, settings: StackSettings) -> None:
        super().__init__()
        require(stack.causal and stack.d_memory is None, "C++ runs decoders alone.", "Use the torch engine.")
        self.settings, self.rotary_angles = settings, stack.rotary_angles
        self.packed = PackedStack(stack, settings)

    def forward(
        self,
        x: Tensor,
        keep: Tensor | None = None,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        memory: Tensor | None = None,
        memory_keep: Tensor | None = None,  # noqa: ARG002 (the face of a Stack)
        cache: Cache | None = None,
        start: int = 0,
    ) -> Tensor:
        """As a Stack's; without a cache it makes one for the time of the call."""
        assert memory is None
        b, n, _ = x.shape
        m = start + n
        cache = Cache(self.settings, b, n, x.device, self.cache_dtype) if cache is None else cache
        assert all(layer.k.dtype == self.cache_dtype for layer in cache.layers)
        x = x.clone(memory_format=torch.contiguous_format)
        seen = join_masks(mask, None if keep is None else padding_mask(keep))
        if seen is not None:
            require(seen.dim() == 2 or seen.shape[1] == 1, "C++ has one mask for all heads.", "Use the torch engine.")
            seen = seen.expand(b, 1, n, m).contiguous()
        cos, sin = self._angles(b, n, m, keep, positions, x)
        pointers = [(c_void_p * len(cache.layers))(*(t.data_ptr() for t in ts)) for ts in _keys_and_values(cache)]
        call = native.Call(
            x.data_ptr(), *map(ctypes.addressof, pointers), _address(seen), _address(cos), _address(sin),
            b, n, start, cache.capacity,
        )  # fmt: skip
        native.library().glassformer_stack(byref(self.packed.struct), byref(call), torch.get_num_threads())
        return x

    def _angles(
        self, b: int, n: int, m: int, keep: Tensor | None, positions: Tensor | None, x: Tensor
    ) -> tuple[Tensor | None, Tensor | None]:
        if self.rotary_angles is None:
            return None, None
        positions = count_positions(m, keep, x.device)[..., m - n :] if positions is None else positions
        cos, sin = (t.view(-1, n, self.settings.d_k) for t in self.rotary_angles(positions))
        return cos.expand(b, -1, -1).contiguous(), sin.expand(b, -1, -1).contiguous()


def run_natively(model: DecoderOnly) -> DecoderOnly:
    """A copy whose stack and head run in C++; what it need not change it shares with the given model."""
    weight = next(model.parameters())
    require(weight.device.type == "cpu", f"The model is on {weight.device}, but int8 runs on a CPU.", "Move it there.")
    require(weight.dtype == torch.float32, f"The weights are {weight.dtype}, not float32.", "Convert them first.")
    reason = native.why_no_native()
    require(reason is None, f"The compiled engine cannot run here: {reason}.", "Use the torch engine.")
    fast = _shallow(model.eval())
    fast.decoder = NativeStack(model.decoder, model.settings.decoder)  # type: ignore[assignment]
    if isinstance(model.head, TokenHead):
        fast.head = _shallow(model.head)
        fast.head.w = NativeLinear(model.head.w)  # type: ignore[assignment]
    fast.log_totals = log_totals
    return fast


def _shallow(module: Module) -> Module:
    """A module of its own with the same parts."""
    twin = copy.copy(module)
    twin._modules = dict(module._modules)
    return twin


def _keys_and_values(cache: Cache) -> tuple[list[Tensor], list[Tensor]]:
    return [layer.k for layer in cache.layers], [layer.v for layer in cache.layers]


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
