"""Block and Stack: encoder and decoder are the same class.

b batch, n length, m memory length
"""

import torch
from torch import Tensor, nn

from glassformer.errors import UserError, require
from glassformer.model.attention import MultiHeadAttention
from glassformer.model.cache import Cache, LayerCache
from glassformer.model.layers import Convolution, FeedForward, Residual, build_norm
from glassformer.model.masks import check_keep, check_mask, join_masks, look_ahead_mask, padding_mask
from glassformer.model.positions import Angles, RotaryAngles, count_positions
from glassformer.model.settings import StackSettings


class Block(nn.Module):
    """Self-attention, maybe cross-attention or a convolution, feed-forward; each beside a skip connection."""

    def __init__(self, settings: StackSettings, d_memory: int | None) -> None:
        super().__init__()

        def residual() -> Residual:
            return Residual(settings.norm, settings.d_model, settings.dropout)

        self.self_attention = MultiHeadAttention(settings)
        self.self_residual = residual()
        self.cross_attention = None if d_memory is None else MultiHeadAttention(settings, d_memory)
        self.cross_residual = None if d_memory is None else residual()
        local = settings.convolution
        self.convolution = None if local is None else Convolution(local, settings.norm, settings.d_model)
        self.convolution_residual = None if local is None else residual()
        self.feed_forward = FeedForward(settings.feed_forward, settings.d_model)
        self.feed_forward_residual = residual()

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        causal: bool = False,
        angles: Angles | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: LayerCache | None = None,
        start: int = 0,
        keep: Tensor | None = None,
    ) -> Tensor:
        x = self.self_residual(
            x, lambda x: self.self_attention(x, mask=mask, causal=causal, angles=angles, cache=cache, start=start)
        )
        if self.cross_attention is not None and self.cross_residual is not None:
            cross = self.cross_attention
            x = self.cross_residual(x, lambda x: cross(x, memory, mask=memory_mask, cache=cache))
        if self.convolution is not None and self.convolution_residual is not None:
            convolution = self.convolution
            x = self.convolution_residual(x, lambda x: convolution(x, keep))
        out: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return out


class Stack(nn.Module):
    """Blocks one after the other. An encoder is neither causal nor has a memory; a decoder is causal."""

    cache_dtype: torch.dtype | None = None  # of keys and values; None: as the weights

    def __init__(self, settings: StackSettings, causal: bool = False, d_memory: int | None = None) -> None:
        super().__init__()
        self.causal, self.d_memory, self.n_heads = causal, d_memory, settings.attention.n_heads
        rotary = settings.attention.rotary
        self.rotary_angles = RotaryAngles(rotary, settings.d_k) if rotary is not None else None
        self.blocks = nn.ModuleList(Block(settings, d_memory) for _ in range(settings.n_layers))
        self.norm = build_norm(settings.norm, settings.d_model) if settings.norm.has_final else None

    def forward(
        self,
        x: Tensor,
        keep: Tensor | None = None,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        memory: Tensor | None = None,
        memory_keep: Tensor | None = None,
        cache: Cache | None = None,
        start: int = 0,
    ) -> Tensor:
        """`keep` covers all keys: the input, and with a cache also what came before it from slot 0 to `start`."""
        b, n, _ = x.shape
        m = start + n
        check_keep(keep, b, m, "keep")
        check_mask(mask, b, self.n_heads, n, m)
        require(
            (self.d_memory is None) == (memory is None),
            "A memory goes to a stack with cross-attention, and only there.",
            "Give the encoder's output to the decoder of an encoder-decoder.",
        )
        if memory is not None and memory.shape[-1] != self.d_memory:
            raise UserError(
                f"The memory is {memory.shape[-1]} wide, but the decoder looks at one of {self.d_memory}.",
                "Decode with the model that encoded.",
            )
        memory_mask = None
        if memory is not None and memory_keep is not None:
            check_keep(memory_keep, memory.shape[0], memory.shape[1], "memory_keep")
            memory_mask = padding_mask(memory_keep)
        mask = join_masks(mask, None if keep is None else padding_mask(keep))
        causal = self.causal
        if n == 1:  # the last position sees all; a plain `if`, since a compiled kernel takes no symbolic flag
            causal = False
        if causal and (mask is not None or start > 0):  # the kernel takes the flag alone; joined once for all layers
            mask, causal = join_masks(mask, look_ahead_mask(n, m, x.device)), False
        angles = None
        if self.rotary_angles is not None:
            positions = count_positions(m, keep, x.device)[..., start:] if positions is None else positions
            angles = self.rotary_angles(positions)
        for i, block in enumerate(self.blocks):
            layer = cache.layers[i] if cache is not None else None
            x = block(x, mask, causal, angles, memory, memory_mask, layer, start, keep)
        return x if self.norm is None else self.norm(x)
