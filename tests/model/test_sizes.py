"""Every size has exactly the weights that it should: counted by hand, and for the classics by Hugging Face's model."""

from typing import Any

import pytest
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MarianConfig,
    MarianMTModel,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
    PreTrainedModel,
    ViTConfig,
    ViTForImageClassification,
    WhisperConfig,
    WhisperForConditionalGeneration,
)

from glassformer.errors import UserError
from glassformer.exchange.huggingface import settings_from_config
from glassformer.model import build_empty, count_parameters
from glassformer.sizes import describe_size, load_size, size_names

N_PARAMETERS = {
    "translate-tiny": 2_349_568,
    "translate-small": 9_421_824,
    "translate-base": 60_524_544,
    "translate-big": 209_129_472,
    "complete-tiny": 1_877_120,
    "complete-small": 13_693_824,
    "complete-base": 109_529_856,
    "complete-big": 341_099_520,
    "encode-tiny": 1_842_112,
    "encode-small": 6_861_376,
    "encode-base": 41_899_776,
    "encode-big": 110_256_128,
    "classify-tiny": 1_289_474,
    "classify-small": 5_208_066,
    "classify-base": 35_300_354,
    "classify-big": 109_633_538,
    "picture-tiny": 204_938,
    "picture-small": 1_205_642,
    "picture-base": 6_534_410,
    "picture-big": 21_618_058,
    "transcribe-tiny": 1_865_987,
    "transcribe-small": 9_870_851,
    "transcribe-base": 31_495_939,
    "transcribe-big": 64_230_659,
    "paper-base": 63_082_496,
    "paper-big": 214_245_376,
    "gpt-1": 116_534_784,
    "gpt-2": 124_439_808,
    "bert-base": 109_514_298,
    "bert-large": 335_174_458,
    "vit-b16": 86_567_656,
    "llama-style": 134_515_008,
    "whisper-tiny": 37_760_640,
}


def count(name: str) -> int:
    return count_parameters(build_empty(load_size(name)))


def test_all_sizes_are_counted() -> None:
    assert set(size_names()) == set(N_PARAMETERS)


@pytest.mark.parametrize("name", size_names())
def test_count(name: str) -> None:
    assert count(name) == N_PARAMETERS[name]


@pytest.mark.parametrize("name", size_names())
def test_about_is_one_line(name: str) -> None:
    about = describe_size(name)
    assert 10 < len(about) <= 120
    assert "\n" not in about


@pytest.mark.parametrize("name", size_names())
def test_head_width_divides(name: str) -> None:
    """Widths that kernels like: every head is a multiple of 8 wide."""
    settings = load_size(name)
    for part in ("encoder", "decoder"):
        if stack := getattr(settings, part, None):
            assert stack.d_k % 8 == 0


def attention(d: int) -> int:
    return 4 * (d * d + d)


def feed_forward(d: int, f: int) -> int:
    return d * f + f + f * d + d


@pytest.mark.parametrize(
    ("name", "words", "d", "n", "f"),
    [
        ("translate-tiny", 8000, 128, 4, 256),
        ("translate-small", 8000, 256, 4, 1024),
        ("translate-base", 32000, 512, 6, 2048),
        ("translate-big", 32000, 1024, 6, 4096),
    ],
)
def test_translate_by_hand(name: str, words: int, d: int, n: int, f: int) -> None:
    norm = 2 * d
    encoder = n * (attention(d) + feed_forward(d, f) + 2 * norm) + norm
    decoder = n * (2 * attention(d) + feed_forward(d, f) + 3 * norm) + norm
    assert words * d + encoder + decoder == count(name)


@pytest.mark.parametrize(
    ("name", "words", "d", "n", "f"),
    [
        ("classify-tiny", 8000, 128, 2, 256),
        ("classify-small", 8000, 256, 4, 1024),
        ("classify-base", 32000, 512, 6, 2048),
        ("classify-big", 32000, 768, 12, 3072),
    ],
)
def test_classify_by_hand(name: str, words: int, d: int, n: int, f: int) -> None:
    """A table of words, the layers, a last norm, and two classes."""
    assert words * d + n * (attention(d) + feed_forward(d, f) + 4 * d) + 2 * d + 2 * (d + 1) == count(name)


@pytest.mark.parametrize(
    ("name", "words", "d", "n", "f"),
    [
        ("complete-tiny", 8000, 128, 4, 384),
        ("complete-small", 8000, 384, 6, 1024),
        ("complete-base", 32000, 768, 12, 2048),
        ("complete-big", 32000, 1024, 24, 2816),
    ],
)
def test_complete_by_hand(name: str, words: int, d: int, n: int, f: int) -> None:
    assert words * d + n * (4 * d * d + 3 * d * f + 2 * d) + d == count(name)


@pytest.mark.parametrize(
    ("name", "words", "d", "n", "f"),
    [
        ("encode-tiny", 8000, 128, 4, 512),
        ("encode-small", 8000, 256, 6, 1024),
        ("encode-base", 32000, 512, 8, 2048),
        ("encode-big", 32000, 768, 12, 3072),
    ],
)
def test_encode_by_hand(name: str, words: int, d: int, n: int, f: int) -> None:
    norm = 2 * d
    head = d * d + d + norm + words
    assert words * d + n * (attention(d) + feed_forward(d, f) + 2 * norm) + norm + head == count(name)


def marian(d: int, h: int, f: int) -> MarianConfig:
    sides: dict[str, Any] = {}
    for side in ("encoder", "decoder"):
        sides |= {f"{side}_layers": 6, f"{side}_attention_heads": h, f"{side}_ffn_dim": f}
    end = {"pad_token_id": 0, "decoder_start_token_id": 0, "activation_function": "relu"}
    return MarianConfig(vocab_size=37000, d_model=d, scale_embedding=True, **sides, **end)


SMOLLM2 = LlamaConfig(
    vocab_size=49152,
    hidden_size=576,
    num_hidden_layers=30,
    num_attention_heads=9,
    num_key_value_heads=3,
    intermediate_size=1536,
    rms_norm_eps=1e-5,
    rope_theta=100_000.0,
    tie_word_embeddings=True,
)
LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
WHISPER = WhisperConfig(bos_token_id=1, begin_suppress_tokens=[3])
CLASSICS = {
    "paper-base": (MarianMTModel, marian(512, 8, 2048)),
    "paper-big": (MarianMTModel, marian(1024, 16, 4096)),
    "gpt-1": (OpenAIGPTLMHeadModel, OpenAIGPTConfig()),
    "gpt-2": (GPT2LMHeadModel, GPT2Config()),
    "bert-base": (BertForMaskedLM, BertConfig()),
    "bert-large": (BertForMaskedLM, BertConfig(**LARGE)),
    "vit-b16": (ViTForImageClassification, ViTConfig(num_labels=1000)),
    "llama-style": (LlamaForCausalLM, SMOLLM2),
    "whisper-tiny": (WhisperForConditionalGeneration, WHISPER),
}


def new(kind: type[PreTrainedModel], config: Any) -> PreTrainedModel:
    with torch.device("meta"):
        return kind(config)


@pytest.mark.parametrize("name", CLASSICS)
def test_classics_count_as_hugging_face(name: str) -> None:
    theirs = new(*CLASSICS[name])
    # Marian's waves are frozen weights there and a formula here; Whisper's are weights here too, to hold its file's.
    counted = [p.numel() for p in theirs.parameters() if p.requires_grad or name == "whisper-tiny"]
    assert count(name) == sum(counted)


@pytest.mark.parametrize("name", ["gpt-2", "bert-base", "bert-large", "vit-b16", "llama-style", "whisper-tiny"])
def test_classics_are_what_their_config_says(name: str) -> None:
    kind, config = CLASSICS[name]
    plain = config.to_dict() | {"architectures": [kind.__name__], "head_dim": None}  # there a width, here d_model / h
    assert load_size(name) == settings_from_config(plain)


def test_like_says_only_what_differs() -> None:
    small = load_size("translate-small")
    assert small.encoder.d_model == small.decoder.d_model == 256
    assert small.source.is_scaled
    assert small.encoder.dropout == 0.2
    assert load_size("translate-small", ["decoder.n_layers=2"]).decoder.n_layers == 2


def test_a_name_that_is_nearly_right() -> None:
    with pytest.raises(UserError, match="Did you mean translate-tiny"):
        load_size("translate-tini")
    with pytest.raises(UserError, match=r"There is no size 'tiny'\. Name it in full: \S+-tiny, .*translate-tiny, "):
        load_size("tiny")
