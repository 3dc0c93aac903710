"""From files of pairs to a finished model directory: check, prepare, train, choose, save."""

import time
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from glassformer.data.check import PairReport, check_pairs, explain
from glassformer.data.counted import counted
from glassformer.data.files import alone_in, write_text
from glassformer.data.pairs import Pair, PairFiles
from glassformer.data.split import hold_out, usual_sentences
from glassformer.data.tokenizer import load_tokenizer
from glassformer.errors import require
from glassformer.model import choose_device
from glassformer.tasks.dropout import check_dropout
from glassformer.tasks.grow import extend_tokenizers
from glassformer.tasks.model_dir import save_model
from glassformer.tasks.plan import automatic_steps
from glassformer.tasks.prepare import Pairs, Tokenizers, encode_pairs, load_pairs, make_tokenizers, usable_pairs
from glassformer.tasks.run import Run, check_folder, check_start, identity_of
from glassformer.tasks.translate import (
    PairData,
    TokenizerSettings,
    TranslateJob,
    TranslateRecipe,
    automatic_translate_size,
)
from glassformer.tasks.translate_model import Start, check_model, load_start, make_model
from glassformer.train.machine import keep_memory
from glassformer.train.report import Report

N_LOOKED_AT = 20_000  # pairs whose sentences are counted


@dataclass(frozen=True)
class TrainingFiles:
    train: PairFiles
    valid: PairFiles | None  # None: hold some of the training pairs out
    languages: tuple[str, ...] | None = None  # codes, as a server tells them; None: as the files are named

    @property
    def about(self) -> dict[str, object]:
        """What the model says of its data: how much of a text it can take at once, and its languages."""
        sources = (pair.source for pair in islice(usable_pairs(self.train)(), N_LOOKED_AT))
        languages = self.languages or self.train.languages
        return {"sentences": usual_sentences(sources), **({"languages": list(languages)} if languages else {})}


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
    check_folder(out, resume)
    start = _check_recipe(recipe, device)
    found = check_pairs(files.train, files.valid)  # before anything is written
    recipe = _resolve(recipe, found)
    with alone_in(out):
        return _train(files, found, recipe, start, device, Run(out, resume, Report(out, quiet, tensorboard), began))


def _train(
    files: TrainingFiles, found: PairReport, recipe: TranslateRecipe, start: Start | None, device: str, run: Run
) -> bool:
    say, out = run.report.say, run.out
    say(explain(found))
    recipe = run.for_cores(recipe, choose_device(device))
    identity = identity_of(recipe, (f.identity if f is not None else None for f in (files.train, files.valid)))
    data = _prepare(files, recipe, start, run, identity)
    model = make_model(recipe, data.tokenizers, start).to(choose_device(device))
    kind = recipe.size if recipe.start is None else f"as {recipe.start}"
    run.say_model(kind, model, f", {counted(len(data.train), 'pair')} to learn from")
    job = TranslateJob(model, data.train, data.valid, recipe.train, recipe.both_ways)
    n_tokens = int(data.train.target.tokens.lengths.sum())
    steps = automatic_steps(n_tokens, len(job.plan_epoch(0)) / recipe.train.n_batches)
    finished = run.train(job, recipe, identity, steps)
    if finished is None:
        return False
    finished.about.update({"pairs": found.n_pairs, **files.about})
    use = 'translate MODEL "…"'
    run.write_card(f"A translator trained by Glassformer; size {recipe.size}.", use, finished)
    source = None if data.tokenizers.joint else data.tokenizers.source
    save_model(out, "translate", model, data.tokenizers.target, source, finished.about)
    run.end(finished, use)
    return True


@dataclass(frozen=True)
class Prepared:
    train: PairData
    valid: PairData
    tokenizers: Tokenizers


def _check_recipe(recipe: TranslateRecipe, device: str) -> Start | None:
    """The model to start from; what can be refused before the data is read is refused here."""
    choose_device(device)
    check_dropout(recipe.dropout)
    if recipe.start is not None:
        start = load_start(recipe.start)  # first: of what is no model, nothing else is worth saying
        shaped = recipe.size != "auto" or bool(recipe.model) or recipe.tokenizer != TokenizerSettings()
        check_start(recipe.start, shaped)
        return start
    check_model(recipe)
    file = recipe.tokenizer.file
    require(
        file is None or file.is_file(),
        f"There is no tokenizer {recipe.tokenizer.kind!r}.",
        "Choose bpe, word or char, or give a tokenizer.json.",
    )
    if file is not None:
        load_tokenizer(file)
    return None


def _resolve(recipe: TranslateRecipe, found: PairReport) -> TranslateRecipe:
    """The recipe with the size that suits the pairs."""
    if recipe.start is not None or recipe.size != "auto":
        return recipe
    recipe = replace(recipe, size=automatic_translate_size(found.n_pairs))
    check_model(recipe)
    return recipe


def _prepare(files: TrainingFiles, recipe: TranslateRecipe, start: Start | None, run: Run, identity: str) -> Prepared:
    """Tokens on disk; what an earlier start of the same run made is used again."""
    out, folder, say = run.out, run.data, run.report.say
    if run.is_prepared(identity, recipe):
        target = load_tokenizer(out / "tokenizer.json")
        own = out / "source_tokenizer.json"
        tokenizers = Tokenizers(load_tokenizer(own) if own.exists() else target, target)
        return Prepared(load_pairs(folder / "train", tokenizers), load_pairs(folder / "valid", tokenizers), tokenizers)
    train, valid = _divide(files)
    if start is not None:
        tokenizers = extend_tokenizers(start.tokenizers, train)
    else:
        tokenizers = make_tokenizers(train, recipe.tokenizer, say)
    write_text(out / "tokenizer.json", tokenizers.target.to_json())
    if tokenizers.joint:
        (out / "source_tokenizer.json").unlink(missing_ok=True)  # of a start that was killed
    else:
        write_text(out / "source_tokenizer.json", tokenizers.source.to_json())
    train_data, n_left_out = encode_pairs(train, tokenizers, folder / "train", recipe.max_tokens)
    valid_data, n_not_validated = encode_pairs(valid, tokenizers, folder / "valid", recipe.max_tokens)
    for n, part in ((n_left_out, "training"), (n_not_validated, "validation")):
        if n:
            say(f"Left out of {part}: {counted(n, 'pair')} with more than {recipe.max_tokens} tokens on a side.")
    say(f"Vocabulary: {tokenizers.target.vocab_size:,} tokens. Validation: {counted(len(valid_data), 'pair')}.")
    run.prepared(identity)
    return Prepared(train_data, valid_data, tokenizers)


def _divide(files: TrainingFiles) -> tuple[Pairs, Pairs]:
    if files.valid is not None:
        return usable_pairs(files.train), usable_pairs(files.valid)
    held = hold_out(files.train)
    return lambda: (item for item in held.train() if isinstance(item, Pair)), held.valid
