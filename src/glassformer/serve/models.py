"""The models that a server offers, by name."""

import threading
import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import torch

from glassformer.api import Face, load
from glassformer.data.documents import Message
from glassformer.data.tokenizer import Tokenizer
from glassformer.decode.options import DecodeOptions
from glassformer.errors import require
from glassformer.fast.choose import Engine, Precision
from glassformer.fast.packed import choose_states
from glassformer.model.settings import TokensSettings
from glassformer.tasks.embedder import Embedder
from glassformer.tasks.model_dir import LoadedModel
from glassformer.tasks.template import talk_ids
from glassformer.tasks.translator import Translator


@dataclass
class Served:
    """A model under its name."""

    name: str
    face: Face
    created: int = field(default_factory=lambda: int(time.time()))
    # Of a translator that does not say so itself: from which and into which.
    pair: tuple[str, str] | None = None
    # One talk at a time is put into tokens.
    talking: threading.Lock = field(default_factory=threading.Lock)

    @property
    def loaded(self) -> LoadedModel:
        return self.face.loaded

    @property
    def task(self) -> str:
        return self.loaded.task

    @property
    def title(self) -> str:
        return str(self.loaded.about.get("title", ""))

    @property
    def languages(self) -> tuple[str, str] | None:
        """Of a translator: from which and into which."""
        given = list(self.pair) if self.pair is not None else self.loaded.about.get("languages")
        if isinstance(given, list) and len(given) == 2 and all(isinstance(code, str) for code in given):
            return given[0], given[1]
        return None

    @property
    def reads_text(self) -> bool:
        return isinstance(self.loaded.model.settings.source, TokensSettings)

    @property
    def can_talk(self) -> bool:
        words = self.loaded.words
        return self.task == "complete" and words is not None and words.marks.chat_template is not None

    @cached_property
    def talker(self) -> Tokenizer:
        """A copy, as it reads marks as marks, while the other reads them as text for all else."""
        return Tokenizer(deepcopy(self.loaded.tokenizer.core), self.loaded.tokenizer.marks)

    def talk(self, messages: Sequence[Message]) -> list[int]:
        """A talk in tokens, up to where the model answers; not for the server's own thread, since it may wait."""
        with self.talking:
            return talk_ids(self.talker, messages, answering=True)

    @cached_property
    def embedder(self) -> Embedder:
        """Any model that reads text makes vectors too."""
        if isinstance(self.face, Embedder):
            return self.face
        return Embedder(self.loaded, choose_states(self.loaded.model), torch.get_num_threads())


def load_models(given: list[str], engine: Engine = "auto", precision: Precision = "auto") -> dict[str, Served]:
    """Folders and names of built-in models, each as it is or as `name=folder`."""
    require(bool(given), "There is no model to serve.", "Name at least one: a folder, or a built-in model.")
    models: dict[str, Served] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or Path(text).exists():
            name, path = Path(text).resolve().name if Path(text).exists() else text, text
        require(bool(name and path), f"{text!r} names no model.", "Say name=folder.")
        require(
            name not in models,
            f"Two models are called {name!r}.",
            f"Give one of them another name: another-name={path}.",
        )
        models[name] = Served(name, load(path, engine, precision))
        if isinstance(face := models[name].face, Translator):
            face.engine_name(DecodeOptions())  # makes the engine now, not when the first client waits
    return models


def name_languages(models: dict[str, Served], given: list[str]) -> None:
    """What translators translate, as `name=en,de`."""
    for text in given:
        name, _, codes = text.partition("=")
        require(name in models, f"There is no model {name!r} in {text!r}.", f"Name one of {', '.join(models)}.")
        require(models[name].task == "translate", f"The model {name!r} is no translator.", "Leave out its languages.")
        pair = [code.strip() for code in codes.split(",")]
        require(
            len(pair) == 2 and all(pair),
            f"{text!r} does not say from which language into which a translator translates.",
            f"Say {name}=en,de.",
        )
        models[name].pair = (pair[0], pair[1])
