"""The model that a classification run trains: new in the recipe's shape, or a trained one with a new head."""

from dataclasses import replace
from typing import Any

import torch

from glassformer import config
from glassformer.data.labels import Labels
from glassformer.errors import require
from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly, build
from glassformer.model.heads import TokenHead
from glassformer.model.lora import add_lora
from glassformer.model.picture_size import at_size
from glassformer.model.rehead import with_settings
from glassformer.model.settings import (
    ClassHeadSettings,
    EmbeddingHeadSettings,
    EncoderOnlySettings,
    Head,
    ModelSettings,
    Pooling,
    RegressionHeadSettings,
    TokenHeadSettings,
)
from glassformer.model.stack import Stack
from glassformer.sizes import full_name, load_size_data
from glassformer.tasks.built_in import find_model
from glassformer.tasks.classify import ClassifyRecipe
from glassformer.tasks.classify_answers import Classifying
from glassformer.tasks.dropout import dropping
from glassformer.tasks.model_dir import LoadedModel, load_model

# The peak of the learning rate times the width. A new model: 1e-3 for 128. Fine-tuning: 8e-5 for 384 and 4e-5 for 768,
# as is published for MiniLM and BERT; detours bear ten times that.
LR_TIMES_WIDTH, FINE_LR_TIMES_WIDTH, LORA_LR_TIMES_WIDTH = 0.13, 0.03, 0.3
MOST_LR = 3e-3
FINE_HEAD_SPEED = 5.0  # a new head on trained layers


def load_start(name: str) -> LoadedModel:
    """A trained model that a classifier can be made of."""
    loaded = load_model(find_model(name))
    require(
        not isinstance(loaded.model, EncoderDecoder),
        f"{name} is a model for {loaded.task}: a classifier cannot start from it.",
        "Start from an encoder (train fill, import) or a language model (train complete, import).",
    )
    return loaded


def new_model(recipe: ClassifyRecipe, labels: Labels, front_end: dict[str, Any]) -> EncoderOnly:
    """A model in the recipe's shape; `front_end` is what the data says of it."""
    torch.manual_seed(recipe.train.seed)
    model = build(new_settings(recipe, labels, front_end))
    assert isinstance(model, EncoderOnly)
    return model


def new_settings(recipe: ClassifyRecipe, labels: Labels, front_end: dict[str, Any]) -> EncoderOnlySettings:
    """The size, the recipe's changes to it, what the data says of the front-end, and a head for the labels."""
    family = "picture" if front_end.get("kind") == "patches" else "classify"
    size = load_size_data(full_name(recipe.size, family))
    require(
        size["kind"] == "encoder_only", f"The size {recipe.size} is no encoder.", "Choose tiny, small, base or big."
    )
    data = config.merge(config.merge(size, {"source": front_end, "tie_output": False}), recipe.model)
    if recipe.dropout is not None:
        data = config.merge(data, {part: {"dropout": recipe.dropout} for part in ("source", "encoder")})
    data = {**data, "head": config.to_data(head_settings(recipe, labels, recipe.pooling or "mean"))}
    settings: ModelSettings = config.parse(ModelSettings, data, f"The model {recipe.size}")
    assert isinstance(settings, EncoderOnlySettings)
    return settings


def tuned_model(recipe: ClassifyRecipe, labels: Labels, start: LoadedModel) -> tuple[Classifying, TokenHead | None]:
    """The trained model with a new head, parts of it held fast; and the head of the language model that it was."""
    torch.manual_seed(recipe.train.seed)
    started = start.model
    assert not isinstance(started, EncoderDecoder)
    if isinstance(started, EncoderOnly) and recipe.pictures.size is not None:
        started = at_size(started, *recipe.pictures.size)
    same_labels = start.task == "classify" and start.about.get("labels") == config.to_data(labels)
    model = with_head(started, head_settings(recipe, labels, _pooling(recipe, started)), recipe.dropout, same_labels)
    if recipe.lora is not None:
        add_lora(model, recipe.lora)
        model.head.requires_grad_(True)
    hold(model, recipe.freeze)
    return model, _speaker(model, started) if recipe.lm_weight else None


def head_settings(recipe: ClassifyRecipe, labels: Labels, pooling: Pooling) -> Head:
    dropout = 0.1 if recipe.dropout is None else recipe.dropout
    if labels.kind == "number":
        return RegressionHeadSettings(pooling=pooling, dropout=dropout)
    return ClassHeadSettings(n_classes=labels.n_out, pooling=pooling, dropout=dropout)


def with_head(model: Classifying, head: Head, dropout: float | None = None, keep_head: bool = False) -> Classifying:
    """The same model with another head; the old one's weights stay if they are to be kept and fit."""
    old = model.settings
    pooler = old.head.transform if isinstance(old.head, EmbeddingHeadSettings) else None
    if pooler is not None:  # BERT's is trained, and stands before the new scores too
        head = replace(head, transform=pooler)
    settings: Any = replace(old, head=head, tie_output=False)
    if dropout is not None:
        settings = config.parse(ModelSettings, dropping(config.to_data(settings), dropout), "The model to start from")
    kept = ("head.",) if keep_head and head == old.head else ("head.transform.",) if pooler is not None else ()
    made = with_settings(model, settings, kept)
    assert not isinstance(made, EncoderDecoder)
    return made


def hold(model: Classifying, n_layers: int) -> None:
    """Leave the front-end and the lowest layers as they are."""
    if n_layers == 0:
        return
    stack: Stack = model.decoder if isinstance(model, DecoderOnly) else model.encoder
    require(
        n_layers <= len(stack.blocks),
        f"{n_layers} layers are to be frozen, but the model has {len(stack.blocks)}.",
        "Freeze fewer.",
    )
    for part in (model.source, *stack.blocks[:n_layers]):
        part.requires_grad_(False)


def automatic_lr(recipe: ClassifyRecipe, settings: ModelSettings) -> float:
    """The peak of the learning rate: the wider the model the less, and little where it is trained already."""
    stack = settings.encoder if isinstance(settings, EncoderOnlySettings) else settings.decoder
    if recipe.start is None:
        return min(MOST_LR, LR_TIMES_WIDTH / stack.d_model)
    return (FINE_LR_TIMES_WIDTH if recipe.lora is None else LORA_LR_TIMES_WIDTH) / stack.d_model


def _speaker(model: Classifying, started: Classifying) -> TokenHead | None:
    """The token head of a decoder: on the trained table where it is shared, as it is where it has its own."""
    if not isinstance(started, DecoderOnly) or not isinstance(started.head, TokenHead):
        return None
    assert isinstance(model, DecoderOnly)
    speaker = started.head.requires_grad_(False)
    if started.settings.tie_output:
        speaker.w.weight = model.source.embedding.weight
    return speaker


def _pooling(recipe: ClassifyRecipe, started: Classifying) -> Pooling:
    if recipe.pooling is not None:
        require(
            recipe.pooling == "last" or isinstance(started, EncoderOnly),
            f"Pooling {recipe.pooling} on a language model would read from positions that saw little.",
            "Leave it out: the last position saw all.",
        )
        return recipe.pooling
    if isinstance(started, DecoderOnly):
        return "last"
    head = started.settings.head
    pooling: Pooling = "mean" if isinstance(head, TokenHeadSettings) else head.pooling
    return pooling
