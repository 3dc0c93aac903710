"""What CTranslate2 runs and what it refuses, and the folder that it loads without us. Equality: parity/test_engines."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import ctranslate2
import pytest
import torch

from glassformer.data.tokenizer import END, SPECIALS, Tokenizer, train_tokenizer
from glassformer.decode.options import DecodeOptions
from glassformer.errors import UserError
from glassformer.fast.ctranslate2 import CTranslate2Backend, cannot_run, to_spec, write_ctranslate2
from glassformer.fast.native_translator import NativeBackend
from glassformer.model.settings import (
    AttentionSettings,
    EncoderDecoderSettings,
    EncoderOnlySettings,
    FramesSettings,
    LearnedSettings,
    NormSettings,
    RotarySettings,
    TokenHeadSettings,
)
from glassformer.tasks.backend import Request, TorchBackend
from tests.builders import stack, tokens
from tests.fast.models import SETTINGS, lively, requests
from tests.fast.rounded import has_vnni, needs_compiler

TEXTS = ["the quick brown fox jumps over the lazy dog", "der schnelle braune Fuchs", "Über-Straße 42 </s> <unk>"]
ROTARY = AttentionSettings(n_heads=4, rotary=RotarySettings())


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (EncoderOnlySettings(), "encoder_only"),
        (EncoderDecoderSettings(source=FramesSettings(), tie_source_target=False), "frames"),
        (EncoderDecoderSettings(head=TokenHeadSettings(transform="gelu")), "transform"),
        (EncoderDecoderSettings(encoder=stack(n_layers=0), decoder=stack()), "encoder has none"),
        (EncoderDecoderSettings(encoder=stack(), decoder=stack(n_layers=0)), "decoder has none"),
        (EncoderDecoderSettings(source=tokens(n_types=2), target=tokens()), "token types"),
        (EncoderDecoderSettings(encoder=stack(attention=ROTARY), decoder=stack()), "encoder has both"),
        (EncoderDecoderSettings(encoder=stack(norm=NormSettings(eps=1e-3)), decoder=stack()), "epsilon"),
        (EncoderDecoderSettings(source=tokens(norm=NormSettings(eps=1e-3)), target=tokens()), "epsilon"),
    ],
)
def test_it_says_what_it_cannot_run(settings: Any, reason: str) -> None:
    found = cannot_run(settings)
    assert found is not None
    assert reason in found


def test_what_it_cannot_run_is_refused() -> None:
    model = lively({"source": tokens(n_types=2)} | {"tie_source_target": False})
    with pytest.raises(UserError, match=r"cannot run this model: it knows no token types.*torch engine"):
        CTranslate2Backend(model)


@pytest.mark.skipif(not has_vnni, reason="without VNNI it is far off on models as lively as these")
@pytest.mark.parametrize("name", SETTINGS)
def test_every_model_runs_in_int8_and_answers_about_the_same(name: str) -> None:
    model = lively(SETTINGS[name])
    before = {path: weight.clone() for path, weight in model.state_dict().items()}
    backend, asked = CTranslate2Backend(model, "int8"), requests(12, size=19)
    assert backend.name == "CTranslate2 int8"
    options = DecodeOptions(beam=4, max_len=1, nbest=4)
    ours, theirs = TorchBackend(model).generate(asked, options), backend.generate(asked, options)
    close = [abs(a[0].score - b[0].score) < 0.3 for a, b in zip(ours, theirs, strict=True)]
    assert sum(close) >= 10
    assert all(torch.equal(weight, before[path]) for path, weight in model.state_dict().items())


def test_drawing_is_left_to_torch() -> None:
    backend = CTranslate2Backend(lively({}), "float32")
    drawing = DecodeOptions(sample=True)
    assert backend.supports(DecodeOptions())
    assert not backend.supports(drawing)
    with pytest.raises(UserError, match=r"cannot draw with a seed.*torch engine"):
        backend.generate([Request([3])], drawing)


def test_phrases_are_left_to_torch() -> None:
    with pytest.raises(UserError, match=r"cannot make an answer contain phrases.*torch engine"):
        CTranslate2Backend(lively({}), "float32").generate([Request([3], phrases=((4, 5),))], DecodeOptions())


def test_tables_of_waves_grow_with_the_source() -> None:
    model = lively({})
    chance = random.Random(0)
    long = Request([chance.randrange(3, 29) for _ in range(1500)])
    options = DecodeOptions(max_len=6)
    backend = CTranslate2Backend(model, "float32")
    asked = [Request([5]), long]
    answers = backend.generate(asked, options)
    assert [[h.ids for h in found] for found in answers] == [
        [h.ids for h in found] for found in TorchBackend(model).generate(asked, options)
    ]
    assert backend.generate([Request([5])], replace(options, max_len=4000))


@pytest.mark.parametrize(
    "engine", [TorchBackend, CTranslate2Backend, pytest.param(NativeBackend, marks=needs_compiler)]
)
def test_learned_positions_end_an_answer_and_refuse_a_long_source(engine: Any) -> None:
    few = tokens(positions=LearnedSettings(max_len=8))
    model = lively({"source": few, "target": few, "head": TokenHeadSettings(bias=True)})
    with torch.no_grad():
        model.head.w.bias[END] = -100  # never ends by itself
    backend = engine(model)
    options = DecodeOptions(max_len=100)
    for prefix in ((), (4, 5)):
        assert len(backend.generate([Request([3, 4], prefix)], options)[0][0].ids) == 8
    with pytest.raises(UserError, match=r"9 positions long, but positions.max_len is 8"):
        backend.generate([Request([3] * 8)], options)
    with pytest.raises(UserError, match=r"start with 8 tokens, but positions.max_len is 8"):
        backend.generate([Request([3], (4,) * 8)], options)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TEXTS * 3, "bpe", 300)


@pytest.mark.parametrize("n_unused", [0, 5])
def test_the_folder_serves_plain_ctranslate2(tmp_path: Path, tokenizer: Tokenizer, n_unused: int) -> None:
    table = tokens(vocab_size=tokenizer.vocab_size + n_unused, scale=True)
    model = lively({"source": table, "target": table})
    write_ctranslate2(model, tokenizer, tmp_path / "new" / "folder", "float32")
    translator = ctranslate2.Translator(str(tmp_path / "new" / "folder"), compute_type="float32")
    sources = [tokenizer.encode(text) for text in TEXTS]
    strings = [[tokenizer.core.id_to_token(i) for i in ids] for ids in sources]
    results = translator.translate_batch(strings, beam_size=4, max_decoding_length=12, min_decoding_length=0)
    ours = TorchBackend(model).generate([Request(ids) for ids in sources], DecodeOptions(max_len=12))
    names = [tokenizer.core.id_to_token(i) for i in range(tokenizer.vocab_size)]
    names += [f"<unused {len(names) + i}>" for i in range(n_unused)]
    assert names[:3] == SPECIALS
    assert [r.hypotheses[0] for r in results] == [[names[i] for i in found[0].ids] for found in ours]


def test_a_strange_token_is_read_as_padding_and_moves_no_id(tmp_path: Path, tokenizer: Tokenizer) -> None:
    table = tokens(vocab_size=tokenizer.vocab_size)
    write_ctranslate2(lively({"source": table, "target": table}), tokenizer, tmp_path, "float32")
    translator = ctranslate2.Translator(str(tmp_path), compute_type="float32")
    strange, padding = translator.translate_batch([["never seen", "Ġthe"], ["<pad>", "Ġthe"]], max_decoding_length=8)
    assert strange.hypotheses == padding.hypotheses


def test_each_side_may_have_its_own_tokenizer(tmp_path: Path, tokenizer: Tokenizer) -> None:
    other = train_tokenizer(TEXTS[:1] * 3, "word", 270)
    sides = {"source": tokens(vocab_size=other.vocab_size), "target": tokens(vocab_size=tokenizer.vocab_size)}
    model = lively(sides | {"tie_source_target": False})
    write_ctranslate2(model, tokenizer, tmp_path, "float32", source_tokenizer=other)
    source = other.encode("the lazy fox")
    result = ctranslate2.Translator(str(tmp_path), compute_type="float32").translate_batch(
        [[other.core.id_to_token(i) for i in source]], beam_size=4, max_decoding_length=10, min_decoding_length=0
    )[0]
    ours = TorchBackend(model).generate([Request(source)], DecodeOptions(max_len=10))[0][0]
    assert [tokenizer.core.token_to_id(token) for token in result.hypotheses[0]] == ours.ids


def test_a_token_twice_is_refused() -> None:
    with pytest.raises(UserError, match="same token twice"):
        to_spec(lively({}), ["<pad>", "<s>", "</s>", "a", "a"])
