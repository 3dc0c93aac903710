"""Whisper by plain formulas over a file's own weights: slow, short, and independent of our model.

n positions, d width
"""

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Weights = Mapping[str, Tensor]


def plain_whisper(config: Mapping[str, Any], w: Weights, frames: Tensor, ids: Tensor) -> Tensor:
    """The scores (n, N) of a text after frames (t, f)."""
    x = F.gelu(F.conv1d(frames.T[None], w["model.encoder.conv1.weight"], w["model.encoder.conv1.bias"], padding=1))
    x = F.gelu(F.conv1d(x, w["model.encoder.conv2.weight"], w["model.encoder.conv2.bias"], stride=2, padding=1))[0].T
    x = x + w["model.encoder.embed_positions.weight"][: len(x)]
    for i in range(config["encoder_layers"]):
        x = _layer(w, f"model.encoder.layers.{i}", x, config["encoder_attention_heads"])
    memory = _norm(w, "model.encoder.layer_norm", x)
    x = w["model.decoder.embed_tokens.weight"][ids] + w["model.decoder.embed_positions.weight"][: len(ids)]
    for i in range(config["decoder_layers"]):
        x = _layer(w, f"model.decoder.layers.{i}", x, config["decoder_attention_heads"], memory)
    tied = config.get("tie_word_embeddings", True)
    scores = w[f"{'model.decoder.embed_tokens' if tied else 'proj_out'}.weight"]
    return _norm(w, "model.decoder.layer_norm", x) @ scores.T


def _layer(w: Weights, name: str, x: Tensor, n_heads: int, memory: Tensor | None = None) -> Tensor:
    y = _norm(w, f"{name}.self_attn_layer_norm", x)
    x = x + _attend(w, f"{name}.self_attn", y, y, n_heads, causal=memory is not None)
    if memory is not None:
        y = _norm(w, f"{name}.encoder_attn_layer_norm", x)
        x = x + _attend(w, f"{name}.encoder_attn", y, memory, n_heads)
    y = _norm(w, f"{name}.final_layer_norm", x)
    return x + _linear(w, f"{name}.fc2", F.gelu(_linear(w, f"{name}.fc1", y)))


def _attend(w: Weights, name: str, x: Tensor, source: Tensor, n_heads: int, causal: bool = False) -> Tensor:
    def heads(part: str, of: Tensor) -> Tensor:
        return _linear(w, f"{name}.{part}_proj", of).view(len(of), n_heads, -1).transpose(0, 1)

    q, k, v = heads("q", x), heads("k", source), heads("v", source)
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores[0], dtype=torch.bool).triu(1), -torch.inf)
    return _linear(w, f"{name}.out_proj", (scores.softmax(dim=-1) @ v).transpose(0, 1).flatten(1))


def _norm(w: Weights, name: str, x: Tensor) -> Tensor:
    x = (x - x.mean(dim=-1, keepdim=True)) / (x.var(dim=-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    return x * w[f"{name}.weight"] + w[f"{name}.bias"]


def _linear(w: Weights, name: str, x: Tensor) -> Tensor:
    bias = w.get(f"{name}.bias")
    y = x @ w[f"{name}.weight"].T
    return y if bias is None else y + bias
