"""From files of pairs to a finished model directory: check, prepare, train, choose, save."""

import contextlib
import hashlib
import json
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

from glassformer import __version__, config
from glassformer.data.check import PairReport, check_pairs, explain
from glassformer.data.files import alone_in, write_text
from glassformer.data.pairs import Pair, PairFiles, fingerprint
from glassformer.data.split import hold_out
from glassformer.data.tokenizer import load_tokenizer
from glassformer.errors import require
from glassformer.model import EncoderDecoder, choose_device, count_parameters
from glassformer.sizes import load_size_data
from glassformer.tasks.built_in import find_model
from glassformer.tasks.grow import extend_tokenizers
from glassformer.tasks.model_dir import save_model
from glassformer.tasks.plan import automatic_steps
from glassformer.tasks.prepare import Pairs, Tokenizers, encode_pairs, load_pairs, make_tokenizers, usable_pairs
from glassformer.tasks.translate import (
    PairData,
    TokenizerSettings,
    TranslateJob,
    TranslateRecipe,
    automatic_translate_size,
)
from glassformer.tasks.translate_model import load_start, make_model, size_name
from glassformer.train.finish import choose_weights, draw_losses
from glassformer.train.loop import Trainer, Validation
from glassformer.train.machine import keep_memory
from glassformer.train.report import Report
from glassformer.train.run_files import begun_otherwise

FEW_STEPS = 200  # a model that made fewer has hardly begun


@dataclass(frozen=True)
class TrainingFiles:
    train: PairFiles
    valid: PairFiles | None  # None: hold some of the training pairs out


def train_translate(
    files: TrainingFiles,
    recipe: TranslateRecipe,
    out: Path,
    resume: bool = False,
    device: str = "auto",
    quiet: bool = False,
    tensorboard: bool = False,
) -> bool:
    """Train in the folder `out`; False if the run was stopped before its end and can be taken up."""
    began = time.monotonic()
    keep_memory()
    _check_folder(out, resume)
    _check_recipe(recipe, device)
    found = check_pairs(files.train, files.valid)  # before anything is written
    with alone_in(out):
        return _train(files, found, recipe, out, resume, device, Report(out, quiet, tensorboard), began)


def _train(
    files: TrainingFiles,
    found: PairReport,
    recipe: TranslateRecipe,
    out: Path,
    resume: bool,
    device: str,
    report: Report,
    began: float,
) -> bool:
    report.say(explain(found))
    recipe = _resolve(recipe, found)
    identity = _identity(files, recipe)
    data = _prepare(files, recipe, out, identity, report)
    model = make_model(recipe, data.tokenizers).to(choose_device(device))
    kind = recipe.size if recipe.start is None else f"as {recipe.start}"
    report.say(f"Model: {kind}, {count_parameters(model):,} parameters, {len(data.train):,} pairs to learn from.")
    job = TranslateJob(model, data.train, data.valid, recipe.train)
    if recipe.train.steps is None and recipe.train.minutes is None:
        n_tokens = int(data.train.target.tokens.lengths.sum())
        recipe = replace(recipe, train=replace(recipe.train, steps=automatic_steps(n_tokens, len(job.plan_epoch(0)))))
    trainer = Trainer(job, recipe.train, out, identity, report)
    if resume:
        going = trainer.resume()
        report.say(
            f"Going on from step {trainer.progress.step}." if going else "There is no checkpoint yet: beginning."
        )
    if trainer.progress.step == 0:
        trainer.progress.seconds = time.monotonic() - began  # the minutes are those of the whole command
    write_text(out / "recipe.toml", config.write_toml(config.to_data(recipe)))
    with _stopping(trainer):
        trainer.run()
    report.close()
    if not trainer.progress.finished:
        report.say(f"Stopped and saved at step {trainer.progress.step}. The same command with --resume goes on.")
        return False
    validation, how = choose_weights(trainer)
    _save(out, model, data, recipe, found, validation, trainer, how)
    numbers = ", ".join(f"{name} {value:.2f}" for name, value in validation.metrics.items())
    report.say(f'Done: {out} holds the model ({how}; {numbers}).\nTry: glassformer translate {out} "…"')
    if trainer.progress.step < FEW_STEPS:
        report.say(
            f"It made only {trainer.progress.step} steps and can know little: give it more --minutes or --steps."
        )
    return True


@dataclass(frozen=True)
class Prepared:
    train: PairData
    valid: PairData
    tokenizers: Tokenizers


def _check_folder(out: Path, resume: bool) -> None:
    begun = (out / "checkpoints").exists() or (out / "settings.json").exists()
    require(
        resume or not begun,
        f"{out} holds a run already.",
        "Add --resume to go on with it, or give another --out.",
    )
    require(not out.exists() or out.is_dir(), f"{out} is a file, not a folder.", "Give another --out.")
    ours = {"data", "tokenizer.json", "source_tokenizer.json", "recipe.toml", "metrics.jsonl", ".lock"}
    foreign = [] if begun or not out.exists() else [path.name for path in out.iterdir() if path.name not in ours]
    require(
        not foreign, f"{out} holds other files, such as {foreign[0] if foreign else ''}.", "Give a new folder as --out."
    )


def _check_recipe(recipe: TranslateRecipe, device: str) -> None:
    """What can be refused before the data is read."""
    choose_device(device)
    if recipe.start is not None:
        find_model(recipe.start)
    elif recipe.size != "auto":
        load_size_data(size_name(recipe.size))
    kind = recipe.tokenizer.kind
    require(
        kind in ("bpe", "word", "char") or Path(kind).is_file(),
        f"There is no tokenizer {kind!r}.",
        "Choose bpe, word or char, or give a tokenizer.json.",
    )


def _resolve(recipe: TranslateRecipe, found: PairReport) -> TranslateRecipe:
    if recipe.start is not None:
        given = recipe.size != "auto" or recipe.model or recipe.tokenizer != TokenizerSettings()
        require(
            not given,
            f"Training starts from {recipe.start}, whose size, shape and vocabulary are given.",
            "Leave out the size, model and tokenizer settings.",
        )
        return recipe
    size = automatic_translate_size(found.n_pairs) if recipe.size == "auto" else recipe.size
    return replace(recipe, size=size)


def _identity(files: TrainingFiles, recipe: TranslateRecipe) -> str:
    """What a run depends on: the data's contents and the recipe."""
    data = config.to_data(recipe)
    data["files"] = [fingerprint(f.paths) if f is not None else None for f in (files.train, files.valid)]
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _prepare(files: TrainingFiles, recipe: TranslateRecipe, out: Path, identity: str, report: Report) -> Prepared:
    """Tokens on disk; what an earlier start of the same run made is used again."""
    mark, folder = out / "data" / "identity", out / "data"
    if mark.exists() and mark.read_text() != identity and (out / "checkpoints").exists():
        raise begun_otherwise(out, _what_changed(out / "recipe.toml", recipe))
    if mark.exists() and mark.read_text() == identity:
        target = load_tokenizer(out / "tokenizer.json")
        own = out / "source_tokenizer.json"
        tokenizers = Tokenizers(load_tokenizer(own) if own.exists() else target, target)
        return Prepared(load_pairs(folder / "train", tokenizers), load_pairs(folder / "valid", tokenizers), tokenizers)
    train, valid = _divide(files)
    if recipe.start is not None:
        tokenizers = extend_tokenizers(load_start(recipe.start).tokenizers, train)
    else:
        tokenizers = make_tokenizers(train, recipe.tokenizer)
    write_text(out / "tokenizer.json", tokenizers.target.to_json())
    if not tokenizers.joint:
        write_text(out / "source_tokenizer.json", tokenizers.source.to_json())
    train_data, n_left_out = encode_pairs(train, tokenizers, folder / "train", recipe.max_tokens)
    valid_data, _ = encode_pairs(valid, tokenizers, folder / "valid", recipe.max_tokens)
    if n_left_out:
        report.say(f"{n_left_out:,} pairs are left out because a side has more than {recipe.max_tokens} tokens.")
    report.say(f"Vocabulary: {tokenizers.target.vocab_size:,} tokens. Validation: {len(valid_data):,} pairs.")
    write_text(mark, identity)
    return Prepared(train_data, valid_data, tokenizers)


def _what_changed(file: Path, recipe: TranslateRecipe) -> str:
    """In words, what the run was begun with; where all settings are the same, it is the data that is not."""
    before, now = (config.flatten(data) for data in (config.read_toml(file), config.to_data(recipe)))
    if recipe.train.steps is None and recipe.train.minutes is None:
        before["train.steps"] = None  # the file names the steps that the data was worth
    changed = [
        f"{key} = {before.get(key)} (now {now.get(key)})"
        for key in sorted(before.keys() | now.keys())
        if before.get(key) != now.get(key)
    ]
    return ", ".join(changed) if changed else "other data"


def _divide(files: TrainingFiles) -> tuple[Pairs, Pairs]:
    if files.valid is not None:
        return usable_pairs(files.train), usable_pairs(files.valid)
    held = hold_out(files.train)
    return lambda: (item for item in held.train() if isinstance(item, Pair)), held.valid


@contextlib.contextmanager
def _stopping(trainer: Trainer) -> Iterator[None]:
    """The first Ctrl-C or polite kill ends the run after its step, saved; a second one ends it at once."""

    def stop(number: int, _: FrameType | None) -> None:
        trainer.stop_requested = True
        signal.signal(number, signal.default_int_handler)

    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError):  # only the main thread may set them
            before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _save(
    out: Path,
    model: EncoderDecoder,
    data: Prepared,
    recipe: TranslateRecipe,
    found: PairReport,
    validation: Validation,
    trainer: Trainer,
    how: str,
) -> None:
    progress = trainer.progress
    about: dict[str, Any] = {
        "glassformer": __version__,
        "weights": how,
        "steps": progress.step,
        "minutes": round(progress.seconds / 60, 2),
        "pairs": found.n_pairs,
        "validation": {name: round(value, 4) for name, value in validation.metrics.items()},
    }
    draw_losses(out / "metrics.jsonl", out / "losses.png")
    write_text(out / "README.md", _card(out.name, recipe, about, validation))
    source = None if data.tokenizers.joint else data.tokenizers.source
    save_model(out, "translate", model, data.tokenizers.target, source, about)


def _card(name: str, recipe: TranslateRecipe, about: dict[str, Any], validation: Validation) -> str:
    rows = "\n".join(
        f"| {key} | {value} |" for key, value in {**about, **about["validation"]}.items() if key != "validation"
    )
    samples = "\n".join(f"- {sample}" for sample in validation.samples)
    return (
        f"# {name}\n\nA translator trained by Glassformer; size {recipe.size}. `recipe.toml` says how, "
        "`metrics.jsonl` and `losses.png` how it went.\n\n"
        f"| | |\n|---|---|\n{rows}\n\nSamples of the validation set:\n\n{samples}\n\n"
        f'Use it: `glassformer translate {name} "…"`\n'
    )
