"""Which Hugging Face layout a decoder of ours has, GPT-2's or Llama's, and its config.json."""

from collections.abc import Mapping
from typing import Any

from glassformer import config as checked
from glassformer.data.tokenizer import Marks
from glassformer.errors import UserError
from glassformer.model.settings import DecoderOnlySettings, LearnedSettings, RotaryScaling, TokenHeadSettings

DEFAULT_CONTEXT = 2048
ACTIVATIONS = {"gelu_tanh": "gelu_new"}  # the others have the same name


def choose_layout(settings: DecoderOnlySettings) -> str:
    """gpt2 or llama; a model that is neither is refused by the settings that do not fit."""
    problems = {"gpt2": _strange(settings, _gpt2_has), "llama": _strange(settings, _llama_has)}
    for layout, strange in problems.items():
        if not strange:
            return layout
    flat = checked.flatten(checked.to_data(settings))

    def say(names: list[str]) -> str:
        values = [flat.get(name, flat.get(f"{name}.kind", "given")) for name in names]  # a group has a kind, maybe
        return ", ".join(f"{n} = {'none' if v is None else v}" for n, v in zip(names, values, strict=True))

    raise UserError(
        f"The model fits neither layout: GPT-2 lacks {say(problems['gpt2'])}; Llama lacks {say(problems['llama'])}.",
        "Export a model with the settings of one of them, such as the sizes gpt-2 or complete-tiny.",
    )


def _strange(settings: DecoderOnlySettings, has: Any) -> list[str]:
    return [name for name, fits in {**_both_have(settings), **has(settings)}.items() if not fits]


def _both_have(settings: DecoderOnlySettings) -> dict[str, bool]:
    head, source, norm = settings.head, settings.source, settings.decoder.norm
    return {
        "head": isinstance(head, TokenHeadSettings),
        "head.bias": not getattr(head, "bias", False),
        "head.transform": getattr(head, "transform", None) is None,
        "source.scale": not source.is_scaled,
        "source.n_types": source.n_types == 0,
        "source.norm": source.norm is None,
        "decoder.norm.place": norm.place == "pre",
        "decoder.norm.final": norm.has_final,
    }


def _gpt2_has(settings: DecoderOnlySettings) -> dict[str, bool]:
    stack, attention = settings.decoder, settings.decoder.attention
    d_head = stack.d_model / attention.n_heads
    return {
        "source.positions": isinstance(settings.source.positions, LearnedSettings),
        "decoder.norm.kind": stack.norm.kind == "layer",
        "decoder.attention.rotary": attention.rotary is None,
        "decoder.attention.n_kv_heads": attention.kv_heads == attention.n_heads,
        "decoder.attention.d_k": stack.d_k == d_head,
        "decoder.attention.d_v": stack.d_v == d_head,
        "decoder.feed_forward.gated": not stack.feed_forward.gated,
    }


def _llama_has(settings: DecoderOnlySettings) -> dict[str, bool]:
    stack = settings.decoder
    return {
        "source.positions": settings.source.positions is None,
        "decoder.norm.kind": stack.norm.kind == "rms",
        "decoder.attention.rotary": stack.attention.rotary is not None,
        "decoder.attention.d_v": stack.d_k == stack.d_v,
        "decoder.feed_forward.gated": stack.feed_forward.gated,
    }


def make_config(settings: DecoderOnlySettings, marks: Marks, context: int | None) -> dict[str, Any]:
    """The config.json, from which `settings_from_config` reads the same settings again."""
    ends = list(marks.ends)
    return {
        **(_gpt2(settings) if choose_layout(settings) == "gpt2" else _llama(settings, context)),
        "vocab_size": settings.source.vocab_size,
        "tie_word_embeddings": settings.tie_output,
        "initializer_range": 0.02 if settings.init_std is None else settings.init_std,
        # Where nothing is said to begin a text, the end of the one before does.
        "bos_token_id": marks.bos if marks.bos is not None else next(iter(ends), None),
        "eos_token_id": ends[0] if len(ends) == 1 else ends or None,
        "dtype": "float32",
    }


def _gpt2(settings: DecoderOnlySettings) -> dict[str, Any]:
    stack = settings.decoder
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "n_positions": getattr(settings.source.positions, "max_len", None),
        "n_embd": stack.d_model,
        "n_layer": stack.n_layers,
        "n_head": stack.attention.n_heads,
        "n_inner": stack.feed_forward.d_ff,
        "activation_function": _activation(settings),
        "layer_norm_epsilon": stack.norm.eps,
        "embd_pdrop": settings.source.dropout,
        "attn_pdrop": stack.attention.dropout,
        "resid_pdrop": stack.dropout,
    }


def _llama(settings: DecoderOnlySettings, context: int | None) -> dict[str, Any]:
    stack, attention = settings.decoder, settings.decoder.attention
    assert attention.rotary is not None
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": stack.d_model,
        "intermediate_size": stack.feed_forward.d_ff,
        "num_hidden_layers": stack.n_layers,
        "num_attention_heads": attention.n_heads,
        "num_key_value_heads": attention.kv_heads,
        "head_dim": stack.d_k,
        "hidden_act": _activation(settings),
        "max_position_embeddings": context or DEFAULT_CONTEXT,
        "rms_norm_eps": stack.norm.eps,
        "attention_bias": bool(attention.bias),
        "mlp_bias": stack.feed_forward.bias,
        "attention_dropout": attention.dropout,
        # The base is written in both places: older and newer versions look for it in one of them.
        "rope_theta": attention.rotary.base,
        "rope_parameters": {"rope_theta": attention.rotary.base, **_scaling(attention.rotary.scaling)},
    }


def _scaling(scaling: RotaryScaling | None) -> dict[str, Any]:
    if scaling is None:
        return {"rope_type": "default"}
    if scaling.kind == "linear":
        return {"rope_type": "linear", "factor": scaling.factor}
    return {
        "rope_type": "llama3",
        "factor": scaling.factor,
        "low_freq_factor": scaling.slow,
        "high_freq_factor": scaling.quick,
        "original_max_position_embeddings": scaling.original,
    }


def _activation(settings: DecoderOnlySettings) -> str:
    name = settings.decoder.feed_forward.activation
    return ACTIVATIONS.get(name, name)


def has_bias(name: str, config: Mapping[str, Any]) -> bool:
    """Whether a part of that name carries a bias in the layout; where ours has none, it is zero there."""
    if config["model_type"] == "gpt2":
        return name.startswith(("h.", "ln_f"))
    part = "attention_bias" if "self_attn." in name else "mlp_bias"
    return ("self_attn." in name or "mlp." in name) and bool(config[part])
