"""Llamas under other names but for a detail: Mistral looks back only so far, Qwen2 has three biases."""

from collections.abc import Mapping
from typing import Any

ARCHITECTURES = {"mistral": "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM"}


def as_llama(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config.json of a kin as Llama's; any other as it is.

    Within its window a model that looks back only so far is a Llama, so that its context ends there.
    """
    kind = str(config.get("model_type"))
    if kind not in ARCHITECTURES or (config.get("architectures") or [ARCHITECTURES[kind]]) != [ARCHITECTURES[kind]]:
        return dict(config)
    window = config.get("sliding_window") if kind == "mistral" or config.get("use_sliding_window") else None
    context = [n for n in (config.get("max_position_embeddings"), window) if isinstance(n, int)]
    return {
        **config,
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": "qkv" if kind == "qwen2" else False,
        "max_position_embeddings": min(context, default=None),
        "kin": kind,
    }
