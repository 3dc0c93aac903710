"""A vocabulary that grows: old text means the same to the grown model, new text becomes shorter."""

import pytest
import torch

from glassformer.data.pairs import Pair
from glassformer.data.tokenizer import train_tokenizer
from glassformer.model import EncoderDecoder, build
from glassformer.model.settings import (
    AttentionSettings,
    EncoderDecoderSettings,
    FeedForwardSettings,
    StackSettings,
    TokenHeadSettings,
    TokensSettings,
)
from glassformer.tasks.grow import extend_tokenizers, grow_vocabulary
from glassformer.tasks.prepare import Tokenizers

OLD = ["where is the station", "wo ist der Bahnhof", "the train is late", "der Zug ist zu spät"] * 3
NEW = [Pair(i, "где находится вокзал", "поезд опаздывает") for i in range(1, 6)]


def tokenizers(joint: bool) -> Tokenizers:
    first = train_tokenizer(OLD, "bpe", 300)
    return Tokenizers(first, first if joint else train_tokenizer(OLD[::2], "bpe", 290))


def model_for(names: Tokenizers, tie_output: bool = True, bias: bool = False) -> EncoderDecoder:
    stack = StackSettings(
        d_model=16,
        n_layers=1,
        dropout=0.0,
        attention=AttentionSettings(n_heads=2),
        feed_forward=FeedForwardSettings(d_ff=32),
    )
    settings = EncoderDecoderSettings(
        source=TokensSettings(vocab_size=names.source.vocab_size, dropout=0.0),
        target=TokensSettings(vocab_size=names.target.vocab_size, dropout=0.0),
        encoder=stack,
        decoder=stack,
        head=TokenHeadSettings(bias=bias),
        tie_source_target=names.joint,
        tie_output=tie_output,
    )
    model = build(settings)
    assert isinstance(model, EncoderDecoder)
    return model.eval()


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize(("tie_output", "bias"), [(True, False), (False, True)])
def test_the_grown_model_scores_old_words_as_before(joint: bool, tie_output: bool, bias: bool) -> None:
    old = tokenizers(joint)
    new = extend_tokenizers(old, lambda: iter(NEW))
    model = model_for(old, tie_output, bias)
    grown = grow_vocabulary(model, old, new).eval()
    source = torch.tensor([old.source.encode("where is the station")])
    target = torch.tensor([old.target.encode("wo ist der Bahnhof")])
    before, after = model(source, target), grown(source, target)
    assert after.shape[-1] == new.target.vocab_size > before.shape[-1]
    torch.testing.assert_close(after[..., : before.shape[-1]], before)
    assert (grown.head.w.weight is grown.target.embedding.weight) == tie_output


def test_old_text_keeps_its_ids_and_new_text_becomes_shorter() -> None:
    old = tokenizers(joint=True)
    new = extend_tokenizers(old, lambda: iter(NEW))
    for text in OLD:
        assert new.source.encode(text) == old.source.encode(text)
    sentence = NEW[0].source
    assert len(new.source.encode(sentence)) == 3
    assert len(old.source.encode(sentence)) > 20
    assert new.source.decode(new.source.encode(sentence)) == sentence


def test_a_new_word_starts_as_the_mean_of_what_spelled_it() -> None:
    old = tokenizers(joint=True)
    new = extend_tokenizers(old, lambda: iter(NEW))
    model = model_for(old)
    grown = grow_vocabulary(model, old, new)
    i = old.source.vocab_size
    spelled = old.source.spell(new.source.piece(i))
    assert len(spelled) > 1
    torch.testing.assert_close(grown.source.embedding.weight[i], model.source.embedding.weight[spelled].mean(dim=0))


def test_words_of_a_known_alphabet_are_left_as_they_were_learned() -> None:
    """Else the model would meet its own words in tokens that it does not know."""
    old = tokenizers(joint=True)
    known = [Pair(i, "the station is late", "der Bahnhof ist zu spät") for i in range(1, 6)]
    for pairs in (known, [Pair(p.line, p.source.lower(), p.target.lower()) for p in known]):
        assert extend_tokenizers(old, lambda pairs=pairs: iter(pairs)).target.vocab_size == old.target.vocab_size  # type: ignore[misc]
