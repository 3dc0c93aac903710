"""Small models and inputs that many tests share; every one is in eval mode, without dropout, from a fixed seed."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from glassformer.errors import UserError
from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly, build
from glassformer.model.settings import (
    AttentionSettings,
    ConvolutionSettings,
    DecoderOnlySettings,
    EncoderDecoderSettings,
    EncoderOnlySettings,
    FeedForwardSettings,
    FramesSettings,
    LearnedSettings,
    ModelSettings,
    NormSettings,
    PatchesSettings,
    RotarySettings,
    SinusoidalSettings,
    StackSettings,
    TokensSettings,
    VectorsSettings,
)

VOCABULARY = 29
Case = tuple[Callable[[], Any], str, str]  # a call that must fail, pieces of its message and of its hint

# Where the positions live, and how the heads are shared: (additive positions, attention).
POSITIONS = {
    "sinusoidal": (SinusoidalSettings(), AttentionSettings(n_heads=4)),
    "halves": (SinusoidalSettings(layout="halves"), AttentionSettings(n_heads=4, d_k=3, d_v=5)),
    "learned": (LearnedSettings(max_len=40), AttentionSettings(n_heads=4, n_kv_heads=1)),
    "rotary": (None, AttentionSettings(n_heads=4, rotary=RotarySettings())),
    "rotary_grouped": (None, AttentionSettings(n_heads=4, n_kv_heads=2, rotary=RotarySettings(layout="interleaved"))),
    "none": (None, AttentionSettings(n_heads=4)),
}

FRONT_ENDS = {
    "tokens": TokensSettings(vocab_size=VOCABULARY, n_types=2, norm=NormSettings(), dropout=0.0),
    "frames": FramesSettings(n_features=6, strides=(1, 2, 2), dropout=0.0),
    "frames_plain": FramesSettings(n_features=6, strides=(), dropout=0.0),
    "vectors": VectorsSettings(n_features=6, dropout=0.0),
    "patches": PatchesSettings(height=8, width=12, n_channels=2, patch=4),
}


def stack(**changes: Any) -> StackSettings:
    small: dict[str, Any] = {
        "d_model": 16,
        "n_layers": 2,
        "attention": AttentionSettings(n_heads=4),
        "feed_forward": FeedForwardSettings(d_ff=24, activation="gelu"),
        "dropout": 0.0,
    }
    return StackSettings(**(small | changes))


def tokens(**changes: Any) -> TokensSettings:
    return TokensSettings(**({"vocab_size": VOCABULARY, "dropout": 0.0} | changes))


def rough(settings: ModelSettings, seed: int = 0) -> Any:
    """A model in eval mode with weights large enough that every part of it matters."""
    torch.manual_seed(seed)
    model = build(settings)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.2)
    return model.eval()


def decoder_only(positions: str = "sinusoidal", **changes: Any) -> DecoderOnly:
    additive, attention = POSITIONS[positions]
    settings: dict[str, Any] = {"source": tokens(positions=additive), "decoder": stack(attention=attention)}
    model: DecoderOnly = rough(DecoderOnlySettings(**(settings | changes)))
    return model


def encoder_decoder(positions: str = "sinusoidal", **changes: Any) -> EncoderDecoder:
    additive, attention = POSITIONS[positions]
    settings: dict[str, Any] = {
        "source": tokens(positions=additive),
        "target": tokens(positions=additive),
        "encoder": stack(attention=attention),
        "decoder": stack(attention=attention),
    }
    model: EncoderDecoder = rough(EncoderDecoderSettings(**(settings | changes)))
    return model


def listening(width: int = 5) -> EncoderDecoder:
    """Frames in, tokens out, with convolutions between the layers."""
    encoder = stack(convolution=ConvolutionSettings(width=width))
    return encoder_decoder(source=FRONT_ENDS["frames"], encoder=encoder, tie_source_target=False)


def encoder_only(front_end: str = "tokens", **changes: Any) -> EncoderOnly:
    settings: dict[str, Any] = {"source": FRONT_ENDS[front_end], "encoder": stack()}
    model: EncoderOnly = rough(EncoderOnlySettings(**(settings | changes)))
    return model


def random_ids(b: int, n: int, seed: int = 1) -> Tensor:
    return torch.randint(VOCABULARY, (b, n), generator=torch.Generator().manual_seed(seed))


def random_input(front_end: str, b: int, n: int, seed: int = 1) -> Tensor:
    """Something that the front-end of that name reads; n is the length where it has one."""
    if front_end == "tokens":
        return random_ids(b, n, seed)
    shape = (b, 2, 8, 12) if front_end == "patches" else (b, n, 6)
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def left_keep(lengths: list[int], n: int) -> Tensor:
    """Rows padded on the left to n positions."""
    return torch.arange(n) >= n - torch.tensor(lengths)[:, None]


def right_keep(lengths: list[int], n: int) -> Tensor:
    """Rows padded on the right to n positions."""
    return torch.arange(n) < torch.tensor(lengths)[:, None]


def close(actual: Tensor, expected: Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance)


def refused_in_our_words(call: Callable[[], Any], message: str, hint: str) -> None:
    """The call ends in a UserError that says so and says what to do, each in whole sentences."""
    with pytest.raises(UserError) as caught:
        call()
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert str(caught.value) == f"{caught.value.message} {caught.value.hint}"
    assert caught.value.message.endswith(".")
    assert caught.value.hint.endswith(".")
