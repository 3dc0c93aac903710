"""What runs on plain text share, to go on (complete) or to fill blanks (fill): settings, files, tokens on disk."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import torch

from glassformer import config
from glassformer.data.documents import DocumentFiles, DocumentReport, Part, check_documents, read_documents
from glassformer.data.files import write_text
from glassformer.data.store import TokenStore, write_pieces
from glassformer.data.tokenizer import (
    Tokenizer,
    TokenizerKind,
    automatic_size,
    load_tokenizer,
    train_tokenizer,
    with_mask,
)
from glassformer.data.windows import Starts, Stream
from glassformer.errors import require
from glassformer.model import Transformer, build, choose_device
from glassformer.model.lora import LoraSettings, add_lora
from glassformer.model.settings import ModelSettings, Settings
from glassformer.sizes import full_name, load_size_data
from glassformer.tasks.built_in import find_model
from glassformer.tasks.dropout import dropping, with_dropout
from glassformer.tasks.model_dir import load_model
from glassformer.tasks.run import Recipe, Run, check_start
from glassformer.tasks.template import talk_ids
from glassformer.train.settings import TrainSettings

KINDS = ("bpe", "word", "char", "byte")
HELD_OUT = 0.1  # of a text without a validation file: its end, as nobody can know the end from the beginning
MOST_HELD_OUT = 2_000_000  # characters
SAMPLED = 50_000_000  # characters that a vocabulary is learned from
LEAST = 1000  # characters to learn from


@dataclass(frozen=True, kw_only=True)
class TextTokens(Settings):
    # bpe, char, byte, word, or the path of a tokenizer.json.
    kind: str = "bpe"
    # None: grows with the text.
    size: int | None = None


@dataclass(frozen=True, kw_only=True)
class TextTraining(TrainSettings):
    """Training as language models are trained: the loss is the true one, and weights decay."""

    label_smoothing: float = 0.0
    weight_decay: float = 0.1
    batch_tokens: int = 4096


@dataclass(frozen=True, kw_only=True)
class TextRecipe(Recipe):
    train: TextTraining = field(default_factory=TextTraining)
    # tiny, small, base, big, any name from `glassformer sizes`, or auto: from the amount of text.
    size: str = "auto"
    # Changes to the size, in its own words.
    model: dict[str, Any] = field(default_factory=dict)
    # One dial for the front-end and the stack; None leaves the size's own.
    dropout: float | None = None
    tokenizer: TextTokens = field(default_factory=TextTokens)
    # Tokens that the model sees at once.
    context: int = 256
    # With `start`: leave its weights as they are and train narrow detours beside them.
    lora: LoraSettings | None = None

    def __post_init__(self) -> None:
        self._at_least(2, "context")
        require(
            self.lora is None or self.start is not None,
            "LoRA changes a trained model, but none is given to start from.",
            "Name one with --from.",
        )

    @property
    def gentle(self) -> bool:
        return self.start is not None and self.lora is None


R = TypeVar("R", bound=TextRecipe)


@dataclass(frozen=True)
class TextFiles:
    train: DocumentFiles
    valid: DocumentFiles | None  # None: hold the end out


@dataclass(frozen=True)
class TextData:
    """A text as one stream of tokens."""

    tokens: TokenStore
    tokenizer: Tokenizer

    @property
    def stream(self) -> Stream:
        return self.tokens.ids

    @functools.cached_property
    def documents(self) -> Starts:
        """Where documents begin; where the vocabulary has no mark for it, with the end of the one before."""
        ends = self.tokens.ends[:-1]
        return np.append(0, ends if self.tokenizer.marks.start is not None else ends - 1)


@dataclass(frozen=True)
class TextTask:
    """What differs between the tasks."""

    name: str
    family: str  # of its sizes
    shape: Literal["decoder_only", "encoder_only"]
    has_blanks: bool = False  # the vocabulary needs a mark for them


def check_recipe(task: TextTask, recipe: TextRecipe, device: str) -> None:
    """Refuse what can be refused before the data is read."""
    choose_device(device)
    kind = recipe.tokenizer.kind
    require(
        kind in KINDS or Path(kind).is_file(),
        f"There is no tokenizer {kind!r}.",
        f"Choose {', '.join(KINDS)}, or give a tokenizer.json.",
    )
    if recipe.start is None:
        if recipe.size != "auto":
            model_settings(task, recipe, 300)
        return
    loaded = load_model(find_model(recipe.start))
    require(
        loaded.task == task.name,
        f"{recipe.start} is a model for {loaded.task}: one for {task.name} cannot start from it.",
        f"Start from a model made by `glassformer train {task.name}` or `glassformer import`.",
    )
    shaped = recipe.size != "auto" or bool(recipe.model) or recipe.tokenizer != TextTokens()
    check_start(recipe.start, shaped, recipe.lora is not None and loaded.is_adapted)


def check_texts(files: DocumentFiles) -> DocumentReport:
    """What the files hold; too little is refused."""
    found = check_documents(files)
    require(
        found.n_characters >= LEAST,
        f"There are only {found.n_characters:,} characters to learn from.",
        f"Give at least {LEAST:,}, better a million.",
    )
    return found


def resolved(recipe: R, found: DocumentReport) -> R:
    """The recipe with the size that suits the text: larger models need more than they have time to forget."""
    if recipe.size != "auto" or recipe.start is not None:
        return recipe
    size = "tiny" if found.n_bytes < 20_000_000 else "small" if found.n_bytes < 500_000_000 else "base"
    return replace(recipe, size=size)


def make_model(task: TextTask, recipe: TextRecipe, vocab_size: int) -> Transformer:
    """A new model in the recipe's shape, or the one to start from, maybe with detours beside its weights."""
    torch.manual_seed(recipe.train.seed)
    if recipe.start is None:
        return build(model_settings(task, recipe, vocab_size))
    model = with_dropout(load_model(find_model(recipe.start)).model, recipe.dropout)
    if recipe.lora is not None:
        add_lora(model, recipe.lora)
    return model


def model_settings(task: TextTask, recipe: TextRecipe, vocab_size: int) -> ModelSettings:
    """The size, the recipe's changes to it, and a vocabulary of so many tokens."""
    size = load_size_data(full_name(recipe.size, task.family))
    require(
        size["kind"] == task.shape,
        f"The size {recipe.size} is of another shape than models for {task.name}.",
        "Choose tiny, small, base or big.",
    )
    data = config.merge(config.merge(size, recipe.model), {"source": {"vocab_size": vocab_size}})
    settings: ModelSettings = config.parse(ModelSettings, dropping(data, recipe.dropout), f"The model {recipe.size}")
    return settings


def prepare(
    task: TextTask, files: TextFiles, found: DocumentReport, recipe: TextRecipe, run: Run, identity: str
) -> tuple[TextData, TextData]:
    """Tokens on disk; what an earlier start of the same run made is used again."""
    path = run.out / "tokenizer.json"
    started = None if recipe.start is None else load_model(find_model(recipe.start)).tokenizer
    marks = None if started is None or started.is_ours else started.marks
    if run.is_prepared(identity, recipe):
        tokenizer = load_tokenizer(path, marks)
        stores = [TokenStore(run.data / part) for part in ("train", "valid")]
        return TextData(stores[0], tokenizer), TextData(stores[1], tokenizer)
    train, valid = _divide(files, found)
    tokenizer = started or _make_tokenizer(train, recipe.tokenizer, found, task.has_blanks)
    write_text(path, tokenizer.to_json())
    stores = [
        write_pieces(run.data / part, encoded(parts(), tokenizer), tokenizer.vocab_size)
        for part, parts in (("train", train), ("valid", valid))
    ]
    for store, name in zip(stores, ("training", "validation"), strict=True):
        require(len(store.ids) > 2, f"There is hardly any {name} text.", "Give more text.")
    n_train, n_valid = (len(store.ids) for store in stores)
    run.report.say(f"Vocabulary: {tokenizer.vocab_size:,} tokens. Training: {n_train:,}. Validation: {n_valid:,}.")
    run.prepared(identity)
    return TextData(stores[0], tokenizer), TextData(stores[1], tokenizer)


def encoded(parts: Iterator[Part], tokenizer: Tokenizer) -> Iterator[tuple[list[int], bool]]:
    """Each part in tokens, with the marks where its document begins and ends, and whether it ends there.

    A talk is put down as the model's template says.
    """
    marks, begins = tokenizer.marks, True
    for part in parts:
        if part.talk is not None:
            yield talk_ids(tokenizer, part.talk), True
            continue
        ids = tokenizer.encode(part.text)
        if begins and marks.start is not None:
            ids = [marks.start, *ids]
        yield [*ids, marks.ends[0]] if part.ends else ids, part.ends
        begins = part.ends


Parts = Callable[[], Iterator[Part]]


def _divide(files: TextFiles, found: DocumentReport) -> tuple[Parts, Parts]:
    """Training and validation text; without a validation file, the end of all text is held out."""
    valid = files.valid
    if valid is not None:
        check_documents(valid)
        return lambda: read_documents(files.train), lambda: read_documents(valid)
    border = found.n_characters - round(min(HELD_OUT * found.n_characters, MOST_HELD_OUT))
    return lambda: _between(files.train, 0, border), lambda: _between(files.train, border, found.n_characters)


def _between(files: DocumentFiles, begin: int, end: int) -> Iterator[Part]:
    """The characters from begin to end of all documents one after the other; what is cut there ends there."""
    place = 0
    for part in read_documents(files):
        first, last = max(begin - place, 0), min(end - place, len(part.text))
        if first < last:
            # A talk is whole, or it is on the side where it begins.
            if part.talk is None:
                yield Part(part.text[first:last], part.ends or place + last == end)
            elif first == 0:
                yield part
        place += len(part.text)


def _make_tokenizer(train: Parts, settings: TextTokens, found: DocumentReport, has_blanks: bool) -> Tokenizer:
    if settings.kind not in KINDS:
        tokenizer = load_tokenizer(Path(settings.kind))
    else:
        kind: TokenizerKind = settings.kind  # type: ignore[assignment]
        size = settings.size or automatic_size(found.n_characters, kind)
        tokenizer = train_tokenizer(_beginning(train()), kind, size, sentences=False)
    return with_mask(tokenizer) if has_blanks else tokenizer


def _beginning(parts: Iterator[Part]) -> Iterator[str]:
    n = 0
    for part in parts:
        if n >= SAMPLED:
            return
        n += len(part.text)
        yield part.text
