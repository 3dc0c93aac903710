"""The model that a translation run trains: new in the recipe's shape, or a trained one with new words."""

from dataclasses import dataclass, replace

import torch

from glassformer import config
from glassformer.errors import UserError, require
from glassformer.model import EncoderDecoder, build
from glassformer.model.settings import EncoderDecoderSettings, ModelSettings
from glassformer.sizes import full_name, load_size_data
from glassformer.tasks.built_in import find_model
from glassformer.tasks.dropout import dropping, with_dropout
from glassformer.tasks.grow import grow_vocabulary
from glassformer.tasks.model_dir import load_model
from glassformer.tasks.prepare import Tokenizers
from glassformer.tasks.translate import TranslateRecipe

SIZES = ("tiny", "small", "base")  # that the number of pairs chooses from
MADE_UP = 300  # tokens of a vocabulary that is not there yet


@dataclass(frozen=True)
class Start:
    """A trained model that another training starts from."""

    model: EncoderDecoder
    tokenizers: Tokenizers


def load_start(name: str) -> Start:
    loaded = load_model(find_model(name))
    require(
        isinstance(loaded.model, EncoderDecoder) and loaded.task == "translate",
        f"{name} is a model for {loaded.task}: a translator cannot start from it.",
        "Start from a model made by `glassformer train translate`.",
    )
    assert isinstance(loaded.model, EncoderDecoder)
    return Start(loaded.model, Tokenizers(loaded.source_tokenizer, loaded.tokenizer))


def make_model(recipe: TranslateRecipe, tokenizers: Tokenizers, start: Start | None = None) -> EncoderDecoder:
    """A new model, or the one to start from, with rows for the words that are new to it; `start`, if read already."""
    torch.manual_seed(recipe.train.seed)
    if recipe.start is not None:
        start = start or load_start(recipe.start)
        return with_dropout(grow_vocabulary(start.model, start.tokenizers, tokenizers), recipe.dropout)
    model = build(model_settings(recipe, tokenizers.source.vocab_size, tokenizers.target.vocab_size, tokenizers.joint))
    assert isinstance(model, EncoderDecoder)
    return model


def check_model(recipe: TranslateRecipe) -> None:
    """Refuse, before there is a vocabulary, what is no model: where the data chooses the size, at none of them."""
    refused = []
    for size in SIZES if recipe.size == "auto" else (recipe.size,):
        try:
            model_settings(replace(recipe, size=size), MADE_UP, MADE_UP, recipe.tokenizer.joint)
        except UserError as error:
            refused.append(error)
        else:
            return
    raise refused[0]


def model_settings(recipe: TranslateRecipe, n_source: int, n_target: int, joint: bool = True) -> EncoderDecoderSettings:
    """The size, the recipe's changes to it, and vocabularies of n_source and n_target tokens."""
    name = full_name(recipe.size, "translate")
    data = config.merge(load_size_data(name), recipe.model)
    data = config.merge(data, {"source": {"vocab_size": n_source}, "target": {"vocab_size": n_target}})
    data = dropping(data, recipe.dropout)
    if not joint:
        data["tie_source_target"] = False
    settings: ModelSettings = config.parse(ModelSettings, data, f"The model {recipe.size}")
    if not isinstance(settings, EncoderDecoderSettings):
        raise UserError(f"The size {name} is no encoder-decoder.", "Choose tiny, small, base or big.")
    return settings
