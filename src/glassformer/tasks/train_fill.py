"""From text files to a finished model that fills blanks, the start for labels on little text."""

import time
from pathlib import Path

from glassformer.data.documents import DocumentReport
from glassformer.data.files import alone_in
from glassformer.data.pairs import fingerprint
from glassformer.model import EncoderOnly, choose_device, count_parameters
from glassformer.tasks import text
from glassformer.tasks.fill import FILL, FillJob, FillRecipe
from glassformer.tasks.model_dir import save_model
from glassformer.tasks.plan import automatic_steps
from glassformer.tasks.run import Run, check_folder, identity_of
from glassformer.tasks.text import TextFiles
from glassformer.train.machine import keep_memory
from glassformer.train.report import Report


def train_fill(
    files: TextFiles,
    recipe: FillRecipe,
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
    text.check_recipe(FILL, recipe, device)
    found = text.check_texts(files.train)  # before anything is written
    with alone_in(out):
        return _train(files, found, recipe, device, Run(out, resume, Report(out, quiet, tensorboard), began))


def _train(files: TextFiles, found: DocumentReport, recipe: FillRecipe, device: str, run: Run) -> bool:
    say, out = run.report.say, run.out
    say(str(found))
    recipe = text.resolved(recipe, found)
    contents = (fingerprint(f.paths) if f is not None else None for f in (files.train, files.valid))
    identity = identity_of(recipe, contents)
    train, valid = text.prepare(FILL, files, found, recipe, run, identity)
    model = text.make_model(FILL, recipe, train.tokenizer.vocab_size).to(choose_device(device))
    assert isinstance(model, EncoderOnly)
    kind = recipe.size if recipe.start is None else f"as {recipe.start}"
    say(f"Model: {kind}, {count_parameters(model):,} parameters, {len(train.stream):,} tokens to learn from.")
    job = FillJob(model, train, valid, recipe)
    finished = run.train(job, recipe, identity, automatic_steps(len(train.stream), len(job.plan_epoch(0))))
    if finished is None:
        return False
    finished.about.update(context=recipe.context, bytes=found.n_bytes, documents=found.n_documents)
    what = f"An encoder trained by Glassformer to fill blanks; size {recipe.size}, {recipe.tokenizer.kind} tokens."
    run.write_card(what, f'glassformer fill {out.name} "… ___ …"', finished)
    save_model(out, "fill", model, train.tokenizer, about=finished.about)
    run.end(finished, f'glassformer fill {out} "… ___ …"')
    return True
