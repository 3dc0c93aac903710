"""The folder of a language model that plain CTranslate2 loads: its tokens, its vocabulary, its report."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import ctranslate2
import pytest
import tokenizers

from glassformer.data.tokenizer import Marks, Tokenizer, train_tokenizer
from glassformer.decode.complete_options import CompleteOptions
from glassformer.errors import UserError
from glassformer.fast.ctranslate2 import cannot_run, write_spec
from glassformer.fast.ctranslate2_decoder import to_decoder_spec, write_ctranslate2_decoder
from glassformer.fast.ctranslate2_spec import array
from glassformer.model import DecoderOnly, build
from glassformer.model.settings import (
    AttentionSettings,
    ClassHeadSettings,
    DecoderOnlySettings,
    NormSettings,
    RotarySettings,
)
from glassformer.tasks.generator import Generator
from glassformer.tasks.model_dir import LoadedModel
from tests.builders import VOCABULARY, stack, tokens
from tests.fast.decoders import DECODERS, decoder, prompts

TEXTS = ["the quick brown fox jumps over the lazy dog", "der schnelle braune Fuchs", "Über-Straße 42 </s> <unk>"]
ROTARY = AttentionSettings(n_heads=4, rotary=RotarySettings())
N_NEW = 20
GREEDY = CompleteOptions(max_tokens=N_NEW, temperature=0)


def greedy(model: DecoderOnly, prompt: list[int], ends: tuple[int, ...] = ()) -> list[int]:
    return [chosen.id for step in Generator(model, [prompt], GREEDY, ends) for _, chosen in step]


@pytest.mark.parametrize("name", DECODERS)
def test_greedy_tokens_are_those_of_torch(tmp_path: Path, name: str) -> None:
    model = decoder(name)
    spec = to_decoder_spec(model, [str(i) for i in range(VOCABULARY)], 0, 1, 2, n_positions=64)
    write_spec(spec, tmp_path, "float32")
    generator = ctranslate2.Generator(str(tmp_path), compute_type="float32")
    asked = prompts(12)
    results = generator.generate_batch(
        [[str(i) for i in prompt] for prompt in asked],
        max_length=N_NEW,
        end_token=[2],
        include_prompt_in_result=False,
        return_end_token=True,
    )
    ours = [greedy(model, prompt, ends=(2,)) for prompt in asked]
    assert [result.sequences_ids[0] for result in results] == ours
    assert len({tuple(ids) for ids in ours}) > 3
    assert len({i for ids in ours for i in ids}) > 3


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TEXTS * 3, "bpe", 300, sentences=False)


def loaded(tokenizer: Tokenizer, name: str = "llama", n_unused: int = 0) -> LoadedModel:
    source = replace(DECODERS[name].get("source", tokens()), vocab_size=tokenizer.vocab_size + n_unused)
    return LoadedModel(Path("runs/book"), "complete", decoder(name, source=source), tokenizer, tokenizer, {})


@pytest.mark.parametrize("n_unused", [0, 5])
def test_the_folder_serves_plain_ctranslate2(tmp_path: Path, tokenizer: Tokenizer, n_unused: int) -> None:
    """As its README says, with nothing but the files in it."""
    given = loaded(tokenizer, n_unused=n_unused)
    write_ctranslate2_decoder(given, tmp_path / "new", "float32")
    core = tokenizers.Tokenizer.from_file(str(tmp_path / "new" / "tokenizer.json"))
    generator = ctranslate2.Generator(str(tmp_path / "new"))
    names = json.loads((tmp_path / "new" / "vocabulary.json").read_text())
    assert len(names) == tokenizer.vocab_size + n_unused
    for text in TEXTS[:2]:  # in the last one, its tokenizer would take the name of a mark for the mark
        asked = [names[1], *core.encode(text, add_special_tokens=False).tokens]
        [found] = generator.generate_batch([asked], max_length=N_NEW, include_prompt_in_result=False)
        assert isinstance(given.model, DecoderOnly)
        ours = greedy(given.model, [1, *tokenizer.encode(text)], ends=(2,))
        assert found.sequences_ids[0] == [i for i in ours if i != 2]
        assert found.sequences[0] == [names[i] for i in ours if i != 2]


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_the_report_says_what_was_checked(tmp_path: Path, tokenizer: Tokenizer, precision: Any) -> None:
    found = write_ctranslate2_decoder(loaded(tokenizer), tmp_path, precision)
    assert json.loads((tmp_path / "export.json").read_text()) == found
    first, *others = [check["name"] for check in found["checks"]]
    assert first == "logits against the model that was exported, in fp32"
    assert others == (["the likeliest next token in int8"] if precision == "int8" else [])
    assert all(check["passed"] for check in found["checks"])
    card = (tmp_path / "README.md").read_text()
    assert "['<s>'] + tokenizer.encode" in card
    assert "end_token=['</s>']" in card


def test_wrong_weights_are_noticed(tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoiled(spec: Any, linear: Any) -> None:
        spec.weight = array(linear.weight) + 0.01

    monkeypatch.setattr("glassformer.fast.ctranslate2_decoder.fill_linear", spoiled)
    with pytest.raises(UserError, match="differs from the model that was exported"):
        write_ctranslate2_decoder(loaded(tokenizer), tmp_path, "float32")


def test_a_foreign_vocabulary_with_gaps_and_no_start(tmp_path: Path, tokenizer: Tokenizer) -> None:
    foreign = Tokenizer(tokenizer.core, Marks(start=None, ends=(7, 2)))
    found = write_ctranslate2_decoder(loaded(foreign), tmp_path, "float32")
    assert (found["start"], found["ends"]) == (None, [7, 2])
    assert "tokens = [] + tokenizer.encode" in (tmp_path / "README.md").read_text()
    assert json.loads((tmp_path / "config.json").read_text())["eos_token"] == tokenizer.piece(7)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (DecoderOnlySettings(head=ClassHeadSettings(n_classes=2), tie_output=False), "head is for class"),
        (DecoderOnlySettings(decoder=stack(n_layers=0)), "decoder has none"),
        (DecoderOnlySettings(source=tokens(n_types=2), decoder=stack()), "token types"),
        (DecoderOnlySettings(source=tokens(norm=NormSettings(eps=1e-3)), decoder=stack()), "epsilon"),
        (DecoderOnlySettings(decoder=stack(attention=ROTARY)), "decoder has both"),
    ],
)
def test_it_says_what_it_cannot_run(settings: Any, reason: str) -> None:
    assert reason in str(cannot_run(settings))
    with pytest.raises(UserError, match=rf"CTranslate2 cannot run this model: .*{reason}"):
        to_decoder_spec(build(settings), [], 0, 1, 2, 64)  # type: ignore[arg-type]
