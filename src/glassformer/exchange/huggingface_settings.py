"""The fields of a Hugging Face config.json as our settings, one short function a family. Weights are not here.

Each function reads a config whose defaults are filled in and gives plain data; `glassformer.config` checks it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from glassformer.errors import UserError, require

Data = dict[str, Any]
ORIGIN = "(origin)"  # a field of our own

ACTIVATIONS = {
    **{name: name for name in ("relu", "gelu", "silu", "tanh")},
    **{"gelu_python": "gelu", "swish": "silu"},
    **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_pytorch_tanh"), "gelu_tanh"),
}
MANY = "multi_label_classification"  # several labels may hold at once
VIT_ALONE = "ViTWithoutPooler"  # a name of our own: the vector of a picture is the state of its class token
OUR_OWN = (VIT_ALONE, "SentenceTransformer")  # names that no config.json has
# How turns may be slowed: our names and theirs.
SCALINGS = {
    "linear": {"factor": "factor"},
    "llama3": {
        "factor": "factor",
        "slow": "low_freq_factor",
        "quick": "high_freq_factor",
        "original": "original_max_position_embeddings",
    },
}


def origin(config: Mapping[str, Any]) -> str:
    """Where the fields come from: config.json, or a file that holds them and the weights."""
    return str(config.get(ORIGIN, "config.json"))


def belonging(config: Mapping[str, Any]) -> str:
    if ORIGIN in config:
        return "The file is damaged; copy it again from where it came."
    return "Take the config.json that belongs to the weights."


class Config(Data):
    """A config.json in which a field that is missing or cannot be read is the user's error."""

    def __missing__(self, field: str) -> Any:
        raise UserError(f"{origin(self)} has no field {field}.", belonging(self))

    def check(self, field: str, good: bool, why: str) -> None:
        require(
            good, f"{origin(self)} has {field} = {self.get(field)!r}, but Glassformer {why}.", "Take another model."
        )

    def activation(self, field: str) -> str:
        name = str(self[field])
        self.check(field, name in ACTIVATIONS, f"knows only {', '.join(ACTIVATIONS)}")
        return ACTIVATIONS[name]

    def table(self, field: str) -> Data:
        table: Data = self.get(field, {})
        self.check(field, isinstance(table, dict), "reads a table there")
        return table

    def pair(self, field: str) -> tuple[Any, Any]:
        """One number may stand for two."""
        pair = self[field] if isinstance(self[field], list) else [self[field]] * 2
        self.check(field, len(pair) == 2, "reads one number or two")
        return pair[0], pair[1]


def read_bert(config: Config, architecture: str) -> Data:
    return {
        "kind": "encoder_only",
        "source": {
            **_tokens(config["vocab_size"], config["max_position_embeddings"], config["hidden_dropout_prob"]),
            "n_types": config["type_vocab_size"],
            "norm": {"eps": config["layer_norm_eps"]},
        },
        "encoder": _encoder(config, place="post"),
        "head": _bert_head(config, architecture),
        "tie_output": architecture == "BertForMaskedLM" and config["tie_word_embeddings"],
        "init_std": config["initializer_range"],
    }


def _bert_head(config: Config, architecture: str) -> Data:
    if architecture == "BertForMaskedLM":
        norm = {"eps": config["layer_norm_eps"]}
        return {"kind": "token", "bias": True, "transform": config.activation("hidden_act"), "norm": norm}
    if architecture == "BertModel":
        return _pooler()
    if architecture == "SentenceTransformer":  # our own name: sentence_transformers.py
        pooling, normalise = config["sentence_pooling"], config["sentence_normalise"]
        return {"kind": "embedding", "pooling": pooling, "normalise": normalise}
    n, dropout = _n_labels(config), config.get("classifier_dropout", config["hidden_dropout_prob"])
    number = config.get("problem_type") == "regression"
    config.check("problem_type", not number or n == 1, f"gives one number a text, not {n}")
    # One label is a number, as in Hugging Face.
    is_number = n == 1 and config.get("problem_type") != MANY
    kind = {"kind": "regression", "n_values": n} if is_number else {"kind": "class", "n_classes": n}
    return {**kind, "pooling": "first", "transform": "tanh", "dropout": dropout}


def read_gpt2(config: Config, _: str) -> Data:
    config.check("n_embd", isinstance(config["n_embd"], int), "reads a whole number there")
    d_ff = config.get("n_inner", 4 * config["n_embd"])
    return {
        "kind": "decoder_only",
        "source": _tokens(config["vocab_size"], config["n_positions"], config["embd_pdrop"]),
        "decoder": {
            "d_model": config["n_embd"],
            "n_layers": config["n_layer"],
            "attention": _attention(config["n_head"], "qkvo", config["attn_pdrop"]),
            "feed_forward": {"d_ff": d_ff, "activation": config.activation("activation_function")},
            "norm": {"eps": config["layer_norm_epsilon"]},
            "dropout": config["resid_pdrop"],
        },
        "tie_output": config["tie_word_embeddings"],
        "init_std": config["initializer_range"],
    }


def read_llama(config: Config, _: str) -> Data:
    bias = config["attention_bias"]
    if not isinstance(bias, str):  # the letters of those that have one: huggingface_kin.py
        bias = "qkvo" if bias else ""
    return {
        "kind": "decoder_only",
        "source": {"vocab_size": config["vocab_size"], "positions": None, "dropout": 0.0},
        "decoder": {
            "d_model": config["hidden_size"],
            "n_layers": config["num_hidden_layers"],
            "attention": {
                **_attention(config["num_attention_heads"], bias, config["attention_dropout"]),
                "n_kv_heads": config.get("num_key_value_heads"),
                "d_k": config.get("head_dim"),
                "d_v": config.get("head_dim"),
                "rotary": _rotary(config),
            },
            "feed_forward": {
                "d_ff": config["intermediate_size"],
                "activation": config.activation("hidden_act"),
                "gated": True,
                "bias": config["mlp_bias"],
            },
            "norm": {"kind": "rms", "eps": config["rms_norm_eps"]},
            "dropout": 0.0,
        },
        "tie_output": config["tie_word_embeddings"],
        "init_std": config["initializer_range"],
    }


def _rotary(config: Config) -> Data:
    # Newer files keep the base and the kind of scaling in one field.
    told = [_slowing(config.table(name)) for name in ("rope_parameters", "rope_scaling") if config.get(name)]
    config.check("rope_scaling", len(told) < 2 or told[0] == told[1], "finds something else in rope_parameters")
    field = "rope_parameters" if "rope_parameters" in config else "rope_scaling"
    rope = config.table(field)
    for place, part in ((field, rope), ("partial_rotary_factor", config)):
        config.check(place, part.get("partial_rotary_factor", 1) == 1, "turns all of a query")
    rotary = {"base": rope.get("rope_theta", config.get("rope_theta", 10_000.0)), "layout": "halves"}
    kind = str(rope.get("rope_type", rope.get("type", "default")))
    if kind == "default":
        return rotary
    config.check(field, kind in SCALINGS, f"slows turns only as {' or '.join(SCALINGS)}")
    missing = [name for name in SCALINGS[kind].values() if name not in rope]
    config.check(field, not missing, f"needs {', '.join(missing)} there")
    return {**rotary, "scaling": {"kind": kind, **{ours: rope[name] for ours, name in SCALINGS[kind].items()}}}


def _slowing(rope: Data) -> Data:
    """What a table says of slower turns: the kind under its newer name, without the base."""
    kind = str(rope.get("rope_type", rope.get("type", "default")))
    return {**{name: rope.get(name) for name in SCALINGS.get(kind, {}).values()}, "rope_type": kind}


def read_marian(config: Config, _: str) -> Data:
    shared, n_words = config["share_encoder_decoder_embeddings"], config["vocab_size"]

    def tokens(vocab_size: Any) -> Data:
        return {
            "kind": "tokens",
            "vocab_size": vocab_size,
            "positions": {"kind": "sinusoidal", "layout": "halves"},
            "scale": config["scale_embedding"],
            "dropout": config["dropout"],
        }

    return {
        "kind": "encoder_decoder",
        "source": tokens(n_words),
        "target": tokens(n_words if shared else config.get("decoder_vocab_size", n_words)),
        "encoder": _half(config, "encoder", place="post"),
        "decoder": _half(config, "decoder", place="post"),
        "head": {"bias": True},
        "tie_source_target": shared,
        "tie_output": config["tie_word_embeddings"],
        "init_std": config["init_std"],
    }


def read_vit(config: Config, architecture: str) -> Data:
    height, width = config.pair("image_size")
    patch, other = config.pair("patch_size")
    config.check("patch_size", patch == other, "cuts squares")
    d_model = config["hidden_size"]
    config.check("pooler_output_size", config.get("pooler_output_size", d_model) == d_model, "pools to hidden_size")
    is_number = architecture == "ViTForImageClassification" and config.get("problem_type") == "regression"
    config.check("problem_type", not is_number, "tells classes of pictures apart")
    heads = {
        "ViTModel": _pooler(),
        "ViTWithoutPooler": {
            "kind": "embedding",
            "pooling": "first",
            "normalise": False,
        },  # our name: huggingface_dir.py
        "ViTForImageClassification": {
            "kind": "class",
            "n_classes": _n_labels(config),
            "pooling": "first",
            "dropout": 0.0,
        },
    }
    return {
        "kind": "encoder_only",
        "source": {
            "kind": "patches",
            "height": height,
            "width": width,
            "n_channels": config["num_channels"],
            "patch": patch,
            "dropout": config["hidden_dropout_prob"],
        },
        "encoder": _encoder(config, place="pre", bias="qkvo" if config["qkv_bias"] else "o"),
        "head": heads[architecture],
        "init_std": config["initializer_range"],
    }


def read_whisper(config: Config, _: str) -> Data:
    return {
        "kind": "encoder_decoder",
        "source": {
            "kind": "frames",
            "n_features": config["num_mel_bins"],
            "strides": [1, 2],
            # Whisper's waves differ from the paper's, and the file holds them: they are read like learned ones.
            "positions": {"kind": "learned", "max_len": config["max_source_positions"]},
            "dropout": config["dropout"],
        },
        "target": _tokens(config["vocab_size"], config["max_target_positions"], config["dropout"]),
        "encoder": _half(config, "encoder", place="pre", bias="qvo"),
        "decoder": _half(config, "decoder", place="pre", bias="qvo"),
        "tie_source_target": False,
        "tie_output": config["tie_word_embeddings"],
        "init_std": config["init_std"],
    }


READERS: dict[str, Callable[[Config, str], Data]] = {
    "bert": read_bert,
    "gpt2": read_gpt2,
    "llama": read_llama,
    "marian": read_marian,
    "vit": read_vit,
    "whisper": read_whisper,
}


def _encoder(config: Config, place: str, bias: str = "qkvo") -> Data:
    return {
        "d_model": config["hidden_size"],
        "n_layers": config["num_hidden_layers"],
        "attention": _attention(config["num_attention_heads"], bias, config["attention_probs_dropout_prob"]),
        "feed_forward": {"d_ff": config["intermediate_size"], "activation": config.activation("hidden_act")},
        "norm": {"eps": config["layer_norm_eps"], "place": place},
        "dropout": config["hidden_dropout_prob"],
    }


def _half(config: Config, side: str, place: str, bias: str = "qkvo") -> Data:
    return {
        "d_model": config["d_model"],
        "n_layers": config[f"{side}_layers"],
        "attention": _attention(config[f"{side}_attention_heads"], bias, config["attention_dropout"]),
        "feed_forward": {
            "d_ff": config[f"{side}_ffn_dim"],
            "activation": config.activation("activation_function"),
            "dropout": config["activation_dropout"],
        },
        "norm": {"place": place},
        "dropout": config["dropout"],
    }


def _attention(n_heads: int, bias: str, dropout: float) -> Data:
    return {"n_heads": n_heads, "bias": bias, "dropout": dropout}


def _tokens(vocab_size: int, max_len: int, dropout: float) -> Data:
    positions = {"kind": "learned", "max_len": max_len}
    return {"kind": "tokens", "vocab_size": vocab_size, "positions": positions, "dropout": dropout}


def _pooler() -> Data:
    return {"kind": "embedding", "pooling": "first", "transform": "tanh", "normalise": False}


def _n_labels(config: Config) -> int:
    return len(config.table("id2label")) or config.get("num_labels", 2)
