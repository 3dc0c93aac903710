"""The model that a transcription run trains: new in the recipe's shape, or a trained one that goes on."""

from dataclasses import dataclass

import torch

from glassformer import config
from glassformer.data.features import FeatureSettings
from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import require
from glassformer.model import EncoderDecoder, build
from glassformer.model.settings import EncoderDecoderSettings, ModelSettings
from glassformer.sizes import full_name, load_size_data
from glassformer.tasks.built_in import find_model
from glassformer.tasks.dropout import dropping, with_dropout
from glassformer.tasks.model_dir import load_model
from glassformer.tasks.transcribe import TranscribeRecipe


@dataclass(frozen=True)
class Start:
    model: EncoderDecoder
    tokenizer: Tokenizer
    features: FeatureSettings
    knows_ctc: bool  # else its head for CTC was never trained


def load_start(name: str) -> Start:
    """A trained recogniser to start from."""
    loaded = load_model(find_model(name))
    ours = isinstance(loaded.model, EncoderDecoder) and loaded.task == "transcribe" and loaded.tokenizer.is_ours
    require(ours, f"{name} is not a recogniser trained here.", "Start from one made by `glassformer train transcribe`.")
    assert isinstance(loaded.model, EncoderDecoder)
    features: FeatureSettings = config.parse(FeatureSettings, loaded.about.get("features", {}))
    knows_ctc = loaded.model.ctc is not None and loaded.about.get("ctc", 0) > 0
    return Start(loaded.model, loaded.tokenizer, features, knows_ctc)


def make_model(recipe: TranscribeRecipe, vocab_size: int) -> EncoderDecoder:
    torch.manual_seed(recipe.train.seed)
    if recipe.start is not None:
        return with_dropout(load_start(recipe.start).model, recipe.dropout)
    assert recipe.features is not None
    data = config.merge(load_size_data(full_name(recipe.size, "transcribe")), recipe.model)
    hears = data.get("kind") == "encoder_decoder" and data.get("source", {}).get("kind") == "frames"
    require(hears, f"The size {recipe.size} is no encoder-decoder that hears.", "Choose tiny, small, base or big.")
    source = {"n_features": recipe.features.n_features}
    data = config.merge(data, {"source": source, "target": {"vocab_size": vocab_size}})
    settings: ModelSettings = config.parse(ModelSettings, dropping(data, recipe.dropout), f"The model {recipe.size}")
    assert isinstance(settings, EncoderDecoderSettings)
    require(recipe.ctc == 0 or settings.ctc is not None, "ctc is above 0, but the model has no CTC head.", "Set ctc=0.")
    model = build(settings)
    assert isinstance(model, EncoderDecoder)
    return model
