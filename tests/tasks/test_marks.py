"""Tokenizers from elsewhere: their marks travel with the model."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer as Core
from tokenizers import decoders, models, pre_tokenizers

from glassformer import config
from glassformer.data.tokenizer import Marks, Tokenizer
from glassformer.errors import UserError
from glassformer.model import DecoderOnly, build
from glassformer.model.settings import DecoderOnlySettings
from glassformer.tasks.model_dir import load_model, save_model


def foreign(marks: Marks) -> Tokenizer:
    """Bytes, and two marks at the end of the vocabulary."""
    vocab = {token: i for i, token in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    core = Core(models.BPE(vocab=vocab, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens(["<|start|>", "<|end|>"])
    return Tokenizer(core, marks)


def small_model(vocab_size: int) -> DecoderOnly:
    data = {
        "source": {"kind": "tokens", "vocab_size": vocab_size},
        "decoder": {"d_model": 8, "n_layers": 1, "attention": {"n_heads": 2}, "feed_forward": {"d_ff": 8}},
    }
    model = build(config.parse(DecoderOnlySettings, data))
    assert isinstance(model, DecoderOnly)
    return model


@pytest.mark.parametrize("marks", [Marks(256, (257,), "{{ messages }}"), Marks(None, (256, 257)), Marks(1, (2,))])
def test_marks_come_back_with_the_model(tmp_path: Path, marks: Marks) -> None:
    tokenizer = foreign(marks)
    save_model(tmp_path, "complete", small_model(tokenizer.vocab_size), tokenizer)
    loaded = load_model(tmp_path).tokenizer
    assert loaded.marks == marks
    assert not loaded.is_ours
    assert loaded.encode("häh?") == tokenizer.encode("häh?")


def test_marks_are_text_unless_asked_for() -> None:
    tokenizer = foreign(Marks(256, (257,)))
    assert 257 not in tokenizer.encode("a<|end|>")
    assert tokenizer.decode(tokenizer.encode("a<|end|>")) == "a<|end|>"
    assert tokenizer.encode_marked("<|start|>a<|end|>") == [256, *tokenizer.encode("a"), 257]
    assert tokenizer.decode([256, *tokenizer.encode("a"), 257]) == "a"
    assert tokenizer.tokens([256, 257]) == ["<|start|>", "<|end|>"]
    assert 257 not in tokenizer.encode("a<|end|>")  # asking changed nothing


def test_spare_rows_are_allowed_but_missing_ones_are_not(tmp_path: Path) -> None:
    tokenizer = foreign(Marks(256, (257,)))
    save_model(tmp_path / "more", "complete", small_model(260), tokenizer)
    assert load_model(tmp_path / "more").tokenizer.vocab_size == 258
    save_model(tmp_path / "fewer", "complete", small_model(257), tokenizer)
    with pytest.raises(UserError, match="knows 258 tokens, but the model 257"):
        load_model(tmp_path / "fewer")


def test_hostile_marks_are_refused(tmp_path: Path) -> None:
    save_model(tmp_path, "complete", small_model(258), foreign(Marks(256, (257,))))
    settings = json.loads((tmp_path / "settings.json").read_text())
    for marks, answer in (
        ({"start": "x"}, "start is 'x', but it must be a whole number"),
        ({"more": 1}, "there is no setting more"),
        ({"start": 258}, "mark 258"),
        ({"ends": [5, -1]}, "mark -1"),
    ):
        (tmp_path / "settings.json").write_text(json.dumps(settings | {"marks": marks}))
        with pytest.raises(UserError, match=answer):
            load_model(tmp_path)
