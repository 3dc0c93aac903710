"""The one table of what can be seen: the mathematical name, the module it is read at, its shape and a caption.

A point has the path of its owner before its name: `decoder.blocks.3.cross_attention.weights`. Most are a plain input or
output of a module; a few are made from these by the textbook formula, because the fast way never computes them.

b batch, n length (of queries), m length of keys, d width of the model, h heads, h_kv key/value heads, N vocabulary
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.model.attention import MultiHeadAttention, attention
from glassformer.model.heads import EmbeddingHead, PooledHead, TokenHead
from glassformer.model.inputs import Frames, Patches, Tokens, Vectors
from glassformer.model.layers import Convolution, FeedForward, Residual
from glassformer.model.masks import look_ahead_mask
from glassformer.model.stack import Stack


class Call:
    """One run of a module: what went in and what came out, beside the module that owns the points."""

    def __init__(self, owner: nn.Module, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        self.owner, self.module, self.inputs, self.output = owner, module, inputs, output

    @cached_property
    def mask(self) -> Tensor | None:
        """Of an attention core: the look-ahead mask too, which the kernel gets as a flag."""
        q, k, _, mask, causal = self.inputs
        found: Tensor | None = look_ahead_mask(q.shape[2], k.shape[2], q.device) if causal else mask
        return found

    @cached_property
    def textbook(self) -> tuple[Tensor, Tensor, Tensor]:
        """Of an attention core: z, weights and scores as the paper writes them."""
        q, k, v = self.inputs[:3]
        if q.shape[1] != k.shape[1]:
            k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], dim=1) for t in (k, v))
        return attention(q, k, v, self.mask)


@dataclass(frozen=True)
class Input:
    """What a module is given at this place."""

    index: int = 0


@dataclass(frozen=True)
class Output:
    """What a module gives; `index` where it gives several."""

    index: int | None = None


@dataclass(frozen=True)
class Made:
    """What is computed from a module's input and output."""

    make: Callable[[Call], Tensor | None]


Spot = Input | Output | Made
Owner = type[nn.Module] | tuple[type[nn.Module], ...]


@dataclass(frozen=True)
class Point:
    name: str
    owner: Owner
    module: str  # below the owner; "" is the owner itself
    spot: Spot
    shape: str
    caption: str

    def read(self, call: Call) -> Tensor | None:
        match self.spot:
            case Input(index):
                found = call.inputs[index] if index < len(call.inputs) else None
            case Output(index):
                found = call.output if index is None else call.output[index]
            case Made(make):
                found = make(call)
        return found.detach() if isinstance(found, Tensor) else None


def _mask(call: Call) -> Tensor | None:
    return call.mask


def _scores(call: Call) -> Tensor:
    return call.textbook[2]


def _weights(call: Call) -> Tensor:
    return call.textbook[1]


def _scaled(call: Call) -> Tensor:
    out: Tensor = call.output * call.owner.scale
    return out


def _norm_scale(call: Call) -> Tensor:
    """What a norm divides by: the deviation, or for RMS norm the root of the mean square."""
    x, norm = call.inputs[0], call.module
    x = x - x.mean(dim=-1, keepdim=True) if isinstance(norm, nn.LayerNorm) else x
    eps: Any = norm.eps
    scale: Tensor = (x.square().mean(dim=-1, keepdim=True) + (eps or 0.0)).sqrt()
    return scale


def _probabilities(call: Call) -> Tensor:
    return torch.softmax(call.output.float(), dim=-1)


_FRONT_ENDS = (Tokens, Frames, Patches, Vectors)
_SERIES = (Frames, Patches, Vectors)
_HEADS = (TokenHead, PooledHead)
_NORMED = (Residual, Stack, Tokens, TokenHead)
_STATES = "b n d"

POINTS = (
    Point("input", _FRONT_ENDS, "", Input(), "b n …", "what the model is given: token ids, frames, pixels or vectors"),
    Point("embedding", Tokens, "embedding", Made(_scaled), _STATES, "the row of the table for each token, scaled"),
    Point("types", Tokens, "types", Output(), _STATES, "which of two sentences a token belongs to"),
    Point("projection", _SERIES, "projection", Output(), "b … d", "the input made as wide as the model"),
    Point("convolved", nn.Conv1d, "", Output(), "b d n", "neighbours mixed, in the front-end shortened too"),
    Point("positions", _FRONT_ENDS, "positions", Output(), "n d", "the vector that says where a position stands"),
    Point("x", _FRONT_ENDS, "", Output(0), _STATES, "the vectors that enter the stack"),
    Point("keep", _FRONT_ENDS, "", Output(1), "b n", "which positions are real and not padding"),
    Point("cos", Stack, "rotary_angles", Output(0), "n d_k", "cosines of the angles that turn queries and keys"),
    Point("sin", Stack, "rotary_angles", Output(1), "n d_k", "sines of the angles that turn queries and keys"),
    Point("norm", _NORMED, "norm", Output(), _STATES, "the stream brought to even size"),
    Point("scale", _NORMED, "norm", Made(_norm_scale), "b n 1", "what the norm divides each position by"),
    Point("q", MultiHeadAttention, "core", Input(0), "b h n d_k", "queries: what each position looks for"),
    Point("k", MultiHeadAttention, "core", Input(1), "b h_kv m d_k", "keys: what each position offers to be found by"),
    Point("v", MultiHeadAttention, "core", Input(2), "b h_kv m d_v", "values: what each position hands over"),
    Point("mask", MultiHeadAttention, "core", Made(_mask), "… n m", "who may look at whom"),
    Point("scores", MultiHeadAttention, "core", Made(_scores), "b h n m", "how well a query fits a key: QKᵀ/√d_k"),
    Point("weights", MultiHeadAttention, "core", Made(_weights), "b h n m", "shares: the softmax of the scores"),
    Point("z", MultiHeadAttention, "core", Output(), "b h n d_v", "what each head found: the weighted mean of values"),
    Point("concat", MultiHeadAttention, "w_o", Input(), "b n h·d_v", "the results of all heads side by side"),
    Point("out", MultiHeadAttention, "", Output(), _STATES, "what attention adds to the stream"),
    Point("before", Residual, "", Input(), _STATES, "the residual stream before this part"),
    Point("after", Residual, "", Output(), _STATES, "the residual stream after this part"),
    Point("w_1", FeedForward, "w_1", Output(), "b n d_ff", "the hidden units before their activation or gate"),
    Point("gate", FeedForward, "w_gate", Output(), "b n d_ff", "the gate of the hidden units before its activation"),
    Point("hidden", FeedForward, "w_2", Input(), "b n d_ff", "the hidden units after their activation"),
    Point("out", FeedForward, "", Output(), _STATES, "what the feed-forward part adds to the stream"),
    Point("out", Convolution, "", Output(), _STATES, "what a position's neighbours add to the stream"),
    Point("out", Stack, "", Output(), _STATES, "what the stack hands on"),
    Point("pooled", (PooledHead, EmbeddingHead), "pool", Output(), "b d", "all positions in one vector"),
    Point("transformed", (*_HEADS, EmbeddingHead), "transform", Output(), "b … d", "after the head's dense layer"),
    Point("logits", _HEADS, "", Output(), "b … N", "the scores of all answers"),
    Point("probabilities", _HEADS, "", Made(_probabilities), "b … N", "softmax of the logits"),
    Point("vector", EmbeddingHead, "", Output(), "b d", "the vector of the whole sequence"),
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A point of one model: its full name, and the modules that own it and that it is read at."""

    name: str
    point: Point
    owner: nn.Module
    module: nn.Module


def places(model: nn.Module) -> Iterator[Place]:
    """All points of a model, in the order of its modules."""
    regression = getattr(getattr(getattr(model, "settings", None), "head", None), "kind", "") == "regression"
    for path, owner in model.named_modules():
        for point in POINTS:
            module = _below(owner, point.module) if isinstance(owner, point.owner) else None
            if module is not None and not (regression and point.name == "probabilities"):  # its answers are numbers
                yield Place(f"{path}.{point.name}" if path else point.name, point, owner, module)


def _below(owner: nn.Module, name: str) -> nn.Module | None:
    found = getattr(owner, name) if name else owner
    return found if isinstance(found, nn.Module) else None  # a plain parameter has no run to be seen
