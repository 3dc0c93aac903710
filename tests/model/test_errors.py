"""A bad setting meets one sentence that names it and a hint that names the way out; never torch's own words."""

import pytest

from glassformer.model.settings import (
    AttentionSettings,
    ClassHeadSettings,
    DecoderOnlySettings,
    EmbeddingHeadSettings,
    EncoderDecoderSettings,
    EncoderOnlySettings,
    FeedForwardSettings,
    FramesSettings,
    LearnedSettings,
    NormSettings,
    PatchesSettings,
    RegressionHeadSettings,
    RotarySettings,
    StackSettings,
    TokensSettings,
    VectorsSettings,
)
from tests.builders import Case, refused_in_our_words, stack, tokens

# What is wrong: the call, a piece of the message, a piece of the hint.
SETTINGS: dict[str, Case] = {
    "heads do not divide": (
        lambda: StackSettings(d_model=10, attention=AttentionSettings(n_heads=4)),
        "d_model is 10, which attention.n_heads 4 does not divide",
        "Set n_heads to 5, d_model to 12, or give d_k and d_v",
    ),
    "d_k alone is not enough": (
        lambda: StackSettings(d_model=10, attention=AttentionSettings(n_heads=4, d_k=3)),
        "d_model is 10",
        "give d_k and d_v",
    ),
    "key/value heads do not divide": (
        lambda: AttentionSettings(n_heads=8, n_kv_heads=3),
        "attention.n_heads is 8, which n_kv_heads 3 does not divide",
        "choose a divisor",
    ),
    "odd rotary": (
        lambda: stack(d_model=12, attention=AttentionSettings(n_heads=4, rotary=RotarySettings())),
        "attention.d_k is 3, but rotary",
        "even",
    ),
    "unknown bias": (lambda: AttentionSettings(bias="qx"), "attention.bias is 'qx'", "q, k, v, o"),
    "no heads": (lambda: AttentionSettings(n_heads=0), "n_heads is 0", "Set n_heads to 1 or more"),
    "no key/value heads": (lambda: AttentionSettings(n_kv_heads=0), "n_kv_heads is 0", "1 or more"),
    "no d_k": (lambda: AttentionSettings(d_k=0), "d_k is 0", "1 or more"),
    "no d_v": (lambda: AttentionSettings(d_v=-1), "d_v is -1", "1 or more"),
    "rotary base": (lambda: RotarySettings(base=1.0), "rotary.base is 1.0", "10000"),
    "norm eps": (lambda: NormSettings(eps=0.0), "norm.eps is 0.0", "1e-5"),
    "no hidden layer": (lambda: FeedForwardSettings(d_ff=0), "d_ff is 0", "Set d_ff"),
    "no width": (lambda: StackSettings(d_model=0), "d_model is 0", "Set d_model"),
    "fewer than no layers": (lambda: StackSettings(n_layers=-1), "n_layers is -1", "Set n_layers to 0 or more"),
    "no words": (lambda: TokensSettings(vocab_size=0), "vocab_size is 0", "Set vocab_size"),
    "fewer than no types": (lambda: TokensSettings(n_types=-1), "n_types is -1", "Set n_types"),
    "no positions": (lambda: LearnedSettings(max_len=0), "max_len is 0", "Set max_len"),
    "no features": (lambda: VectorsSettings(n_features=0), "n_features is 0", "Set n_features"),
    "no frame features": (lambda: FramesSettings(n_features=0), "n_features is 0", "Set n_features"),
    "a stride of nothing": (lambda: FramesSettings(strides=(1, 0)), "frames.strides is (1, 0)", "1 or more"),
    "patch does not divide": (
        lambda: PatchesSettings(height=32, width=30, patch=8),
        "patches.width is 30, which patch 8 does not divide",
        "multiple of 8",
    ),
    "negative margin": (lambda: PatchesSettings(margin=-1), "margin is -1", "Set margin"),
    "a margin beyond the neighbours": (
        lambda: PatchesSettings(height=10, width=12, patch=2, margin=200),
        "patches.margin is 200, but a patch has only 2 × 2 pixels",
        "Choose 2 or less",
    ),
    "no patch": (lambda: PatchesSettings(patch=0), "patch is 0", "Set patch"),
    "no classes": (lambda: ClassHeadSettings(n_classes=0), "n_classes is 0", "Set n_classes"),
    "no values": (lambda: RegressionHeadSettings(n_values=0), "n_values is 0", "Set n_values"),
    "no table to tie to": (
        lambda: EncoderDecoderSettings(source=VectorsSettings()),
        "tie_source_target is true, but the source is vectors",
        "tie_source_target = false",
    ),
    "tables differ": (
        lambda: EncoderDecoderSettings(source=tokens(vocab_size=5), target=tokens(vocab_size=6)),
        "5 x 512 and 6 x 512",
        "same vocab_size and d_model",
    ),
    "tied to a class head": (
        lambda: DecoderOnlySettings(head=ClassHeadSettings()),
        "tie_output is true, but there is no table to share between a tokens source and a class head",
        "tie_output = false",
    ),
    "tied to pictures": (
        lambda: EncoderOnlySettings(source=PatchesSettings(), head=EmbeddingHeadSettings(), tie_output=True),
        "tie_output is true",
        "tie_output = false",
    ),
    "words out of vectors": (
        lambda: EncoderOnlySettings(source=VectorsSettings()),
        "The head scores tokens, but the source is vectors",
        "head.kind",
    ),
    "no spread": (lambda: DecoderOnlySettings(init_std=0.0), "init_std is 0.0", "0.02"),
    "negative spread": (lambda: EncoderDecoderSettings(init_std=-1.0), "init_std is -1.0", "none is Xavier"),
    "not a spread": (lambda: EncoderOnlySettings(init_std=float("nan")), "init_std is nan", "0.02"),
}
for owner in (TokensSettings, FramesSettings, PatchesSettings, VectorsSettings, StackSettings, AttentionSettings,
              FeedForwardSettings, ClassHeadSettings, RegressionHeadSettings):  # fmt: skip
    for share in (1.0, -0.1, float("nan")):
        name = f"{owner.__name__} dropout {share}"
        SETTINGS[name] = (lambda o=owner, s=share: o(dropout=s), f"dropout is {share}", "below 1")  # type: ignore[misc]


@pytest.mark.parametrize("case", SETTINGS.values(), ids=list(SETTINGS))
def test_an_impossible_setting_is_refused_by_name(case: Case) -> None:
    refused_in_our_words(*case)
