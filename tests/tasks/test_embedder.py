"""One vector a text: the same alone, in a batch, packed, by threads, and by the model's own modules."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

import glassformer
from glassformer.api import load_embedder
from glassformer.data.tokenizer import train_tokenizer
from glassformer.errors import UserError
from glassformer.exchange.importing import import_model
from glassformer.fast.packed import PackedEncoder, choose_states
from glassformer.model import build
from glassformer.model.settings import (
    AttentionSettings,
    DecoderOnlySettings,
    EmbeddingHeadSettings,
    EncoderDecoderSettings,
    EncoderOnlySettings,
    FeedForwardSettings,
    LearnedSettings,
    NormSettings,
    PatchesSettings,
    RotarySettings,
    StackSettings,
    TokensSettings,
)
from glassformer.tasks import embedder as module
from glassformer.tasks.embedder import Embedder, plain_states
from glassformer.tasks.model_dir import LoadedModel
from tests.exchange.foreign_encoders import add_sentences, bare, save_bert
from tests.exchange.foreign_models import SENTENCES

WORDS = train_tokenizer(SENTENCES, "bpe", 300)
TEXTS = [*SENTENCES, "", "a", "One day", "a red ball", "It was 7", SENTENCES[0] * 3]


def stack(**changes: Any) -> StackSettings:
    return StackSettings(**{"d_model": 16, "n_layers": 2, "attention": AttentionSettings(n_heads=4)} | changes)


TOKENS = TokensSettings(vocab_size=WORDS.vocab_size)
ROTARY = AttentionSettings(n_heads=4, n_kv_heads=2, bias="qo", rotary=RotarySettings())
MODELS = {
    "pre-norm": EncoderOnlySettings(source=TOKENS, encoder=stack()),
    "post-norm": EncoderOnlySettings(
        source=TokensSettings(
            vocab_size=WORDS.vocab_size, positions=LearnedSettings(max_len=40), n_types=2, norm=NormSettings()
        ),
        encoder=stack(
            norm=NormSettings(place="post"),
            attention=AttentionSettings(n_heads=2, bias=""),
            feed_forward=FeedForwardSettings(d_ff=20, activation="gelu", bias=False),
        ),
        head=EmbeddingHeadSettings(pooling="first"),
    ),
    "rotary": EncoderOnlySettings(source=TOKENS, encoder=stack(attention=ROTARY)),
    "gated": EncoderOnlySettings(source=TOKENS, encoder=stack(feed_forward=FeedForwardSettings(d_ff=20, gated=True))),
    "decoder": DecoderOnlySettings(source=TOKENS, decoder=stack(norm=NormSettings(kind="rms"))),
    "translator": EncoderDecoderSettings(source=TOKENS, target=TOKENS, encoder=stack(), decoder=stack()),
}


def loaded(name: str, **about: Any) -> LoadedModel:
    torch.manual_seed(5)
    model = build(MODELS[name]).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.1)
    return LoadedModel(Path("somewhere"), "embed", model, WORDS, WORDS, about)


@torch.no_grad()
def wanted(one: LoadedModel, text: str, pooling: str, longest: int = 512) -> torch.Tensor:
    """By the model's own modules, one text alone."""
    ids = [1, *WORDS.encode(text)[: longest - 2], 2]
    model: Any = one.model
    rows = torch.tensor([ids])
    states = model.encode(rows).x if hasattr(model, "encode") else model.states(rows)
    states = (states if isinstance(states, torch.Tensor) else states.x)[0]
    return {"mean": states.mean(0), "first": states[0], "last": states[-1]}[pooling]


@pytest.mark.parametrize("pooling", ["mean", "first", "last"])
@pytest.mark.parametrize("name", MODELS)
def test_batches_give_what_one_text_gives(name: str, pooling: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = loaded(name)
    longest = 40 if name == "post-norm" else 512
    monkeypatch.setattr(module, "BATCH", 60)  # several batches
    for states in (choose_states(one.model), plain_states(one.model)):
        found = Embedder(one, states).embed(TEXTS, pooling, normalise=False)
        assert found.dtype == np.float32
        for text, vector in zip(TEXTS, found, strict=True):
            torch.testing.assert_close(
                torch.from_numpy(vector), wanted(one, text, pooling, longest), atol=2e-5, rtol=1e-5
            )


def test_which_models_are_packed() -> None:
    packed = {name: isinstance(choose_states(loaded(name).model), PackedEncoder) for name in MODELS}
    assert packed == {name: name not in ("rotary", "gated") for name in MODELS}


def test_threads_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    one = loaded("pre-norm")
    monkeypatch.setattr(module, "BATCH", 30)
    monkeypatch.setattr(module, "CHUNK", 4)
    threads = torch.get_num_threads()
    alone, together = (Embedder(one, choose_states(one.model), workers).embed(TEXTS) for workers in (1, 3))
    np.testing.assert_array_equal(alone, together)
    assert torch.get_num_threads() == threads


@given(st.lists(st.integers(1, 700), min_size=1, max_size=30), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_batches_hold_every_text_once(lengths: list[int], workers: int) -> None:
    rows = [[0] * n for n in lengths]
    order = sorted(range(len(rows)), key=lambda i: lengths[i])
    batches = list(module._batches(order, rows, workers))
    assert [i for batch in batches for i in batch] == order
    assert all(len(batch) == 1 or sum(lengths[i] for i in batch) <= module.BATCH for batch in batches)


def test_what_the_model_says_is_the_default() -> None:
    first = Embedder(loaded("post-norm"))
    np.testing.assert_array_equal(first.embed(TEXTS), first.embed(TEXTS, "first", True))
    np.testing.assert_allclose(np.linalg.norm(first.embed(TEXTS), axis=1), 1, atol=1e-6)
    assert not np.allclose(first.embed(TEXTS), first.embed(TEXTS, "mean"))
    assert Embedder(loaded("decoder")).options.pooling == "last"
    assert Embedder(loaded("translator")).options.pooling == "mean"


def test_long_texts_are_cut_and_counted() -> None:
    for one, longest in ((loaded("pre-norm", context=12), 12), (loaded("post-norm"), 40)):
        embedder = Embedder(one)
        assert embedder.max_tokens == longest
        text = SENTENCES[0]
        n = len(WORDS.encode(text))
        embedder.embed([text, "a", text])
        assert embedder.n_cut == 2 * (n + 2 > longest)
        kept = WORDS.decode(WORDS.encode(text)[: longest - 2])
        np.testing.assert_allclose(embedder.embed([text]), embedder.embed([kept]), atol=1e-6)
        assert embedder.n_cut == 0


def test_no_text_gives_no_vector() -> None:
    assert Embedder(loaded("pre-norm")).embed([]).shape == (0, 16)


def test_what_is_refused() -> None:
    embedder = Embedder(loaded("pre-norm"))
    for texts, message in (("a", "one string"), ([3], "is no text"), ([None], "is no text")):
        with pytest.raises(UserError, match=message):
            embedder.embed(texts)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="There is no pooling 'max'"):
        embedder.embed(["a"], "max")  # type: ignore[arg-type]
    pictures = EncoderOnlySettings(
        source=PatchesSettings(height=8, width=8, patch=4), encoder=stack(), head=EmbeddingHeadSettings()
    )
    with pytest.raises(UserError, match="reads patches, not text"):
        Embedder(LoadedModel(Path("x"), "embed", build(pictures), None, None, {}))


def test_an_imported_sentence_model(tmp_path: Path) -> None:
    """As sentence-transformers computes it: the mean over real positions, then length 1."""
    theirs = bare()
    folder = add_sentences(save_bert(theirs, tmp_path / "theirs"), {"pooling_mode_mean_tokens": True}, True)
    import_model(folder, tmp_path / "ours")
    model = glassformer.load(tmp_path / "ours")
    assert isinstance(model, Embedder)
    found = model.embed(SENTENCES)
    assert found.shape == (4, 24)
    np.testing.assert_allclose(found, load_embedder(tmp_path / "ours").embed(SENTENCES[::-1])[::-1], atol=1e-6)
    from transformers import AutoTokenizer

    rows = AutoTokenizer.from_pretrained(folder)(
        SENTENCES, padding=True, truncation=True, max_length=32, return_tensors="pt"
    )
    with torch.no_grad():
        states = theirs(**rows).last_hidden_state
    keep = rows.attention_mask[:, :, None]
    expected = F.normalize((states * keep).sum(1) / keep.sum(1), dim=-1)
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)
