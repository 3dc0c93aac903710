"""Ours = Hugging Face's: six families through files, config.json and names, to 1e-5 in every layer and step."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MarianConfig,
    MarianMTModel,
    PreTrainedModel,
    ViTConfig,
    ViTForImageClassification,
    ViTModel,
    WhisperConfig,
    WhisperForConditionalGeneration,
)

from glassformer.errors import UserError
from glassformer.exchange.huggingface import convert_weights, rename, settings_from_config
from glassformer.model import Transformer, build
from glassformer.model.stack import Stack

Files = tuple[dict[str, Any], dict[str, Tensor]]

BERT = {
    "vocab_size": 40,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "max_position_embeddings": 20,
}
GPT2 = {
    "vocab_size": 40,
    "n_positions": 20,
    "n_embd": 24,
    "n_layer": 2,
    "n_head": 4,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LLAMA = {k: v for k, v in BERT.items() if k != "max_position_embeddings"}
HALVES = {
    "vocab_size": 40,
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}
MARIAN = {**HALVES, "forced_eos_token_id": 2, "max_position_embeddings": 20}
WHISPER = {
    **HALVES,
    "num_mel_bins": 6,
    "max_source_positions": 7,
    "max_target_positions": 12,
    "begin_suppress_tokens": [3],
}
VIT = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "image_size": 12,
    "patch_size": 4,
    "num_labels": 5,
}


@torch.no_grad()
def make(model: PreTrainedModel) -> PreTrainedModel:
    """Nothing keeps its first value: a norm that is not copied, or a bias that is dropped, must be seen."""
    for name, weight in [*model.named_parameters(), *model.named_buffers()]:
        a_formula = "inv_freq" in name or ("embed_positions" in name and isinstance(model, MarianMTModel))
        if a_formula or not weight.is_floating_point():
            continue
        around = 1.0 if weight.dim() == 1 and name.endswith("weight") else 0.0
        spread = 0.2 if weight.dim() == 1 else weight.shape[-1] ** -0.5
        weight.copy_(around + spread * torch.randn_like(weight))
    return model.eval()


def save(model: PreTrainedModel, path: Path) -> Files:
    """What a user has: config.json and the weights as they stand in the file."""
    model.save_pretrained(path)
    return json.loads((path / "config.json").read_text()), load_file(path / "model.safetensors")


def bring(model: PreTrainedModel, path: Path) -> Transformer:
    config, state = save(model, path)
    ours = build(settings_from_config(config))
    ours.load_state_dict(convert_weights(state, config), strict=True)
    return ours.eval()


@contextmanager
def watch(stack: Stack) -> Iterator[list[Tensor]]:
    """What goes into the first block, and what comes out of each."""
    seen: list[Tensor] = []
    hooks = [stack.blocks[0].register_forward_pre_hook(lambda _, args: seen.append(args[0]))]
    hooks += [block.register_forward_hook(lambda _m, _a, out: seen.append(out)) for block in stack.blocks]
    yield seen
    for hook in hooks:
        hook.remove()


def close(ours: Tensor, theirs: Tensor, keep: Tensor | None = None) -> None:
    if keep is not None:
        ours, theirs = ours[keep], theirs[keep]
    assert 0.1 < theirs.abs().mean() < 10  # of order 1, so that the tolerance means something
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


def close_layers(ours: list[Tensor], theirs: tuple[Tensor, ...], keep: Tensor | None = None) -> None:
    """All but the last, which theirs gives after the final norm."""
    assert len(ours) == len(theirs)
    for our, their in zip(ours[:-1], theirs[:-1], strict=True):
        close(our, their, keep)


def ids(b: int, n: int) -> Tensor:
    return torch.randint(3, 40, (b, n))


def keep_first(*lengths: int) -> Tensor:
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"hidden_act": "gelu_new", "num_attention_heads": 1, "num_hidden_layers": 1, "layer_norm_eps": 1e-3},
        {"hidden_act": "relu", "num_attention_heads": 12, "num_hidden_layers": 3, "type_vocab_size": 3},
        {"hidden_act": "silu", "tie_word_embeddings": False},
    ],
)
@torch.no_grad()
def test_bert_fills(changes: dict[str, Any], tmp_path: Path) -> None:
    theirs = make(BertForMaskedLM(BertConfig(**BERT | changes)))
    theirs.cls.predictions.bias.copy_(theirs.cls.predictions.decoder.bias)  # two names of one bias, tied or not
    ours = bring(theirs, tmp_path)
    x, keep = ids(3, 9), keep_first(9, 5, 1)
    types = torch.randint(0, theirs.config.type_vocab_size, x.shape)
    wanted = theirs(x, attention_mask=keep.long(), token_type_ids=types, output_hidden_states=True)
    with watch(ours.encoder) as layers:
        states = ours.states(x, keep, types)
    close_layers(layers, wanted.hidden_states, keep)
    close(states.x, wanted.hidden_states[-1], keep)
    close(ours(x, keep, types), wanted.logits, keep)
    close(ours(x), theirs(x).logits)


@pytest.mark.parametrize("n", [1, 2, 4])
@torch.no_grad()
def test_bert_classifies(n: int, tmp_path: Path) -> None:
    theirs = make(BertForSequenceClassification(BertConfig(**BERT, num_labels=n)))
    x, keep = ids(3, 9), keep_first(9, 5, 1)
    ours = bring(theirs, tmp_path)
    close(ours(x, keep), theirs(x, attention_mask=keep.long()).logits)
    assert ours.settings.head.kind == ("regression" if n == 1 else "class")


@torch.no_grad()
def test_bert_embeds(tmp_path: Path) -> None:
    theirs = make(BertModel(BertConfig(**BERT)))
    x, keep = ids(3, 9), keep_first(9, 5, 1)
    close(bring(theirs, tmp_path)(x, keep), theirs(x, attention_mask=keep.long()).pooler_output)


GENERATIVE = [
    pytest.param(lambda changes=changes: GPT2LMHeadModel(GPT2Config(**GPT2 | changes)), id=f"gpt2-{i}")
    for i, changes in enumerate(
        [
            {},
            {"n_head": 2, "n_layer": 1, "n_inner": 20, "activation_function": "relu", "layer_norm_epsilon": 1e-3},
            {"n_head": 24, "n_layer": 3, "activation_function": "gelu", "tie_word_embeddings": False},
        ]
    )
] + [
    pytest.param(lambda changes=changes: LlamaForCausalLM(LlamaConfig(**LLAMA | changes)), id=f"llama-{i}")
    for i, changes in enumerate(
        [
            {"num_key_value_heads": 2, "tie_word_embeddings": True},
            {"num_key_value_heads": 1, "head_dim": 10, "num_hidden_layers": 3, "rms_norm_eps": 1e-3},
            {"attention_bias": True, "mlp_bias": True, "hidden_act": "gelu", "rope_theta": 500.0},
        ]
    )
]
generative = pytest.mark.parametrize("new", GENERATIVE)


@generative
@torch.no_grad()
def test_decoder(new: Callable[[], PreTrainedModel], tmp_path: Path) -> None:
    theirs = make(new())
    ours = bring(theirs, tmp_path)
    x = ids(3, 12)
    wanted = theirs(x, output_hidden_states=True)
    with watch(ours.decoder) as layers:
        states = ours.states(x)
    close_layers(layers, wanted.hidden_states)
    close(states, wanted.hidden_states[-1])
    close(ours(x), wanted.logits)

    cache = ours.new_cache(3, 12)
    steps = [ours(part, cache=cache) for part in x.split([4, 1, 3, 1, 1, 1, 1], dim=1)]
    close(torch.cat(steps, dim=1), wanted.logits)


@generative
@torch.no_grad()
def test_decoder_with_prompts_of_several_lengths(new: Callable[[], PreTrainedModel], tmp_path: Path) -> None:
    theirs = make(new())
    ours = bring(theirs, tmp_path)
    prompt, keep, more = ids(3, 6), keep_first(6, 2, 4).flip(1), ids(3, 4)
    cache = ours.new_cache(3, 10)
    steps = [ours(prompt, keep, cache)] + [ours(token, cache=cache) for token in more.split(1, dim=1)]
    logits = torch.cat(steps, dim=1)
    for row in range(3):
        alone = torch.cat([prompt[row][keep[row]], more[row]])
        close(logits[row, -len(alone) :], theirs(alone[None]).logits[0])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"scale_embedding": True, "activation_function": "swish"},
        {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 50, "activation_function": "relu"},
        {"decoder_layers": 1, "encoder_attention_heads": 1, "decoder_attention_heads": 12, "d_model": 36},
    ],
)
@torch.no_grad()
def test_marian(changes: dict[str, Any], tmp_path: Path) -> None:
    theirs = make(MarianMTModel(MarianConfig(**MARIAN | changes)))
    ours = bring(theirs, tmp_path)
    source, keep, target = ids(3, 9), keep_first(9, 4, 1), ids(3, 7)
    source[~keep] = 0
    wanted = theirs(source, keep.long(), target, output_hidden_states=True)
    with watch(ours.encoder) as encoder_layers:
        memory = ours.encode(source, keep)
    with watch(ours.decoder) as decoder_layers:
        states = ours.decode(target, memory)
    close_layers(encoder_layers, wanted.encoder_hidden_states, keep)
    close_layers(decoder_layers, wanted.decoder_hidden_states)
    close(memory.x, wanted.encoder_last_hidden_state, keep)
    close(states, wanted.decoder_hidden_states[-1])
    close(ours(source, target, keep), wanted.logits)

    cache = ours.new_cache(3, 7)
    parts = target.split([2, 1, 1, 2, 1], dim=1)
    steps = [ours.head(ours.decode(part, memory, cache=cache)) for part in parts]
    close(torch.cat(steps, dim=1), wanted.logits)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"qkv_bias": False, "hidden_act": "relu", "num_attention_heads": 2, "num_hidden_layers": 3},
        {"image_size": [8, 12], "num_channels": 1, "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-3},
    ],
)
@torch.no_grad()
def test_vit_classifies(changes: dict[str, Any], tmp_path: Path) -> None:
    theirs = make(ViTForImageClassification(ViTConfig(**VIT | changes)))
    ours = bring(theirs, tmp_path)
    pictures = torch.randn(2, *ours.source.shape)
    wanted = theirs(pictures, output_hidden_states=True)
    with watch(ours.encoder) as layers:
        states = ours.states(pictures)
    close_layers(layers, wanted.hidden_states)
    close(states.x, theirs.vit(pictures).last_hidden_state)
    close(ours(pictures), wanted.logits)


@torch.no_grad()
def test_vit_embeds(tmp_path: Path) -> None:
    theirs = make(ViTModel(ViTConfig(**VIT)))
    pictures = torch.randn(2, 3, 12, 12)
    close(bring(theirs, tmp_path)(pictures), theirs(pictures).pooler_output)


@pytest.mark.parametrize(
    "changes",
    [{}, {"encoder_layers": 1, "decoder_attention_heads": 2, "activation_function": "relu", "num_mel_bins": 11}],
)
@torch.no_grad()
def test_whisper(changes: dict[str, Any], tmp_path: Path) -> None:
    theirs = make(WhisperForConditionalGeneration(WhisperConfig(**WHISPER | changes)))
    ours = bring(theirs, tmp_path)
    frames, target = torch.randn(2, 14, theirs.config.num_mel_bins), ids(2, 8)
    wanted = theirs(frames.mT, decoder_input_ids=target, output_hidden_states=True)
    with watch(ours.encoder) as encoder_layers:
        memory = ours.encode(frames)
    with watch(ours.decoder) as decoder_layers:
        states = ours.decode(target, memory)
    close_layers(encoder_layers, wanted.encoder_hidden_states)
    close_layers(decoder_layers, wanted.decoder_hidden_states)
    close(memory.x, wanted.encoder_last_hidden_state)
    close(states, wanted.decoder_hidden_states[-1])
    close(ours(frames, target), wanted.logits)

    cache = ours.new_cache(2, 8)
    steps = [ours.head(ours.decode(part, memory, cache=cache)) for part in target.split([3, 1, 1, 2, 1], dim=1)]
    close(torch.cat(steps, dim=1), wanted.logits)


def test_dropouts_and_deviation_are_read() -> None:
    config = BertConfig(**BERT, hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.3, initializer_range=0.04)
    settings = settings_from_config({**config.to_dict(), "architectures": ["BertForMaskedLM"]})
    assert settings.encoder.dropout == settings.source.dropout == 0.2
    assert settings.encoder.attention.dropout == 0.3
    assert settings.init_std == 0.04


def gpt2(tmp_path: Path) -> Files:
    return save(make(GPT2LMHeadModel(GPT2Config(**GPT2))), tmp_path)


def test_older_files(tmp_path: Path) -> None:
    """The first files had no prefix, masks as buffers, both names of a tied weight, and gamma and beta in norms."""
    config, state = gpt2(tmp_path)
    old = {name.removeprefix("transformer."): weight for name, weight in state.items()}
    old |= {"h.0.attn.bias": torch.ones(1, 1, 20, 20), "h.0.attn.masked_bias": torch.tensor(-1e4)}
    old["lm_head.weight"] = old["wte.weight"].clone()
    new = convert_weights(state, config)
    assert all(torch.equal(weight, new[name]) for name, weight in convert_weights(old, config).items())
    bert = {"model_type": "bert", "architectures": ["BertForMaskedLM"]}
    names = ["bert.embeddings.LayerNorm.gamma", "embeddings.LayerNorm.beta", "bert.pooler.dense.bias"]
    assert rename(bert, names) == dict(zip(names, [("source.norm.weight",), ("source.norm.bias",), ()], strict=True))


def test_older_rotary_field() -> None:
    config = LlamaConfig(**LLAMA).to_dict() | {"architectures": ["LlamaForCausalLM"]}
    del config["rope_parameters"]
    settings = settings_from_config(config | {"rope_theta": 500_000.0, "rope_scaling": None})
    assert settings.decoder.attention.rotary.base == 500_000.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "t5"}, "model_type = t5"),
        ({"model_type": None}, "model_type = None"),
        ({"architectures": None}, "architectures = None"),
        ({"architectures": ["GPT2ForSequenceClassification"]}, "GPT2ForSequenceClassification"),
        ({"activation_function": "quick_gelu"}, "activation_function = 'quick_gelu'"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx = True"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"n_embd": None}, "no field n_embd"),
        ({"n_embd": "wide"}, "n_embd = 'wide'"),
        ({"n_layer": "many"}, "n_layers is 'many'"),
        ({"n_head": 5}, "n_heads 5"),
    ],
)
def test_a_config_that_cannot_be_read(changes: dict[str, Any], message: str) -> None:
    config = GPT2Config(**GPT2).to_dict() | {"architectures": ["GPT2LMHeadModel"]} | changes
    with pytest.raises(UserError, match=message):
        settings_from_config(config)


@pytest.mark.parametrize(
    ("config", "changes", "field"),
    [
        (LlamaConfig(**LLAMA), {"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4}}, "rope_parameters"),
        (LlamaConfig(**LLAMA), {"rope_parameters": None, "rope_scaling": {"type": "linear"}}, "rope_scaling"),
        (LlamaConfig(**LLAMA), {"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor"),
        (BertConfig(**BERT), {"position_embedding_type": "relative_key"}, "position_embedding_type"),
        (BertConfig(**BERT), {"is_decoder": True}, "is_decoder"),
        (MarianConfig(**MARIAN), {"normalize_before": True}, "normalize_before"),
        (ViTConfig(**VIT), {"patch_size": [4, 6]}, "patch_size"),
        (ViTConfig(**VIT), {"pooler_output_size": 7}, "pooler_output_size"),
    ],
)
def test_an_unsupported_field_is_named(config: Any, changes: dict[str, Any], field: str) -> None:
    names = {"llama": "LlamaForCausalLM", "bert": "BertModel", "marian": "MarianMTModel", "vit": "ViTModel"}
    with pytest.raises(UserError, match=field):
        settings_from_config(config.to_dict() | {"architectures": [names[config.model_type]]} | changes)


@pytest.mark.parametrize(
    ("config", "architecture"),
    [
        (BertConfig(**BERT, num_labels=3), "BertForSequenceClassification"),
        (GPT2Config(**GPT2), "GPT2LMHeadModel"),
        (LlamaConfig(**LLAMA), "LlamaForCausalLM"),
        (MarianConfig(**MARIAN), "MarianMTModel"),
        (ViTConfig(**VIT), "ViTForImageClassification"),
        (WhisperConfig(**WHISPER), "WhisperForConditionalGeneration"),
    ],
    ids=lambda part: getattr(part, "model_type", ""),
)
def test_nonsense_is_read_or_refused_but_never_crashes(config: Any, architecture: str) -> None:
    good = json.loads(json.dumps(config.to_dict())) | {"architectures": [architecture]}
    settings_from_config(good)
    for field in good:
        for junk in (None, -1, "x", [[]], {"x": []}):
            with suppress(UserError):
                settings_from_config(good | {field: junk})


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"score.weight": torch.zeros(2, 24), "h.0.new": torch.zeros(1)}, "score.weight, h.0.new"),
        ({"h.2.ln_1.weight": torch.zeros(24)}, "h.2.ln_1.weight has no place"),
        ({"transformer.ln_f.bias": torch.zeros(25)}, r"ln_f.bias has shape \(25,\), not \(24,\)"),
        ({"transformer.h.0.attn.c_attn.weight": torch.zeros(3)}, "c_attn.weight has shape"),
        ({"lm_head.weight": torch.zeros(40, 24)}, "lm_head.weight differs"),
    ],
)
def test_weights_that_do_not_fit(extra: dict[str, Tensor], message: str, tmp_path: Path) -> None:
    config, state = gpt2(tmp_path)
    with pytest.raises(UserError, match=message):
        convert_weights(state | extra, config)


def test_missing_weights_are_named(tmp_path: Path) -> None:
    config, state = gpt2(tmp_path)
    del state["transformer.ln_f.bias"], state["transformer.wte.weight"]
    with pytest.raises(UserError, match=r"source.embedding.weight, decoder.norm.bias, head.w.weight"):
        convert_weights(state, config)


def test_converted_weights_can_be_saved(tmp_path: Path) -> None:
    config, state = gpt2(tmp_path)
    weights = convert_weights(state, config)
    assert all(weight.is_contiguous() for weight in weights.values())
    assert weights["head.w.weight"] is weights["source.embedding.weight"]
