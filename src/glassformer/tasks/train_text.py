"""From text files to a finished model, whatever it learns to do with text: check, prepare, train, choose, save."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glassformer.data.documents import DocumentReport
from glassformer.data.files import alone_in
from glassformer.data.pairs import fingerprint
from glassformer.model import choose_device
from glassformer.tasks import text
from glassformer.tasks.beginning import knows_beginnings
from glassformer.tasks.built_in import find_model
from glassformer.tasks.model_dir import load_model, save_adapter, save_model
from glassformer.tasks.plan import automatic_steps
from glassformer.tasks.run import Run, check_folder, identity_of
from glassformer.tasks.text import TextData, TextFiles, TextRecipe, TextTask
from glassformer.train.helpers import LEAST_TOKENS
from glassformer.train.loop import Job
from glassformer.train.machine import keep_memory
from glassformer.train.report import Report


@dataclass(frozen=True)
class How:
    """What is the task's own."""

    task: TextTask
    make_job: Callable[[Any, TextData, TextData, Any], Job]  # model, training, validation, recipe
    what: str  # the model is, for its card
    example: str  # of a text for it


@dataclass(frozen=True)
class Where:
    """Where a run goes and how it shows itself."""

    out: Path
    resume: bool = False
    device: str = "auto"
    quiet: bool = False
    tensorboard: bool = False


def train_text(how: How, files: TextFiles, recipe: TextRecipe, where: Where) -> bool:
    """Train; False if the run was stopped before its end and can be taken up."""
    began = time.monotonic()
    keep_memory()
    check_folder(where.out, where.resume)
    text.check_recipe(how.task, recipe, where.device)
    found = text.check_texts(files.train)  # before anything is written
    with alone_in(where.out):
        report = Report(where.out, where.quiet, where.tensorboard)
        return _train(how, files, found, recipe, where.device, Run(where.out, where.resume, report, began))


def _train(how: How, files: TextFiles, found: DocumentReport, recipe: TextRecipe, device: str, run: Run) -> bool:
    say, out, name = run.report.say, run.out, how.task.name
    say(str(found))
    recipe = text.resolved(recipe, found)
    recipe = run.for_cores(recipe, choose_device(device), max(LEAST_TOKENS, recipe.context))
    parts = (files.train, files.valid)
    contents = (f"{fingerprint(f.paths)} {f.field}" if f is not None else None for f in parts)
    identity = identity_of(recipe, contents)
    train, valid = text.prepare(how.task, files, found, recipe, run, identity)
    model = text.make_model(how.task, recipe, train.tokenizer.vocab_size).to(choose_device(device))
    kind = recipe.size if recipe.start is None else f"as {recipe.start}"
    run.say_model(kind, model, f", {len(train.stream):,} tokens to learn from")
    job = how.make_job(model, train, valid, recipe)
    steps = automatic_steps(len(train.stream), len(job.plan_epoch(0)) / recipe.train.n_batches)
    finished = run.train(job, recipe, identity, steps)
    if finished is None:
        return False
    before = recipe.start is not None and load_model(find_model(recipe.start)).about.get("starts", True)
    starts = bool(before) or knows_beginnings(train, recipe.context)
    finished.about.update(context=recipe.context, bytes=found.n_bytes, documents=found.n_documents, starts=starts)
    what = f"{how.what} trained by Glassformer; size {recipe.size}, {recipe.tokenizer.kind} tokens."
    use = f'{name} MODEL "{how.example}"'
    run.write_card(what, use, finished)
    if recipe.lora is not None and recipe.start is not None:
        save_adapter(out, name, model, recipe.lora, recipe.start, finished.about)
    else:
        save_model(out, name, model, train.tokenizer, about=finished.about)
    run.end(finished, use)
    return True
