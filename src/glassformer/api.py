"""The Python face: models and engines put together."""

from pathlib import Path
from typing import get_args

from glassformer.decode.options import DecodeOptions
from glassformer.errors import require
from glassformer.fast.choose import Engine, Precision, choose_backend
from glassformer.fast.ctranslate2 import CTranslate2Backend
from glassformer.model import EncoderDecoder
from glassformer.tasks.backend import Backend
from glassformer.tasks.built_in import find_model
from glassformer.tasks.model_dir import load_model
from glassformer.tasks.translator import Translator


def load(model: str | Path, engine: Engine = "auto", precision: Precision = "auto") -> Translator:
    """A model directory, or a built-in model by name, with the fastest engine that can run it."""
    for name, given, known in (("engine", engine, get_args(Engine)), ("precision", precision, get_args(Precision))):
        require(given in known, f"There is no {name} {given!r}.", f"Choose {', '.join(known)}.")
    loaded = load_model(find_model(model))
    backends: dict[bool, Backend] = {}

    def choose(options: DecodeOptions, with_phrases: bool) -> Backend:
        assert isinstance(loaded.model, EncoderDecoder)
        require(
            not with_phrases or engine != "ctranslate2",
            "CTranslate2 cannot make sure that phrases are contained.",
            "Set the engine to torch, or to auto.",
        )
        fast = CTranslate2Backend.supports(options) and not with_phrases
        if fast not in backends:
            backends[fast] = choose_backend(loaded.model, options, "torch" if with_phrases else engine, precision)
        return backends[fast]

    return Translator(loaded, choose)
