"""A GGUF file of the Llama family as settings, weights and tokenizer under Hugging Face's names."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import UserError, require
from glassformer.exchange.foreign import Foreign, Progress, read_settings
from glassformer.exchange.gguf_file import GgufFile
from glassformer.exchange.gguf_rope import TABLE, read_rope
from glassformer.exchange.gguf_tokenizer import read_marks, read_tokenizer
from glassformer.exchange.huggingface_settings import ORIGIN
from glassformer.exchange.huggingface_tokenizer import load_core

NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "blk.{i}.attn_norm": "model.layers.{i}.input_layernorm",
    "blk.{i}.attn_q": "model.layers.{i}.self_attn.q_proj",
    "blk.{i}.attn_k": "model.layers.{i}.self_attn.k_proj",
    "blk.{i}.attn_v": "model.layers.{i}.self_attn.v_proj",
    "blk.{i}.attn_output": "model.layers.{i}.self_attn.o_proj",
    "blk.{i}.ffn_norm": "model.layers.{i}.post_attention_layernorm",
    "blk.{i}.ffn_gate": "model.layers.{i}.mlp.gate_proj",
    "blk.{i}.ffn_up": "model.layers.{i}.mlp.up_proj",
    "blk.{i}.ffn_down": "model.layers.{i}.mlp.down_proj",
}


def read_gguf(path: Path, tokenizer: Path | None = None, progress: Progress | None = None) -> Foreign:
    file = GgufFile(path)
    _refuse_what_we_lack(file)
    names = {name: _rename(name) for name in file.tensors if name != TABLE}
    shapes = {ours: file.tensors[name].shape for name, ours in names.items()}
    config = _config(file, shapes)
    read_settings(config, shapes)
    words = read_tokenizer(file) if tokenizer is None else Tokenizer(load_core(tokenizer), read_marks(file))
    weights = {}
    for i, (theirs, name) in enumerate(names.items()):
        weights[name] = file.read(theirs)
        if progress is not None:
            progress(i + 1, len(names))
    source = file.get("tokenizer.ggml.model", str, "") if tokenizer is None else tokenizer.name
    about = {
        "format": "GGUF",
        "source": path.name,
        "weights": dict(sorted(Counter(stored.kind for stored in file.tensors.values()).items())),
        "tokenizer": f"{source} {file.get('tokenizer.ggml.pre', str, '')}".strip(),
    }
    return Foreign(config, weights, words, True, about)


def _refuse_what_we_lack(file: GgufFile) -> None:
    architecture = file.get("general.architecture", str, "")
    require(
        architecture == "llama",
        f"{file.path} holds a model of the architecture {architecture[:60]!r}, which cannot be read.",
        "Import a GGUF file of the Llama family.",
    )
    parts = file.metadata.get("split.count", 1)
    require(
        parts in (0, 1), f"{file.path} is one of {parts} parts of a model.", "Join them with llama.cpp's gguf-split."
    )
    require(
        not file.metadata.get("llama.expert_count", 0),
        f"{file.path} holds a model with experts, which Glassformer lacks.",
        "Take a model without.",
    )


def _rename(name: str) -> str:
    stem, _, ending = name.rpartition(".")
    layer = re.fullmatch(r"blk\.(\d{1,9})\.(.+)", stem)
    template = stem if layer is None else f"blk.{{i}}.{layer[2]}"
    require(
        template in NAMES and ending in ("weight", "bias"),
        f"A Llama model has no place for the tensor {name[:60]!r}.",
        "Take a model of the plain Llama family.",
    )
    return f"{NAMES[template].replace('{i}', layer[1] if layer else '')}.{ending}"


def _size(file: GgufFile, key: str, default: int | None = None) -> int:
    """A whole number of the metadata; some files give one for each layer."""
    value = file.metadata.get(f"llama.{key}", default)
    if isinstance(value, np.ndarray) and len(value) and (value == value[0]).all():
        value = value[0].item()
    if not isinstance(value, int) or value <= 0:
        raise UserError(
            f"{file.path} is not a sound GGUF file: llama.{key} is {str(value)[:60]!r}.",
            "Copy it again from where it came.",
        )
    return value


def _config(file: GgufFile, shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    n_heads, d_model = _size(file, "attention.head_count"), _size(file, "embedding_length")
    d_head = _size(file, "attention.key_length", d_model // n_heads)
    turned, d_v = _size(file, "rope.dimension_count", d_head), _size(file, "attention.value_length", d_head)
    require(
        turned == d_head == d_v,
        f"{file.path} turns {turned} of {d_head} numbers of a query and has values of {d_v}, not all the same.",
        "Take another model.",
    )
    embedding = shapes.get("model.embed_tokens.weight", ())
    if len(embedding) != 2:
        raise UserError(f"{file.path} has no table of embeddings.", "Copy it again from where it came.")
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": d_model,
        "intermediate_size": _size(file, "feed_forward_length"),
        "num_hidden_layers": _size(file, "block_count"),
        "num_attention_heads": n_heads,
        "num_key_value_heads": _size(file, "attention.head_count_kv", n_heads),
        "head_dim": d_head,
        "vocab_size": embedding[0],
        "max_position_embeddings": _size(file, "context_length"),
        "rms_norm_eps": file.get("llama.attention.layer_norm_rms_epsilon", float, 1e-6),
        "rope_parameters": read_rope(file, d_head),
        "tie_word_embeddings": "lm_head.weight" not in shapes,
        "attention_bias": "model.layers.0.self_attn.q_proj.bias" in shapes,
        "mlp_bias": "model.layers.0.mlp.up_proj.bias" in shapes,
        ORIGIN: str(file.path),
        "hidden_act": "silu",
        "initializer_range": 0.02,
    }
