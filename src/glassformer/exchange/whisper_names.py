"""OpenAI's Whisper in the words of Hugging Face: names of weights and of settings."""

import re
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from glassformer.errors import require

_PARTS = (
    (r"^(encoder|decoder)\.blocks\.", r"model.\1.layers."),
    (r"^(encoder|decoder)\.", r"model.\1."),
    (r"\.cross_attn_ln\.", ".encoder_attn_layer_norm."),
    (r"\.attn_ln\.", ".self_attn_layer_norm."),
    (r"\.mlp_ln\.", ".final_layer_norm."),
    (r"\.cross_attn\.", ".encoder_attn."),
    (r"\.attn\.", ".self_attn."),
    (r"\.query\.", ".q_proj."),
    (r"\.key\.", ".k_proj."),
    (r"\.value\.", ".v_proj."),
    (r"\.out\.", ".out_proj."),
    (r"\.mlp\.0\.", ".fc1."),
    (r"\.mlp\.2\.", ".fc2."),
    (r"\.(ln_post|ln)\.", ".layer_norm."),
    (r"\.token_embedding\.", ".embed_tokens."),
    (r"\.positional_embedding$", ".embed_positions.weight"),
)


def to_huggingface(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same weights under Hugging Face's names."""
    return {_rename(name): weight for name, weight in weights.items()}


def _rename(name: str) -> str:
    for pattern, replacement in _PARTS:
        name = re.sub(pattern, replacement, name)
    return name


def to_config(dims: Mapping[str, Any]) -> dict[str, Any]:
    """Hugging Face's settings for OpenAI's dimensions."""
    wanted = (
        "n_mels",
        "n_vocab",
        *(f"n_{s}_{p}" for s in ("audio", "text") for p in ("ctx", "state", "head", "layer")),
    )
    sound = all(type(dims.get(name)) is int and dims[name] > 0 for name in wanted)
    require(sound, "The file's dimensions are not Whisper's.", "Give one of OpenAI's .pt files.")
    require(
        dims["n_audio_state"] == dims["n_text_state"], "Encoder and decoder differ in width.", "This is no Whisper."
    )
    return {
        "model_type": "whisper",
        "architectures": ["WhisperForConditionalGeneration"],
        "num_mel_bins": dims["n_mels"],
        "vocab_size": dims["n_vocab"],
        "d_model": dims["n_audio_state"],
        "max_source_positions": dims["n_audio_ctx"],
        "max_target_positions": dims["n_text_ctx"],
        "encoder_layers": dims["n_audio_layer"],
        "decoder_layers": dims["n_text_layer"],
        "encoder_attention_heads": dims["n_audio_head"],
        "decoder_attention_heads": dims["n_text_head"],
        "encoder_ffn_dim": 4 * dims["n_audio_state"],
        "decoder_ffn_dim": 4 * dims["n_text_state"],
        "activation_function": "gelu",
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "scale_embedding": False,
        "tie_word_embeddings": True,
    }
