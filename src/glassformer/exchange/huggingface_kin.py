"""Models under other names but for a detail: Mistral and Qwen2 are Llamas, and a BERT may guess what follows too."""

from collections.abc import Mapping
from typing import Any

ARCHITECTURES = {"mistral": "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM"}


def as_known(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config.json of a kin as that of the model that it is; any other as it is.

    Mistral looks back only so far: within its window it is a Llama, so that its context ends there. Qwen2 has three
    biases. A BERT for pre-training is one that fills blanks, and also guesses whether a sentence follows: that is left.
    """
    if config.get("architectures") == ["BertForPreTraining"]:
        return {**config, "architectures": ["BertForMaskedLM"]}
    kind = str(config.get("model_type"))
    if kind not in ARCHITECTURES or (config.get("architectures") or [ARCHITECTURES[kind]]) != [ARCHITECTURES[kind]]:
        return dict(config)
    # Where nothing is said, transformers takes 4,096; null means all.
    looks_back = kind == "mistral" or config.get("use_sliding_window")
    window = config.get("sliding_window", 4096) if looks_back else None
    context = [n for n in (config.get("max_position_embeddings"), window) if isinstance(n, int)]
    return {
        **config,
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": "qkv" if kind == "qwen2" else False,
        "max_position_embeddings": min(context, default=None),
        "kin": kind,
    }
