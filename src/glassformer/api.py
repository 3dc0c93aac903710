"""The Python face: models and engines put together."""

import functools
from pathlib import Path

from glassformer.decode.options import DecodeOptions
from glassformer.fast.choose import choose_backend
from glassformer.tasks.backend import Backend
from glassformer.tasks.built_in import find_model
from glassformer.tasks.model_dir import load_model
from glassformer.tasks.translator import Translator


def load(model: str | Path, engine: str = "auto", precision: str = "auto") -> Translator:
    """A model directory, or a built-in model by name, with the fastest engine that can run it."""
    loaded = load_model(find_model(model))

    @functools.cache
    def choose(options: DecodeOptions) -> Backend:
        return choose_backend(
            loaded.model, loaded.tokenizer, options, engine, precision, source_tokenizer=loaded.source_tokenizer
        )

    return Translator(loaded, choose)
