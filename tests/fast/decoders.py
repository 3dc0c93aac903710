"""Language models over many settings, and prompts for them."""

import random
from typing import Any

import torch

from glassformer.model import DecoderOnly
from glassformer.model.settings import (
    AttentionSettings,
    DecoderOnlySettings,
    FeedForwardSettings,
    LearnedSettings,
    NormSettings,
    RotarySettings,
    SinusoidalSettings,
    TokenHeadSettings,
)
from tests.builders import VOCABULARY, rough, stack, tokens


def _ff(**changes: Any) -> FeedForwardSettings:
    return FeedForwardSettings(**({"d_ff": 24} | changes))


def _heads(**changes: Any) -> AttentionSettings:
    return AttentionSettings(**({"n_heads": 4} | changes))


LEARNED = tokens(positions=LearnedSettings(max_len=40))
NOWHERE = tokens(positions=None)

DECODERS: dict[str, dict[str, Any]] = {
    "gpt-2": {"source": LEARNED, "decoder": stack(feed_forward=_ff(activation="gelu_tanh"))},
    "gpt-1": {"source": LEARNED, "decoder": stack(norm=NormSettings(place="post"))},
    "sinusoidal": {"source": tokens(scale=True)},
    "halves": {"source": tokens(positions=SinusoidalSettings(layout="halves")), "head": TokenHeadSettings(bias=True)},
    "no positions": {"source": NOWHERE},
    "llama": {
        "source": NOWHERE,
        "decoder": stack(
            attention=_heads(n_kv_heads=2, bias="", rotary=RotarySettings(base=500.0)),
            norm=NormSettings(kind="rms", eps=1e-6),
            feed_forward=_ff(activation="silu", gated=True, bias=False),
        ),
        "tie_output": False,
    },
    "rotary in pairs, one key head": {
        "source": NOWHERE,
        "decoder": stack(attention=_heads(n_kv_heads=1, rotary=RotarySettings(layout="interleaved"))),
        "tie_output": False,
    },
    "grouped heads of odd widths": {"decoder": stack(attention=_heads(n_kv_heads=2, d_k=6, d_v=3, bias="qo"))},
    "embedding norm": {"source": tokens(norm=NormSettings())},
}


def decoder(name: str, **changes: Any) -> DecoderOnly:
    """A random model with clear preferences."""
    settings: dict[str, Any] = {"source": tokens(), "decoder": stack()} | DECODERS[name] | changes
    model: DecoderOnly = rough(DecoderOnlySettings(**settings))
    last: Any = model.decoder.norm or model.decoder.blocks[-1].feed_forward_residual.norm
    torch.nn.init.normal_(last.weight, std=3.0)  # of either sign: else a tied table says each word again
    return model


def prompts(n: int, longest: int = 9, size: int = VOCABULARY) -> list[list[int]]:
    """Some rows of 1 to `longest` ids."""
    chance = random.Random(0)
    return [[chance.randrange(3, size) for _ in range(chance.randint(1, longest))] for _ in range(n)]
