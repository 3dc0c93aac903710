"""BERT and ViT as plain formulas over foreign weights: what a converted encoder is held against.

As in `plain.py`, no module of ours and no conversion takes part. One text or picture at a time.

n length, d width, h heads, c channels
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from glassformer.exchange.foreign import Foreign
from glassformer.exchange.plain import activate
from glassformer.model.settings import Activation, EncoderOnlySettings

OLD_ENDINGS = {"weight": "gamma", "bias": "beta"}


class Weights:
    """Foreign weights by name, with or without the family's prefix."""

    def __init__(self, weights: Mapping[str, Tensor], prefix: str) -> None:
        self.weights, self.prefix = weights, prefix

    def get(self, name: str) -> Tensor | None:
        stem, _, ending = name.rpartition(".")
        names = [name] if ending not in OLD_ENDINGS else [name, f"{stem}.{OLD_ENDINGS[ending]}"]
        spellings = (prefix + spelling for spelling in names for prefix in (self.prefix, ""))
        return next((self.weights[s] for s in spellings if s in self.weights), None)

    def __getitem__(self, name: str) -> Tensor:
        weight = self.get(name)
        assert weight is not None, name
        return weight

    def linear(self, x: Tensor, name: str) -> Tensor:
        product, bias = x @ self[f"{name}.weight"].T, self.get(f"{name}.bias")
        return product if bias is None else product + bias

    def norm(self, x: Tensor, name: str, eps: float) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], self[f"{name}.weight"], self[f"{name}.bias"], eps)


def plain_bert(foreign: Foreign, settings: EncoderOnlySettings, ids: Tensor, types: Tensor) -> tuple[Tensor, Tensor]:
    """The last states (n, d) of a text, and what the head makes of them."""
    w, stack = Weights(foreign.weights, "bert."), settings.encoder
    eps, activation = stack.norm.eps, stack.feed_forward.activation
    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: len(ids)]
    x = w.norm(x + w["embeddings.token_type_embeddings.weight"][types], "embeddings.LayerNorm", eps)
    for i in range(stack.n_layers):
        layer = f"encoder.layer.{i}"
        z = _attend(w, x, f"{layer}.attention.self", stack.attention.n_heads)
        x = w.norm(x + w.linear(z, f"{layer}.attention.output.dense"), f"{layer}.attention.output.LayerNorm", eps)
        hidden = activate(w.linear(x, f"{layer}.intermediate.dense"), activation)
        x = w.norm(x + w.linear(hidden, f"{layer}.output.dense"), f"{layer}.output.LayerNorm", eps)
    return x, _bert_head(w, x, foreign.config, activation, eps)


def _bert_head(w: Weights, x: Tensor, config: Mapping[str, Any], activation: Activation, eps: float) -> Tensor:
    match config["architectures"][0]:
        case "BertForMaskedLM":
            hidden = activate(w.linear(x, "cls.predictions.transform.dense"), activation)
            hidden = w.norm(hidden, "cls.predictions.transform.LayerNorm", eps)
            table, bias = w.get("cls.predictions.decoder.weight"), w.get("cls.predictions.decoder.bias")
            table = w["embeddings.word_embeddings.weight"] if table is None else table
            return hidden @ table.T + (w["cls.predictions.bias"] if bias is None else bias)
        case "SentenceTransformer":
            pooled = {"mean": x.mean(0), "first": x[0], "last": x[-1]}[config["sentence_pooling"]]
            return pooled / pooled.norm() if config["sentence_normalise"] else pooled
        case "BertModel":
            return torch.tanh(w.linear(x[0], "pooler.dense"))
        case _:
            return w.linear(torch.tanh(w.linear(x[0], "pooler.dense")), "classifier")


def plain_vit(foreign: Foreign, settings: EncoderOnlySettings, picture: Tensor) -> tuple[Tensor, Tensor]:
    """The last states (n, d) of a picture (c, height, width), and what the head makes of them."""
    w, stack = Weights(foreign.weights, "vit."), settings.encoder
    eps, activation = stack.norm.eps, stack.feed_forward.activation
    kernel = w["embeddings.patch_embeddings.projection.weight"]  # (d, c, patch, patch)
    size = kernel.shape[-1]
    squares = picture.unfold(1, size, size).unfold(2, size, size)  # (c, rows, columns, patch, patch)
    squares = squares.permute(1, 2, 0, 3, 4).flatten(2).flatten(0, 1)  # (n - 1, c * patch * patch)
    x = squares @ kernel.flatten(1).T + w["embeddings.patch_embeddings.projection.bias"]
    x = torch.cat([w["embeddings.cls_token"].view(1, -1), x]) + w["embeddings.position_embeddings"].view(len(x) + 1, -1)
    for i in range(stack.n_layers):
        layer = f"encoder.layer.{i}"
        y = w.norm(x, f"{layer}.layernorm_before", eps)
        z = _attend(w, y, f"{layer}.attention.attention", stack.attention.n_heads)
        x = x + w.linear(z, f"{layer}.attention.output.dense")
        y = w.linear(w.norm(x, f"{layer}.layernorm_after", eps), f"{layer}.intermediate.dense")
        x = x + w.linear(activate(y, activation), f"{layer}.output.dense")
    x = w.norm(x, "layernorm", eps)
    match foreign.config["architectures"][0]:
        case "ViTModel":
            return x, torch.tanh(w.linear(x[0], "pooler.dense"))
        case "ViTWithoutPooler":
            return x, x[0]
        case _:
            return x, w.linear(x[0], "classifier")


def _attend(w: Weights, x: Tensor, name: str, n_heads: int) -> Tensor:
    """Each position looks at all."""
    q, k, v = (w.linear(x, f"{name}.{part}").view(len(x), n_heads, -1) for part in ("query", "key", "value"))
    scores = torch.einsum("nhd,mhd->hnm", q, k) / math.sqrt(q.shape[-1])
    return torch.einsum("hnm,mhd->nhd", scores.softmax(-1), v).flatten(1)
