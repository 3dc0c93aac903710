"""The Python face: models and engines put together."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import torch

from glassformer.decode.options import DecodeOptions
from glassformer.errors import require
from glassformer.fast.choose import Engine, Precision, choose_backend, choose_decoder
from glassformer.fast.ctranslate2_whisper import CTranslate2Whisper
from glassformer.fast.packed import choose_states
from glassformer.model import DecoderOnly, EncoderDecoder
from glassformer.tasks.backend import Backend
from glassformer.tasks.built_in import find_model
from glassformer.tasks.classifier import Classifier
from glassformer.tasks.completer import Completer
from glassformer.tasks.embedder import Embedder
from glassformer.tasks.filler import Filler
from glassformer.tasks.model_dir import LoadedModel, load_model
from glassformer.tasks.transcriber import Transcriber
from glassformer.tasks.translator import Translator
from glassformer.tasks.whisper import WhisperTranscriber, whisper_marks

# Each task has its own face.
Face = Translator | Completer | Classifier | Filler | Transcriber | WhisperTranscriber | Embedder


def load(
    model: str | Path, engine: Engine = "auto", precision: Precision = "auto", others: Sequence[str | Path] = ()
) -> Face:
    """A model directory, or a built-in model by name, with the fastest engine that can run it.

    A translator may answer together with `others`.
    """
    loaded = _load(model, engine, precision)
    if others:
        return _translator(loaded, engine, precision, others)
    if loaded.task == "complete":
        return _completer(loaded, precision)
    if loaded.task == "classify":
        return Classifier(loaded)
    if loaded.task == "fill":
        return Filler(loaded)
    if loaded.task == "transcribe":
        return _transcriber(loaded, engine, precision)
    if loaded.task == "embed":
        return _embedder(loaded)
    return _translator(loaded, engine, precision)


def load_transcriber(
    model: str | Path,
    engine: Engine = "auto",
    precision: Precision = "auto",
    language: str | None = None,
    task: str = "transcribe",
) -> Transcriber | WhisperTranscriber:
    """The same where nothing but a recogniser will do; language and task are for Whisper."""
    loaded = _load(model, engine, precision)
    require(
        "whisper" in loaded.about or (engine in ("auto", "torch") and precision in ("auto", "fp32")),
        f"{loaded.path} was trained here: torch in fp32 is the only engine that runs it.",
        "Leave out --engine and --precision.",
    )
    return _transcriber(loaded, engine, precision, language, task)


def load_classifier(model: str | Path) -> Classifier:
    """The same where nothing but a classifier will do."""
    return Classifier(load_model(find_model(model)))


def load_embedder(model: str | Path) -> Embedder:
    """One vector a text from any model that reads text."""
    return _embedder(load_model(find_model(model)))


def load_filler(model: str | Path) -> Filler:
    """The same where nothing but a model for blanks will do."""
    return Filler(load_model(find_model(model)))


def load_translator(
    model: str | Path, engine: Engine = "auto", precision: Precision = "auto", others: Sequence[str | Path] = ()
) -> Translator:
    """The same where nothing but a translator will do."""
    return _translator(_load(model, engine, precision), engine, precision, others)


def load_completer(model: str | Path, precision: Precision = "auto", draft: str | Path | None = None) -> Completer:
    """The same where nothing but a language model will do; a small `draft` of the same vocabulary makes it faster."""
    ahead = None if draft is None else load_completer(draft, precision)
    return _completer(_load(model, "auto", precision), precision, ahead)


def _embedder(loaded: LoadedModel) -> Embedder:
    return Embedder(loaded, choose_states(loaded.model), torch.get_num_threads())


def _load(model: str | Path, engine: Engine, precision: Precision) -> LoadedModel:
    for name, given, known in (("engine", engine, get_args(Engine)), ("precision", precision, get_args(Precision))):
        require(given in known, f"There is no {name} {given!r}.", f"Choose {', '.join(known)}.")
    return load_model(find_model(model))


def _transcriber(
    loaded: LoadedModel,
    engine: Engine = "auto",
    precision: Precision = "auto",
    language: str | None = None,
    task: str = "transcribe",
) -> Transcriber | WhisperTranscriber:
    if "whisper" in loaded.about:
        assert isinstance(loaded.model, EncoderDecoder)
        require(engine != "c++", "The C++ engine runs no Whisper.", "Set the engine to ctranslate2, torch or auto.")
        if engine == "torch":
            return WhisperTranscriber(loaded, None, language, task)
        kind: Literal["float32", "int8"] = "float32" if precision == "fp32" else "int8"
        fast = CTranslate2Whisper(loaded.model, loaded.tokenizer, whisper_marks(loaded), kind)
        return WhisperTranscriber(loaded, fast, language, task)
    require(
        language is None and task == "transcribe",
        f"{loaded.path} was trained here: it has no languages and tasks to choose from.",
        "Leave out --language and --task.",
    )
    return Transcriber(loaded)


def _completer(loaded: LoadedModel, precision: Precision, draft: Completer | None = None) -> Completer:
    if not isinstance(loaded.model, DecoderOnly):
        return Completer(loaded)  # says what is wrong
    return Completer(loaded, *choose_decoder(loaded.model, precision), draft)


def _translator(
    loaded: LoadedModel, engine: Engine, precision: Precision, others: Sequence[str | Path] = ()
) -> Translator:
    require(not isinstance(others, str), f"others is one string, {others!r}.", "Give a list of models.")
    models = [_alike(load_model(find_model(other)), loaded) for other in others]
    backends: dict[tuple[bool, bool], Backend] = {}

    def choose(options: DecodeOptions, with_phrases: bool) -> Backend:
        assert isinstance(loaded.model, EncoderDecoder)
        require(
            not with_phrases or engine in ("auto", "torch"),
            f"The engine {engine} cannot make sure that phrases are contained.",
            "Set the engine to torch, or to auto.",
        )
        kind = options.sample, with_phrases
        if kind not in backends:
            name = "torch" if with_phrases else engine
            backends[kind] = choose_backend(loaded.model, options, name, precision, models)
        return backends[kind]

    return Translator(loaded, choose)


def _alike(other: LoadedModel, loaded: LoadedModel) -> EncoderDecoder:
    """A model that may answer together with the loaded one."""
    for each in (loaded, other):
        require(
            each.task == "translate",
            f"{each.path} is a model for {each.task}: only translators answer together.",
            "Leave out --with.",
        )
    for side, own, wanted in (
        ("source", other.source_tokenizer, loaded.source_tokenizer),
        ("target", other.tokenizer, loaded.tokenizer),
    ):
        require(
            own.to_json() == wanted.to_json(),
            f"{other.path} has another {side} vocabulary than {loaded.path}, so that they cannot answer together.",
            "Train both on the same pairs with another train.seed, or from one with --from.",
        )
    assert isinstance(other.model, EncoderDecoder)
    return other.model
