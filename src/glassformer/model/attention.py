"""Attention: the textbook function, the fused core that gives the same numbers faster, and many heads of it.

b batch, n query length, m key length, h heads, h_kv key/value heads, d_k width of a key, d_v width of a value
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from glassformer.errors import UserError
from glassformer.model.cache import LayerCache
from glassformer.model.masks import check_mask
from glassformer.model.positions import Angles, Rotary
from glassformer.model.settings import StackSettings


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """softmax(QKᵀ/√d_k) V as the paper writes it: gives z, the weights and the scores.

    A query that may look at nothing gets weights of zero.
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (b, h, n, m)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
    return weights @ v, weights, scores  # z: (b, h, n, d_v)


class ScaledDotProduct(nn.Module):
    """The same by the fused kernel. It has no parameters; a hook on it sees exactly what the kernel got."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.strength = 1.0  # as in Dropout

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """`causal` is the look-ahead mask without a tensor, for n = m; it keeps the fastest kernels."""
        if q.device.type == "cpu" and torch.is_autocast_enabled("cpu"):  # torch's kernel there is far slower in bf16
            with torch.autocast("cpu", enabled=False):
                return self.forward(q.float(), k.float(), v.float(), mask, causal)
        if q.shape[1] != k.shape[1]:  # grouped heads: each key/value head serves several query heads
            k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], dim=1) for t in (k, v))
        p = self.dropout * self.strength if self.training else 0.0
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p, is_causal=causal)  # (b, h, n, d_v)


class MultiHeadAttention(nn.Module):
    """Concat(head_1 … head_h) W^O, each head an attention over its own projections.

    Self-attention gives `x` alone; cross-attention gives the `memory` that keys and values come from.
    """

    def __init__(self, settings: StackSettings, d_memory: int | None = None) -> None:
        super().__init__()
        a, d_model = settings.attention, settings.d_model
        d_memory = d_model if d_memory is None else d_memory
        self.n_heads, self.d_k, self.d_v = a.n_heads, settings.d_k, settings.d_v
        self.w_q = nn.Linear(d_model, a.n_heads * self.d_k, bias="q" in a.bias)
        self.w_k = nn.Linear(d_memory, a.kv_heads * self.d_k, bias="k" in a.bias)
        self.w_v = nn.Linear(d_memory, a.kv_heads * self.d_v, bias="v" in a.bias)
        self.rotary = Rotary(a.rotary) if a.rotary is not None else None
        self.core = ScaledDotProduct(a.dropout)
        self.w_o = nn.Linear(a.n_heads * self.d_v, d_model, bias="o" in a.bias)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        mask: Tensor | None = None,
        causal: bool = False,
        angles: Angles | None = None,
        cache: LayerCache | None = None,
        start: int = 0,
    ) -> Tensor:
        """`angles` turn queries and keys; with a `cache`, new keys and values are written from slot `start` on."""
        b, n, _ = x.shape
        q = self._split(self.w_q(x), self.d_k)  # (b, h, n, d_k)
        if memory is None:
            k, v = self._keys_and_values(x)  # (b, h_kv, n, d_k), (b, h_kv, n, d_v)
            if self.rotary is not None and angles is not None:
                q, k = self.rotary(q, angles), self.rotary(k, angles)
            if cache is not None:
                k, v = cache.append(k, v, start)  # (b, h_kv, m, ·)
        elif cache is None:
            k, v = self._keys_and_values(memory)
        else:  # the memory does not change while a decoder runs: its keys and values are made once
            if cache.memory is None:
                cache.memory = self._keys_and_values(memory)
            k, v = cache.memory
        if b % k.shape[0] != 0:
            raise UserError(
                f"The memory has {k.shape[0]} rows, but the target has {b}.",
                "Give one row of memory for each target row, or for each group of beams.",
            )
        if (beams := b // k.shape[0]) > 1:  # beams of one sentence ask one memory: more queries, not more copies
            q = q.reshape(-1, beams, *q.shape[1:]).transpose(1, 2).flatten(2, 3)  # (b / beams, h, beams * n, d_k)
        if causal and mask is not None:  # some kernels join the two, others refuse them
            raise UserError(
                "Attention got a mask and causal at once.", "Join the mask with look_ahead_mask, and leave causal off."
            )
        check_mask(mask, q.shape[0], q.shape[1], q.shape[2], k.shape[2])
        z = self.core(q, k, v, mask, causal)  # (b, h, n, d_v)
        if beams > 1:
            z = z.reshape(*z.shape[:2], beams, n, self.d_v).transpose(1, 2).flatten(0, 1)
        concat = z.transpose(1, 2).flatten(2)  # (b, n, h * d_v)
        out: Tensor = self.w_o(concat)
        return out  # (b, n, d_model)

    def _keys_and_values(self, source: Tensor) -> tuple[Tensor, Tensor]:
        return self._split(self.w_k(source), self.d_k), self._split(self.w_v(source), self.d_v)

    def _split(self, x: Tensor, d: int) -> Tensor:
        return x.view(*x.shape[:2], -1, d).transpose(1, 2)  # (b, heads, n, d)
