"""GPT-2 and Llama as plain formulas over foreign weights: what a converted model is held against.

No module of ours takes part, nor does the conversion: names, transposed weights, stacked projections and the order of
rows are read here as the foreign format has them. One text at a time, without a cache.

n length, d width, h heads, h_kv key/value heads
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from glassformer.exchange.foreign import Foreign
from glassformer.model.settings import Activation, DecoderOnlySettings, RotarySettings

Get = Callable[[str], Tensor | None]


def plain_logits(foreign: Foreign, settings: DecoderOnlySettings, ids: Tensor) -> Tensor:
    """The scores of the next token after each of the given ids, (n, N)."""
    prefix = "transformer." if foreign.config["model_type"] == "gpt2" else "model."

    def get(name: str) -> Tensor | None:
        return foreign.weights.get(prefix + name, foreign.weights.get(name))

    if foreign.config["model_type"] == "gpt2":
        x, table = _gpt2(get, settings, ids), get("wte.weight")
    else:
        x, table = _llama(get, settings, ids, foreign.interleaved), get("embed_tokens.weight")
    head = get("lm_head.weight")
    out = table if head is None else head
    assert out is not None
    return x @ out.T


def _gpt2(get: Get, settings: DecoderOnlySettings, ids: Tensor) -> Tensor:
    stack, activation = settings.decoder, settings.decoder.feed_forward.activation

    def norm(x: Tensor, name: str) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], get(f"{name}.weight"), get(f"{name}.bias"), stack.norm.eps)

    def linear(x: Tensor, name: str) -> Tensor:
        weight, bias = get(f"{name}.weight"), get(f"{name}.bias")  # (in, out)
        assert weight is not None
        assert bias is not None
        return x @ weight + bias

    words, places = get("wte.weight"), get("wpe.weight")
    assert words is not None
    assert places is not None
    x = words[ids] + places[: len(ids)]
    for i in range(stack.n_layers):
        q, k, v = linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").chunk(3, dim=-1)
        q, k, v = (part.view(len(ids), stack.attention.n_heads, -1) for part in (q, k, v))  # (n, h, d/h)
        x = x + linear(_attend(q, k, v), f"h.{i}.attn.c_proj")
        x = x + linear(activate(linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), activation), f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f")


def _turn(rotary: RotarySettings, place: float) -> float:
    """One pair's angle for one step."""
    scaling = rotary.scaling
    angle = float(rotary.base**-place)
    if scaling is None:
        return angle
    slowed: float = angle / scaling.factor
    wave = 2 * math.pi / angle  # positions of a full turn
    if scaling.kind == "linear" or wave > scaling.original / scaling.slow:
        return slowed
    if wave < scaling.original / scaling.quick:
        return angle
    share = (scaling.original / wave - scaling.slow) / (scaling.quick - scaling.slow)
    return share * angle + (1 - share) * slowed


def _llama(get: Get, settings: DecoderOnlySettings, ids: Tensor, interleaved: bool) -> Tensor:
    stack, attention = settings.decoder, settings.decoder.attention
    assert attention.rotary is not None

    def norm(x: Tensor, name: str) -> Tensor:
        weight = get(f"{name}.weight")
        assert weight is not None
        return x * (x.pow(2).mean(-1, keepdim=True) + stack.norm.eps).rsqrt() * weight

    def linear(x: Tensor, name: str) -> Tensor:
        weight, bias = get(f"{name}.weight"), get(f"{name}.bias")  # (out, in)
        assert weight is not None
        return x @ weight.T if bias is None else x @ weight.T + bias

    d = stack.d_k
    angles = torch.arange(len(ids))[:, None] * torch.tensor([_turn(attention.rotary, 2 * i / d) for i in range(d // 2)])
    turn = torch.polar(torch.ones_like(angles), angles)[:, None]  # (n, 1, d/2), complex

    def rotate(x: Tensor) -> Tensor:
        pairs = x.view(*x.shape[:2], -1, 2) if interleaved else x.view(*x.shape[:2], 2, -1).mT  # (n, h, d/2, 2)
        turned = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * turn)
        return (turned if interleaved else turned.mT).flatten(-2)

    words = get("embed_tokens.weight")
    assert words is not None
    x = words[ids]
    for i in range(stack.n_layers):
        layer = f"layers.{i}"
        y = norm(x, f"{layer}.input_layernorm")
        q, k, v = (linear(y, f"{layer}.self_attn.{p}_proj").view(len(ids), -1, d) for p in "qkv")
        x = x + linear(_attend(rotate(q), rotate(k), v), f"{layer}.self_attn.o_proj")
        y = norm(x, f"{layer}.post_attention_layernorm")
        gate = activate(linear(y, f"{layer}.mlp.gate_proj"), stack.feed_forward.activation)
        x = x + linear(gate * linear(y, f"{layer}.mlp.up_proj"), f"{layer}.mlp.down_proj")
    return norm(x, "norm")


def _attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Each position looks at itself and the earlier ones; (n, h, d) each, k and v maybe with fewer heads."""
    k, v = (part.repeat_interleave(q.shape[1] // part.shape[1], dim=1) for part in (k, v))
    scores = torch.einsum("nhd,mhd->hnm", q, k) / math.sqrt(q.shape[-1])
    future = torch.ones(len(q), len(q)).triu(1).bool()
    weights = scores.masked_fill(future, -math.inf).softmax(-1)
    return torch.einsum("hnm,mhd->nhd", weights, v).flatten(1)


def activate(x: Tensor, name: Activation) -> Tensor:
    match name:
        case "relu":
            return x.clamp(min=0)
        case "gelu":
            return x * (1 + torch.erf(x / math.sqrt(2))) / 2
        case "gelu_tanh":
            return x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2
        case "silu":
            return x * torch.sigmoid(x)
        case "tanh":
            return torch.tanh(x)
