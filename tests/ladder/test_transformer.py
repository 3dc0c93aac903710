"""The top rungs are the model of the core; nothing is built anew."""

import pytest
import torch

from glassformer.errors import UserError
from glassformer.ladder import FullTransformer, OneLayerTransformer
from glassformer.model import DecoderOnly, ScaledDotProduct
from glassformer.model.settings import AttentionSettings, DecoderOnlySettings, StackSettings, TokensSettings
from glassformer.sizes import load_size

PROGRAM, BATTERY = (
    f"check the {word} log and find out whether it ran {end}".split()
    for word, end in (("program", "please"), ("battery", "down please"))
)
SMALL = DecoderOnlySettings(
    source=TokensSettings(dropout=0.0),
    decoder=StackSettings(d_model=16, n_layers=2, attention=AttentionSettings(n_heads=4, n_kv_heads=2), dropout=0.0),
)


def test_one_layer_is_one_block_with_one_head() -> None:
    rung = OneLayerTransformer(16, steps=1).fit(["abcab"])
    model = rung.network
    assert isinstance(model, DecoderOnly)
    assert len(model.decoder.blocks) == model.settings.decoder.n_layers == 1
    assert model.settings.decoder.attention.n_heads == 1
    assert model.settings.decoder.d_model == 16
    assert model.settings.source.vocab_size == len("abc") + 1  # and the start token


def test_the_full_model_is_the_ready_made_size_without_dropout() -> None:
    model = FullTransformer(steps=1).fit(["abcab"]).network
    size = load_size("complete-tiny")
    assert isinstance(model, DecoderOnly)
    assert isinstance(size, DecoderOnlySettings)
    assert model.settings.decoder.d_model == size.decoder.d_model
    assert model.settings.decoder.n_layers == size.decoder.n_layers
    assert model.settings.decoder.dropout == model.settings.source.dropout == 0


@pytest.mark.parametrize("seed", [1, 2])
def test_both_learn_the_deciding_word_far_back(seed: int) -> None:
    to_ran = BATTERY.index("ran") + 1
    for rung in (OneLayerTransformer(32, steps=250, lr=1e-2, seed=seed), FullTransformer(steps=60, seed=seed)):
        rung.fit([PROGRAM, BATTERY])
        assert rung.predict(BATTERY[:to_ran])["down"] > 0.9
        assert rung.predict(PROGRAM[:to_ran])["please"] > 0.9


def test_the_shown_weights_are_those_that_the_layers_used() -> None:
    """Seen from outside: the weights times the values are what each core gave out, heads that share keys included."""
    rung = FullTransformer(SMALL, steps=3).fit(["abcabdbca"])
    ids = rung.window("abcab")
    cores = [module for module in rung.network.modules() if isinstance(module, ScaledDotProduct)]
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []
    for core in cores:
        core.register_forward_hook(lambda _, given, out: seen.append((given[2], out)))
    with torch.no_grad():
        rung.network(ids[None])
    weights = rung.attention_weights(ids)
    assert weights.shape == (2, 4, len(ids))
    for layer, (v, z) in zip(weights, seen, strict=False):
        by_head = v[0].repeat_interleave(2, dim=0)  # (h, n, d_v)
        torch.testing.assert_close(torch.einsum("hn,hnd->hd", layer, by_head), z[0, :, -1])
    assert torch.allclose(rung.weigh(ids), weights.mean(dim=(0, 1)))


def test_looking_leaves_no_hook_behind() -> None:
    rung = OneLayerTransformer(8, steps=1).fit(["abab"])
    rung.explain("ab")
    assert all(not module._forward_pre_hooks for module in rung.network.modules())


def test_a_size_that_cannot_complete_is_refused() -> None:
    with pytest.raises(UserError, match="translate-tiny is no decoder"):
        FullTransformer("translate-tiny", steps=1).fit(["abc"])
    with pytest.raises(UserError, match="no size 'complete-tin'"):
        FullTransformer("complete-tin", steps=1).fit(["abc"])
