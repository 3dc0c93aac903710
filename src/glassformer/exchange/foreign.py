"""A model from elsewhere, before it becomes ours: every reader gives its file this one shape.

Whatever the file is, its settings are told as a Hugging Face config.json would tell them, and its weights stand under
Hugging Face's names; from there on there is one way (`huggingface.py`).
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from glassformer import config as checked
from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import UserError, require
from glassformer.exchange.huggingface import convert_weights, settings_from_config
from glassformer.model import DecoderOnly, EncoderOnly, build_empty
from glassformer.model.settings import (
    DecoderOnlySettings,
    EmbeddingHeadSettings,
    EncoderDecoderSettings,
    EncoderOnlySettings,
    TokenHeadSettings,
)

ForeignSettings = DecoderOnlySettings | EncoderOnlySettings
ForeignModel = DecoderOnly | EncoderOnly
Progress = Callable[[int, int], None]  # weights read so far, and all
LARGEST_JSON = 1 << 28  # bytes; a tokenizer of a million tokens has less
LAYER_WEIGHTS, MOST_LAYERS = 9, 10_000  # a layer has at least so many weights
ROTARY_PARTS = ("self_attn.q_proj", "self_attn.k_proj")


@dataclass(frozen=True)
class Foreign:
    """What was read, still in the file's own order of rows."""

    config: Mapping[str, Any]
    weights: dict[str, Tensor]
    words: Tokenizer | None  # None: the model reads pictures
    # GGUF and llama2.c store queries and keys so that rotary turns (2i, 2i + 1) together; Hugging Face (i, i + d/2).
    interleaved: bool
    about: dict[str, Any]  # for the report: format, files, types of the weights
    use: dict[str, Any] = field(default_factory=dict)  # for settings.json: labels, how pictures are read

    @property
    def tokenizer(self) -> Tokenizer:
        assert self.words is not None
        return self.words

    @property
    def context(self) -> int | None:
        """The longest text that the model was made for, where the file says so."""
        places = self.config.get("n_positions", self.config.get("max_position_embeddings"))
        found = [n for n in (places, self.config.get("max_seq_length")) if isinstance(n, int) and n > 0]
        return min(found, default=None)


def task_of(settings: ForeignSettings) -> str:
    """What a model is for, by its head."""
    if isinstance(settings, DecoderOnlySettings):
        return "complete"
    if isinstance(settings.head, TokenHeadSettings):
        return "fill"
    return "embed" if isinstance(settings.head, EmbeddingHeadSettings) else "classify"


def read_settings(config: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> ForeignSettings:
    """The settings that a config claims, believed only as far as the weights beside it can bear them out.

    Without this a file of a few bytes could ask for a billion layers.
    """
    settings = settings_from_config(config)
    if isinstance(settings, EncoderDecoderSettings):
        kind = config.get("model_type")
        raise UserError(f"This is a {kind} model, which cannot be imported.", "Import GPT-2, Llama, BERT or ViT.")
    largest = max((_product(shape) for shape in shapes.values()), default=0)
    for name, value in checked.flatten(checked.to_data(settings)).items():
        if name.endswith(".scaling.original"):  # it counts turns and makes nothing
            continue
        limit = min(len(shapes) // LAYER_WEIGHTS, MOST_LAYERS) if name.endswith(".n_layers") else largest
        require(
            not isinstance(value, int) or value <= limit,
            f"The settings say {name} = {value}, but the weights are not so many.",
            "The file is damaged, or its parts belong to different models.",
        )
    return settings


def convert(foreign: Foreign) -> ForeignModel:
    """Our model with the foreign weights."""
    settings = read_settings(foreign.config, {name: tuple(w.shape) for name, w in foreign.weights.items()})
    weights = foreign.weights
    if foreign.interleaved:
        assert isinstance(settings, DecoderOnlySettings)
        weights = {name: _turn_rows(name, weight, settings) for name, weight in weights.items()}
    model = build_empty(settings)
    assert isinstance(model, ForeignModel)
    model.load_state_dict(convert_weights(weights, foreign.config), assign=True)
    model.tie()
    return model.requires_grad_(True).eval()


def to_halves(weight: Tensor, n_heads: int) -> Tensor:
    """Rows of queries or keys for pairs (2i, 2i + 1), as rows for pairs (i, i + d/2)."""
    pairs = weight.reshape(n_heads, -1, 2, *weight.shape[1:])
    return pairs.transpose(1, 2).reshape(weight.shape)


def _turn_rows(name: str, weight: Tensor, settings: DecoderOnlySettings) -> Tensor:
    attention = settings.decoder.attention
    if not any(part in name for part in ROTARY_PARTS):
        return weight
    n_heads = attention.n_heads if ROTARY_PARTS[0] in name else attention.kv_heads
    require(
        weight.dim() > 0 and weight.shape[0] == n_heads * settings.decoder.d_k,
        f"{name} has shape {tuple(weight.shape)}, but {n_heads} heads of {settings.decoder.d_k} are to be in it.",
        "The file is damaged, or its parts belong to different models.",
    )
    return to_halves(weight, n_heads)


def as_float(weight: Tensor, name: str) -> Tensor:
    require(
        weight.dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64),
        f"The weight {name} is stored as {str(weight.dtype).removeprefix('torch.')}, which cannot be read.",
        "Take a model in float32, float16 or bfloat16.",
    )
    return weight.float()


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file that nobody vouches for."""
    try:
        require(path.stat().st_size <= LARGEST_JSON, f"{path} is too large for what it is to hold.", "Check the file.")
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path} cannot be read: {error}.", "Copy it again from where it came.") from None
    require(isinstance(data, dict), f"{path} holds no JSON object.", "Copy it again from where it came.")
    return dict(data)


def _product(shape: tuple[int, ...]) -> int:
    product = 1
    for n in shape:
        product *= n
    return product
