"""Export to Hugging Face: transformers loads it with equal logits and tokens, and it comes back as it was."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from glassformer.data.tokenizer import Marks, Tokenizer, train_tokenizer
from glassformer.errors import UserError
from glassformer.exchange.huggingface_export import write_huggingface
from glassformer.exchange.importing import import_model
from glassformer.model import DecoderOnly
from glassformer.model.settings import (
    AttentionSettings,
    DecoderOnlySettings,
    FeedForwardSettings,
    LearnedSettings,
    NormSettings,
    RotarySettings,
    SinusoidalSettings,
    StackSettings,
    TokenHeadSettings,
    TokensSettings,
)
from glassformer.tasks.model_dir import LoadedModel, load_model, save_model
from glassformer.tasks.template import talk_text
from tests.builders import rough
from tests.exchange.foreign_models import SENTENCES, byte_level_core, llama, logits_equal, save_huggingface

SIZE = 300
LEARNED = TokensSettings(vocab_size=SIZE, positions=LearnedSettings(max_len=64))
PLAIN = TokensSettings(vocab_size=SIZE, positions=None)


def gpt2(**changes: Any) -> DecoderOnlySettings:
    stack = {"d_model": 16, "n_layers": 2, "attention": AttentionSettings(n_heads=4)}
    stack |= {"feed_forward": FeedForwardSettings(d_ff=24, activation="gelu_tanh")} | changes
    return DecoderOnlySettings(source=LEARNED, decoder=StackSettings(**stack))


def llama_like(source: TokensSettings = PLAIN, tie: bool = True, **changes: Any) -> DecoderOnlySettings:
    stack: dict[str, Any] = {
        "d_model": 16,
        "n_layers": 2,
        "attention": AttentionSettings(n_heads=4, n_kv_heads=2, bias="", rotary=RotarySettings(base=500.0)),
        "feed_forward": FeedForwardSettings(d_ff=24, activation="silu", gated=True, bias=False),
        "norm": NormSettings(kind="rms", eps=1e-6),
    }
    return DecoderOnlySettings(source=source, decoder=StackSettings(**(stack | changes)), tie_output=tie)


GATED = FeedForwardSettings(d_ff=24, activation="gelu", gated=True)
FITTING = {
    "gpt2": gpt2(),
    "gpt2-relu": gpt2(feed_forward=FeedForwardSettings(d_ff=20, activation="relu"), norm=NormSettings(eps=1e-3)),
    "llama": llama_like(),
    "llama-untied": llama_like(tie=False),
    "llama-biases": llama_like(
        attention=AttentionSettings(n_heads=2, d_k=6, d_v=6, rotary=RotarySettings()), feed_forward=GATED
    ),
}
# What the layout has not, but can say: rows in another order, and biases that are zero.
REWRITTEN = {
    "gpt2-without-biases": gpt2(
        attention=AttentionSettings(n_heads=4, bias="qv"), feed_forward=FeedForwardSettings(d_ff=24, bias=False)
    ),
    "llama-interleaved": llama_like(
        attention=AttentionSettings(n_heads=4, n_kv_heads=1, rotary=RotarySettings(layout="interleaved"))
    ),
    "llama-some-biases": llama_like(attention=AttentionSettings(n_heads=4, bias="qk", rotary=RotarySettings())),
}


def test_a_mark_that_only_templates_put_in_front(tmp_path: Path) -> None:
    """The tokenizer's bos_token is none of its texts, and yet a talk begins with it; so it goes out again."""
    template = "{{ bos_token }}{{ messages[0]['content'] }}{{ eos_token }}"
    import_model(save_huggingface(llama(), tmp_path / "theirs", chat_template=template), tmp_path / "ours")
    loaded, talk = load_model(tmp_path / "ours"), [{"role": "user", "content": "Hi"}]
    write_huggingface(loaded, tmp_path / "back")
    words, theirs = (AutoTokenizer.from_pretrained(tmp_path / name) for name in ("back", "theirs"))
    wanted = theirs.apply_chat_template(talk, tokenize=False)
    assert wanted == "<|start|>Hi<|end|>" == talk_text(loaded.tokenizer, talk)
    assert words.apply_chat_template(talk, tokenize=False) == wanted
    assert words("Hi").input_ids == theirs("Hi").input_ids == loaded.tokenizer.encode("Hi")
    assert json.loads((tmp_path / "back" / "config.json").read_text())["bos_token_id"] == 0


def test_without_such_a_mark_none_is_named(tmp_path: Path) -> None:
    folder = save_huggingface(llama(), tmp_path / "theirs", bos_token=None)
    import_model(folder, tmp_path / "ours")
    write_huggingface(load_model(tmp_path / "ours"), tmp_path / "back")
    assert AutoTokenizer.from_pretrained(tmp_path / "back").bos_token is None


def ours() -> Tokenizer:
    return train_tokenizer(SENTENCES * 4, size=SIZE)


def store(settings: DecoderOnlySettings, folder: Path, tokenizer: Tokenizer | None = None) -> LoadedModel:
    save_model(folder, "complete", rough(settings), tokenizer or ours(), about={"context": 48})
    return load_model(folder)


@pytest.mark.parametrize("name", [*FITTING, *REWRITTEN])
def test_transformers_loads_it_with_equal_logits_and_tokens(name: str, tmp_path: Path) -> None:
    loaded = store({**FITTING, **REWRITTEN}[name], tmp_path / "ours")
    report = write_huggingface(loaded, tmp_path / "theirs")
    theirs, problems = AutoModelForCausalLM.from_pretrained(tmp_path / "theirs", output_loading_info=True)
    assert not any(problems[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert isinstance(loaded.model, DecoderOnly)
    logits_equal(loaded.model, theirs)
    words = AutoTokenizer.from_pretrained(tmp_path / "theirs")
    for text in SENTENCES:
        assert words(text).input_ids == [loaded.tokenizer.marks.start, *loaded.tokenizer.encode(text)]
        assert words.decode(loaded.tokenizer.encode(text)) == text
    assert (words.bos_token_id, words.eos_token_id, words.pad_token_id) == (1, 2, 0)
    assert theirs.generation_config.eos_token_id == 2
    assert report["layout"] == {"gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM"}[name.partition("-")[0]]
    assert report == json.loads((tmp_path / "theirs" / "export.json").read_text())
    assert "AutoModelForCausalLM" in (tmp_path / "theirs" / "README.md").read_text()


@pytest.mark.parametrize("name", FITTING)
def test_round_trip(name: str, tmp_path: Path) -> None:
    loaded = store(FITTING[name], tmp_path / "ours")
    write_huggingface(loaded, tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "again")
    again = load_model(tmp_path / "again")
    old, new = loaded.model.state_dict(), again.model.state_dict()
    assert old.keys() == new.keys()
    assert all(torch.equal(old[key], new[key]) for key in old)
    assert again.tokenizer.marks == loaded.tokenizer.marks
    assert [again.tokenizer.encode(text) for text in SENTENCES] == [loaded.tokenizer.encode(t) for t in SENTENCES]
    if name.startswith("llama"):
        assert again.about["context"] == loaded.about["context"]


@pytest.mark.parametrize("name", REWRITTEN)
def test_round_trip_of_what_is_rewritten(name: str, tmp_path: Path) -> None:
    loaded = store(REWRITTEN[name], tmp_path / "ours")
    write_huggingface(loaded, tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "again")
    ids = torch.randint(SIZE, (2, 20))
    with torch.no_grad():
        torch.testing.assert_close(load_model(tmp_path / "again").model(ids), loaded.model(ids), atol=1e-4, rtol=0)


def test_an_imported_model_goes_back(tmp_path: Path) -> None:
    theirs = llama(eos_token_id=[1, 5])
    import_model(save_huggingface(theirs, tmp_path / "a", chat_template="{{ messages }}"), tmp_path / "ours")
    write_huggingface(load_model(tmp_path / "ours"), tmp_path / "b")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "b")
    words = AutoTokenizer.from_pretrained(tmp_path / "b")
    state = theirs.state_dict()
    assert all(torch.equal(weight, state[name]) for name, weight in again.state_dict().items())
    assert again.generation_config.eos_token_id == [1, 5]
    assert words.chat_template == "{{ messages }}"
    assert words("Lily").input_ids == byte_level_core().encode("Lily").ids


@pytest.mark.parametrize(
    ("settings", "gpt2_lacks", "llama_lacks"),
    [
        (llama_like(norm=NormSettings()), "decoder.attention.rotary = given", "decoder.norm.kind = layer"),
        (llama_like(norm=NormSettings()), "source.positions = none", "decoder.norm.kind = layer"),
        (
            gpt2(feed_forward=FeedForwardSettings(d_ff=8, gated=True)),
            "decoder.feed_forward.gated = True",
            "decoder.norm.kind = layer",
        ),
        (gpt2(norm=NormSettings(place="post")), "decoder.norm.place = post", "decoder.norm.place = post"),
        (
            llama_like(TokensSettings(vocab_size=SIZE, positions=SinusoidalSettings(), scale=False)),
            "source.positions = sinusoidal",
            "source.positions = sinusoidal",
        ),
        (
            dataclasses.replace(gpt2(), head=TokenHeadSettings(bias=True)),
            "head.bias = True",
            "head.bias = True",
        ),
    ],
)
def test_what_no_layout_has_is_named(
    settings: DecoderOnlySettings, gpt2_lacks: str, llama_lacks: str, tmp_path: Path
) -> None:
    loaded = store(settings, tmp_path / "ours")
    with pytest.raises(UserError, match="fits neither layout") as caught:
        write_huggingface(loaded, tmp_path / "theirs")
    first, _, second = caught.value.message.partition("; Llama lacks ")
    assert gpt2_lacks in first
    assert llama_lacks in second
    assert not (tmp_path / "theirs").exists()


def test_other_tasks_are_refused(tmp_path: Path) -> None:
    save_model(tmp_path / "ours", "classify", rough(gpt2()), ours())
    with pytest.raises(UserError, match="a model for classify"):
        write_huggingface(load_model(tmp_path / "ours"), tmp_path / "theirs")


def test_a_tokenizer_without_a_start_stays_so(tmp_path: Path) -> None:
    loaded = store(gpt2(), tmp_path / "ours", Tokenizer(byte_level_core(), Marks(None, (1,))))
    write_huggingface(loaded, tmp_path / "theirs")
    words = AutoTokenizer.from_pretrained(tmp_path / "theirs")
    assert words("Lily").input_ids == loaded.tokenizer.encode("Lily")
    import_model(tmp_path / "theirs", tmp_path / "again")
    assert load_model(tmp_path / "again").tokenizer.marks == loaded.tokenizer.marks
