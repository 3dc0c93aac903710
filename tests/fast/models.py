"""Models over many settings that answer like trained ones: not the same word for ever, and of varied lengths."""

import random
from typing import Any

import torch

from glassformer.data.tokenizer import END
from glassformer.model import EncoderDecoder
from glassformer.model.settings import (
    AttentionSettings,
    EncoderDecoderSettings,
    FeedForwardSettings,
    LearnedSettings,
    NormSettings,
    RotarySettings,
    SinusoidalSettings,
    TokenHeadSettings,
)
from glassformer.tasks.backend import Request
from tests.builders import VOCABULARY, random_ids, rough, stack, tokens

POST = NormSettings(place="post")
ROTARY = AttentionSettings(n_heads=4, rotary=RotarySettings())
LEARNED = tokens(positions=LearnedSettings(max_len=40))


def _ff(**changes: Any) -> FeedForwardSettings:
    return FeedForwardSettings(**({"d_ff": 24} | changes))


def _both(**changes: Any) -> dict[str, Any]:
    return {"encoder": stack(**changes), "decoder": stack(**changes)}


def _tables(**changes: Any) -> dict[str, Any]:
    return {"source": tokens(**changes), "target": tokens(**changes)}


UNTIED: dict[str, Any] = {"tie_source_target": False, "tie_output": False}

SETTINGS: dict[str, dict[str, Any]] = {
    "paper": _both(norm=POST, feed_forward=_ff(activation="relu")) | _tables(scale=True),
    "pre-norm": _both(feed_forward=_ff(activation="gelu")),
    "post-norm with a final one": _both(norm=NormSettings(place="post", final=True)),
    "pre-norm without a final one": _both(norm=NormSettings(final=False)),
    "learned": {"source": LEARNED, "target": LEARNED},
    "halves": _tables(positions=SinusoidalSettings(layout="halves")),
    "no positions": _tables(positions=None),
    "llama": _both(
        attention=AttentionSettings(n_heads=4, n_kv_heads=2, bias="", rotary=RotarySettings(base=500.0)),
        norm=NormSettings(kind="rms", eps=1e-6),
        feed_forward=_ff(activation="silu", gated=True, bias=False),
    )
    | _tables(positions=None)
    | UNTIED,
    "rotary in pairs": _both(attention=AttentionSettings(n_heads=2, rotary=RotarySettings(layout="interleaved")))
    | _tables(positions=None),
    "rotary with narrow keys": _both(attention=AttentionSettings(n_heads=2, d_k=4, d_v=7, rotary=RotarySettings()))
    | _tables(positions=None),
    "rotary encoder": {"source": tokens(positions=None), "encoder": stack(attention=ROTARY)},
    "wide keys": _both(attention=AttentionSettings(n_heads=4, d_k=6, d_v=3)),
    "wide values": _both(attention=AttentionSettings(n_heads=3, d_k=2, d_v=5, bias="qo")),
    "one key head": _both(attention=AttentionSettings(n_heads=4, n_kv_heads=1, bias="qvo")),
    "gelu tanh, gated": _both(feed_forward=_ff(activation="gelu_tanh", gated=True)),
    "tanh": _both(feed_forward=_ff(activation="tanh")),
    "embedding norm": _tables(norm=NormSettings()),
    "rms post-norm": _both(norm=NormSettings(kind="rms", place="post")),
    "head bias": {"head": TokenHeadSettings(bias=True)} | UNTIED,
    "separate vocabularies": {"source": tokens(vocab_size=41)} | UNTIED,
    "small target": {"target": tokens(vocab_size=19)} | UNTIED,
    "narrow encoder": {
        "encoder": stack(d_model=8, n_layers=1, attention=AttentionSettings(n_heads=2)),
        "tie_source_target": False,
    },
    "unequal stacks": {"encoder": stack(n_layers=3, norm=POST), "decoder": stack(n_layers=1)},
}


def lively(changes: dict[str, Any], seed: int = 0) -> EncoderDecoder:
    """A random model with clear preferences, in which the end is about as likely as the best word."""
    settings: dict[str, Any] = _tables() | _both()
    model: EncoderDecoder = rough(EncoderDecoderSettings(**(settings | changes)), seed)
    size = model.settings.target.vocab_size
    with torch.no_grad():
        for path, weight in model.decoder.named_parameters():
            if path.endswith(("w_o.weight", "w_2.weight")):
                weight *= 3  # else a tied table says each word again
        last = model.decoder.norm or model.decoder.blocks[-1].feed_forward_residual.norm
        last.weight *= 2
        states = model.decode(random_ids(8, 8) % size, model.encode(random_ids(8, 6))).flatten(0, 1)
        scores, usual = model.head(states), states.mean(dim=0)
        wanted = scores.amax(dim=-1).mean() - scores[:, END].mean()
        model.head.w.weight[END] += wanted * usual / usual.dot(usual)
    return model


def requests(n: int, prefixes: bool = False, size: int = VOCABULARY, seed: int = 0) -> list[Request]:
    """Sources of 0 to 17 ids, in any order of lengths."""
    chance = random.Random(seed)

    def ids(lengths: list[int]) -> list[int]:
        return [chance.randrange(3, size) for _ in range(chance.choice(lengths))]

    return [Request(ids([0, 1, 2, 5, 9, 17]), tuple(ids([0, 1, 3]) if prefixes else [])) for _ in range(n)]
