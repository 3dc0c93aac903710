"""From text files to a finished language model: check, prepare, train, choose, save."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from glassformer import config
from glassformer.data.documents import DocumentFiles, DocumentReport, Part, check_documents, read_documents
from glassformer.data.files import alone_in, write_text
from glassformer.data.pairs import fingerprint
from glassformer.data.store import TokenStore, write_store
from glassformer.data.tokenizer import Tokenizer, TokenizerKind, automatic_size, load_tokenizer, train_tokenizer
from glassformer.errors import UserError, require
from glassformer.model import DecoderOnly, build, choose_device, count_parameters
from glassformer.model.lora import add_lora
from glassformer.model.settings import DecoderOnlySettings, ModelSettings
from glassformer.sizes import load_size_data, size_names
from glassformer.tasks.built_in import find_model
from glassformer.tasks.complete import CompleteJob, CompleteRecipe, TextData, TextTokens, automatic_complete_size
from glassformer.tasks.model_dir import load_model, save_adapter, save_model
from glassformer.tasks.plan import automatic_steps
from glassformer.tasks.run import Run, check_folder, identity_of
from glassformer.train.checkpoint import trained
from glassformer.train.machine import keep_memory
from glassformer.train.report import Report

KINDS = ("bpe", "word", "char", "byte")
HELD_OUT = 0.1  # of a text without a validation file: its end, as nobody can know the end from the beginning
MOST_HELD_OUT = 2_000_000  # characters
SAMPLED = 50_000_000  # characters that a vocabulary is learned from
LEAST = 1000  # characters to learn from


@dataclass(frozen=True)
class TextFiles:
    train: DocumentFiles
    valid: DocumentFiles | None  # None: hold the end out


def train_complete(
    files: TextFiles,
    recipe: CompleteRecipe,
    out: Path,
    resume: bool = False,
    device: str = "auto",
    quiet: bool = False,
    tensorboard: bool = False,
) -> bool:
    """Train in the folder `out`; False if the run was stopped before its end and can be taken up."""
    began = time.monotonic()
    keep_memory()
    check_folder(out, resume)
    _check_recipe(recipe, device)
    found = check_documents(files.train)  # before anything is written
    require(
        found.n_characters >= LEAST,
        f"There are only {found.n_characters:,} characters to learn from.",
        f"Give at least {LEAST:,}, better a million.",
    )
    with alone_in(out):
        return _train(files, found, recipe, device, Run(out, resume, Report(out, quiet, tensorboard), began))


def _train(files: TextFiles, found: DocumentReport, recipe: CompleteRecipe, device: str, run: Run) -> bool:
    say, out = run.report.say, run.out
    say(str(found))
    recipe = _resolve(recipe, found)
    contents = (fingerprint(f.paths) if f is not None else None for f in (files.train, files.valid))
    identity = identity_of(recipe, contents)
    train, valid = _prepare(files, found, recipe, run, identity)
    model = make_model(recipe, train.tokenizer.vocab_size).to(choose_device(device))
    kind = recipe.size if recipe.start is None else f"as {recipe.start}"
    n_trained = sum(p.numel() for p in trained(model).values())
    only = f" ({n_trained:,} of them trained)" if recipe.lora is not None else ""
    say(f"Model: {kind}, {count_parameters(model):,} parameters{only}, {len(train.stream):,} tokens to learn from.")
    job = CompleteJob(model, train, valid, recipe)
    steps = automatic_steps(len(train.stream), len(job.plan_epoch(0)))
    finished = run.train(job, recipe, identity, steps)
    if finished is None:
        return False
    finished.about.update(context=recipe.context, bytes=found.n_bytes, documents=found.n_documents)
    what = f"A language model trained by Glassformer; size {recipe.size}, {recipe.tokenizer.kind} tokens."
    run.write_card(what, f'glassformer complete {out.name} "…"', finished)
    if recipe.lora is not None and recipe.start is not None:
        save_adapter(out, "complete", model, recipe.lora, recipe.start, finished.about)
    else:
        save_model(out, "complete", model, train.tokenizer, about=finished.about)
    run.end(finished, f'glassformer complete {out} "…"')
    return True


def make_model(recipe: CompleteRecipe, vocab_size: int) -> DecoderOnly:
    """A new model in the recipe's shape, or the one to start from."""
    torch.manual_seed(recipe.train.seed)
    if recipe.start is not None:
        started = load_model(find_model(recipe.start)).model
        assert isinstance(started, DecoderOnly)
        if recipe.lora is not None:
            add_lora(started, recipe.lora)
        return started
    model = build(model_settings(recipe, vocab_size))
    assert isinstance(model, DecoderOnly)
    return model


def model_settings(recipe: CompleteRecipe, vocab_size: int) -> DecoderOnlySettings:
    """The size, the recipe's changes to it, and a vocabulary of so many tokens."""
    size = load_size_data(_size_name(recipe.size))
    require(
        size["kind"] == "decoder_only", f"The size {recipe.size} is no decoder.", "Choose tiny, small, base or big."
    )
    data = config.merge(size, recipe.model)
    data = config.merge(data, {"source": {"vocab_size": vocab_size}})
    if recipe.dropout is not None:
        data = config.merge(data, {part: {"dropout": recipe.dropout} for part in ("source", "decoder")})
    settings: ModelSettings = config.parse(ModelSettings, data, f"The model {recipe.size}")
    assert isinstance(settings, DecoderOnlySettings)
    return settings


def _size_name(size: str) -> str:
    """tiny means complete-tiny; a full name is taken as it is."""
    short = [name.removeprefix("complete-") for name in size_names() if name.startswith("complete-")]
    if size not in short and size not in size_names():
        raise UserError(f"There is no size {size!r}.", f"Choose {', '.join(short)}, or see `glassformer sizes`.")
    return f"complete-{size}" if size in short else size


def _check_recipe(recipe: CompleteRecipe, device: str) -> None:
    """What can be refused before the data is read."""
    choose_device(device)
    kind = recipe.tokenizer.kind
    require(
        kind in KINDS or Path(kind).is_file(),
        f"There is no tokenizer {kind!r}.",
        f"Choose {', '.join(KINDS)}, or give a tokenizer.json.",
    )
    if recipe.start is None:
        if recipe.size != "auto":
            model_settings(recipe, 300)
        return
    loaded = load_model(find_model(recipe.start))
    require(
        loaded.task == "complete",
        f"{recipe.start} is a model for {loaded.task}: a language model cannot start from it.",
        "Start from a model made by `glassformer train complete` or `glassformer import`.",
    )
    require(
        recipe.lora is None or not loaded.is_adapted,
        f"{recipe.start} is an adapter itself.",
        "Put it into its model first: glassformer export … --to glassformer.",
    )
    given = recipe.size != "auto" or recipe.model or recipe.tokenizer != TextTokens()
    require(
        not given,
        f"Training starts from {recipe.start}, whose size, shape and vocabulary are given.",
        "Leave out the size, model and tokenizer settings.",
    )


def _resolve(recipe: CompleteRecipe, found: DocumentReport) -> CompleteRecipe:
    size = automatic_complete_size(found.n_bytes) if recipe.size == "auto" and recipe.start is None else recipe.size
    return replace(recipe, size=size)


def _prepare(
    files: TextFiles, found: DocumentReport, recipe: CompleteRecipe, run: Run, identity: str
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
    tokenizer = started or _make_tokenizer(train, recipe.tokenizer, found)
    write_text(path, tokenizer.to_json())
    stores = [
        write_store(run.data / part, encoded(parts(), tokenizer), tokenizer.vocab_size)
        for part, parts in (("train", train), ("valid", valid))
    ]
    for store, name in zip(stores, ("training", "validation"), strict=True):
        require(len(store.ids) > 2, f"There is hardly any {name} text.", "Give more text.")
    n_train, n_valid = (len(store.ids) for store in stores)
    run.report.say(f"Vocabulary: {tokenizer.vocab_size:,} tokens. Training: {n_train:,}. Validation: {n_valid:,}.")
    run.prepared(identity)
    return TextData(stores[0], tokenizer), TextData(stores[1], tokenizer)


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
            yield Part(part.text[first:last], part.ends or place + last == end)
        place += len(part.text)


def _make_tokenizer(train: Parts, settings: TextTokens, found: DocumentReport) -> Tokenizer:
    if settings.kind not in KINDS:
        return load_tokenizer(Path(settings.kind))
    kind: TokenizerKind = settings.kind  # type: ignore[assignment]
    size = settings.size or (2**16 if kind == "char" else automatic_size(found.n_characters))
    return train_tokenizer(_beginning(train()), kind, size, sentences=False)


def _beginning(parts: Iterator[Part]) -> Iterator[str]:
    n = 0
    for part in parts:
        if n >= SAMPLED:
            return
        n += len(part.text)
        yield part.text


def encoded(parts: Iterator[Part], tokenizer: Tokenizer) -> Iterator[list[int]]:
    """Each part in tokens, with the marks where its document begins and ends."""
    marks, begins = tokenizer.marks, True
    for part in parts:
        ids = tokenizer.encode(part.text)
        if begins and marks.start is not None:
            ids = [marks.start, *ids]
        yield [*ids, marks.ends[0]] if part.ends else ids
        begins = part.ends
