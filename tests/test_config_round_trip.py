"""Settings, and any plain data, come back from TOML as they were."""

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from glassformer import config
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
    ModelSettings,
    NormSettings,
    PatchesSettings,
    RotarySettings,
    SinusoidalSettings,
    StackSettings,
    TokenHeadSettings,
    TokensSettings,
    VectorsSettings,
)

shares = st.floats(0, 0.99)
counts = st.integers(1, 5000)
activations = st.sampled_from(["relu", "gelu", "gelu_tanh", "silu", "tanh"])
layouts = st.sampled_from(["interleaved", "halves"])
positions = st.none() | st.builds(SinusoidalSettings, layout=layouts) | st.builds(LearnedSettings, max_len=counts)
norms = st.builds(
    NormSettings, kind=st.sampled_from(["layer", "rms"]), eps=st.floats(1e-12, 1), final=st.none() | st.booleans()
)
attentions = st.builds(
    AttentionSettings,
    n_heads=st.sampled_from([1, 2, 4, 8]),
    n_kv_heads=st.sampled_from([None, 1]),
    d_v=st.none() | counts,
    bias=st.sampled_from(["qkvo", "", "qvo"]),
    rotary=st.none() | st.builds(RotarySettings, base=st.floats(1.5, 1e7), layout=layouts),
    dropout=shares,
)
feed_forwards = st.builds(FeedForwardSettings, d_ff=counts, activation=activations, gated=st.booleans(), dropout=shares)
stacks = st.builds(
    StackSettings,
    d_model=st.integers(1, 40).map(lambda n: 16 * n),
    n_layers=st.integers(0, 12),
    attention=attentions,
    feed_forward=feed_forwards,
    norm=norms,
    dropout=shares,
)
tokens = st.builds(TokensSettings, vocab_size=counts, positions=positions, scale=st.booleans(), norm=st.none() | norms)
vectors = st.builds(VectorsSettings, n_features=counts, positions=positions)
frames = st.builds(FramesSettings, strides=st.lists(st.integers(1, 4), max_size=4).map(tuple), positions=positions)
patches = st.integers(1, 9).map(lambda n: PatchesSettings(height=4 * n, width=8, patch=4))
token_heads = st.builds(TokenHeadSettings, bias=st.booleans(), transform=st.none() | activations, norm=norms)
pooled_heads = st.builds(ClassHeadSettings, n_classes=counts, dropout=shares) | st.builds(EmbeddingHeadSettings)
stds = st.none() | st.floats(1e-4, 1)
models = (
    st.builds(DecoderOnlySettings, source=tokens, decoder=stacks, head=token_heads, init_std=stds)
    | st.builds(EncoderOnlySettings, source=tokens | vectors | frames | patches, encoder=stacks, head=pooled_heads)
    | st.builds(
        EncoderDecoderSettings, source=tokens | frames, target=tokens, encoder=stacks, decoder=stacks,
        tie_source_target=st.just(False), init_std=stds,
    )
)  # fmt: skip


@given(settings=models)
def test_settings_come_back_from_toml_as_they_were(settings: Any) -> None:
    text = config.write_toml(config.to_data(settings))
    assert config.parse(ModelSettings, tomllib.loads(text)) == settings


values = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
trees = st.recursive(
    st.dictionaries(st.text('abc-_.é "\n', min_size=1), values | st.lists(values), max_size=4),
    lambda inner: st.dictionaries(
        st.text("ab. ", min_size=1), values | inner | st.lists(inner, max_size=2), max_size=3
    ),
    max_leaves=5,
)


def without_none(data: Any) -> Any:
    match data:
        case dict():
            return {key: without_none(value) for key, value in data.items()}
        case list():
            return [without_none(item) for item in data]
    return "none" if data is None else data


@given(data=trees)
def test_any_plain_data_comes_back_from_toml_with_none_spelt_out(data: dict[str, Any]) -> None:
    assert tomllib.loads(config.write_toml(data)) == without_none(data)
