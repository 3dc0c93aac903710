"""From text files to a finished language model: check, prepare, train, choose, save."""

import time
from pathlib import Path

from glassformer.data.documents import DocumentReport
from glassformer.data.files import alone_in
from glassformer.data.pairs import fingerprint
from glassformer.errors import require
from glassformer.model import DecoderOnly, choose_device, count_parameters
from glassformer.model.lora import add_lora
from glassformer.tasks import text
from glassformer.tasks.complete import COMPLETE, CompleteJob, CompleteRecipe
from glassformer.tasks.model_dir import save_adapter, save_model
from glassformer.tasks.plan import automatic_steps
from glassformer.tasks.run import Run, check_folder, identity_of
from glassformer.tasks.text import TextFiles
from glassformer.train.checkpoint import trained
from glassformer.train.machine import keep_memory
from glassformer.train.report import Report


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
    started = text.check_recipe(COMPLETE, recipe, device)
    require(
        started is None or recipe.lora is None or not started.is_adapted,
        f"{recipe.start} is an adapter itself.",
        "Put it into its model first: glassformer export … --to glassformer.",
    )
    found = text.check_texts(files.train)  # before anything is written
    with alone_in(out):
        return _train(files, found, recipe, device, Run(out, resume, Report(out, quiet, tensorboard), began))


def _train(files: TextFiles, found: DocumentReport, recipe: CompleteRecipe, device: str, run: Run) -> bool:
    say, out = run.report.say, run.out
    say(str(found))
    recipe = text.resolved(recipe, found)
    contents = (fingerprint(f.paths) if f is not None else None for f in (files.train, files.valid))
    identity = identity_of(recipe, contents)
    train, valid = text.prepare(COMPLETE, files, found, recipe, run, identity)
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
    """A new model in the recipe's shape, or the one to start from, maybe with detours beside its weights."""
    model = text.make_model(COMPLETE, recipe, vocab_size)
    assert isinstance(model, DecoderOnly)
    if recipe.lora is not None:
        add_lora(model, recipe.lora)
    return model
