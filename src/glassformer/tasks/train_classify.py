"""From labelled data to a finished classifier: check, prepare, train, choose, save."""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from glassformer import config
from glassformer.data.files import alone_in
from glassformer.model import choose_device
from glassformer.model.settings import ModelSettings
from glassformer.sizes import full_name
from glassformer.tasks.classify import ClassifyJob, ClassifyRecipe
from glassformer.tasks.classify_data import Subject
from glassformer.tasks.classify_model import (
    FINE_HEAD_SPEED,
    automatic_lr,
    load_start,
    new_model,
    new_settings,
    tuned_model,
)
from glassformer.tasks.model_dir import LoadedModel, save_adapter, save_model
from glassformer.tasks.run import Run, check_folder, check_start, identity_of
from glassformer.tasks.text import TextTokens
from glassformer.train.machine import keep_memory
from glassformer.train.report import Report

# Times that examples are read by default: often where there are few, and less often where much is known already.
READ, FINE_READ = 400_000, 30_000
EPOCHS, FINE_EPOCHS = (8, 60), (3, 10)
SMALL = 300_000  # examples from which a small model takes the place of a tiny one


def train_classify(
    read: Callable[[ClassifyRecipe], Subject],
    recipe: ClassifyRecipe,
    out: Path,
    resume: bool = False,
    device: str = "auto",
    quiet: bool = False,
    tensorboard: bool = False,
) -> bool:
    """Train in the folder `out` on what `read` finds; False if the run was stopped before its end."""
    began = time.monotonic()
    keep_memory()
    check_folder(out, resume)
    choose_device(device)
    start = _check_start(recipe)
    subject = read(recipe)  # before anything is written
    recipe = _resolve(recipe, subject, start)
    with alone_in(out):
        run = Run(out, resume, Report(out, quiet, tensorboard, unit="examples"), began)
        return _train(subject, start, recipe, device, run)


def _train(subject: Subject, start: LoadedModel | None, recipe: ClassifyRecipe, device: str, run: Run) -> bool:
    say, out, labels = run.report.say, run.out, subject.labels
    for sentence in subject.describe():
        say(sentence)
    identity = identity_of(recipe, subject.contents())
    ready = subject.prepare(recipe, run, identity, start)
    speaker = None
    if start is None:
        model, kind = new_model(recipe, labels, ready.front_end), recipe.size
    else:
        model, speaker = tuned_model(recipe, labels, start)  # type: ignore[assignment]
        kind = f"{recipe.start} with a new head"
    model = model.to(choose_device(device))
    speaker = None if speaker is None else speaker.to(choose_device(device))
    aside = f", and goes on minding its own loss (weight {recipe.lm_weight:g})" if speaker is not None else ""
    run.say_model(kind, model, aside)
    job = ClassifyJob(model, ready.train, ready.valid, labels, recipe, speaker)
    finished = run.train(job, recipe, identity, _steps(job, recipe, subject.n_examples))
    if finished is None:
        return False
    finished.about.update(labels=config.to_data(labels), metric=job.metric, examples=subject.n_examples, **ready.about)
    job.scale.put_into(model)
    if ready.unit is not None:
        ready.unit.put_into(model)
    what = f"A classifier trained by Glassformer; {kind}; {labels.kind}: {', '.join(labels.names[:20]) or 'a number'}."
    use = f'classify MODEL "{"…" if ready.about["input"] == "text" else "FILE"}"'
    run.write_card(what, use, finished)
    if recipe.lora is not None and recipe.start is not None:
        save_adapter(out, "classify", model, recipe.lora, recipe.start, finished.about)
    else:
        save_model(out, "classify", model, ready.tokenizer, about=finished.about)
    run.end(finished, use)
    return True


def _check_start(recipe: ClassifyRecipe) -> LoadedModel | None:
    """The model to start from; what cannot be is refused before the data is read."""
    if recipe.start is None:
        if recipe.size != "auto":
            full_name(recipe.size, "classify")
        return None
    loaded = load_start(recipe.start)
    shaped = recipe.size != "auto" or bool(recipe.model) or recipe.tokenizer != TextTokens()
    check_start(recipe.start, shaped, recipe.lora is not None and loaded.is_adapted)
    return loaded


def _resolve(recipe: ClassifyRecipe, subject: Subject, start: LoadedModel | None) -> ClassifyRecipe:
    """What was left open, now that data and model are known."""
    train = recipe.train
    if start is None:
        size = ("small" if subject.n_examples > SMALL else "tiny") if recipe.size == "auto" else recipe.size
        recipe = replace(recipe, size=size)
        settings: ModelSettings = new_settings(recipe, subject.labels, subject.front_end)
    else:
        settings = start.model.settings
        if train.head_speed == 1.0:
            train = replace(train, head_speed=FINE_HEAD_SPEED)
    if train.lr is None:
        train = replace(train, lr=automatic_lr(recipe, settings))
    return replace(recipe, train=train)


def _steps(job: ClassifyJob, recipe: ClassifyRecipe, n: int) -> int:
    """As many steps as the examples are worth."""
    read, (fewest, most) = (READ, EPOCHS) if recipe.start is None else (FINE_READ, FINE_EPOCHS)
    epochs = recipe.epochs or min(most, max(fewest, read / n))
    return max(1, math.ceil(epochs * len(job.plan_epoch(0)) / recipe.train.n_batches))
