"""What a training would be: vocabulary, size, steps, memory and minutes, measured on this machine."""

import contextlib
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from glassformer.data.check import PairReport
from glassformer.data.documents import DocumentReport
from glassformer.data.pairs import Pair, PairFiles
from glassformer.data.tokenizer import automatic_size
from glassformer.data.windows import WindowBatch
from glassformer.model import DecoderOnly, EncoderDecoder, build, count_parameters
from glassformer.model.settings import ModelSettings
from glassformer.tasks.complete import COMPLETE, CompleteRecipe
from glassformer.tasks.complete import loss_of as complete_loss
from glassformer.tasks.prepare import Pairs, encode_pairs, make_tokenizers, usable_pairs
from glassformer.tasks.text import model_settings as text_settings
from glassformer.tasks.text import resolved
from glassformer.tasks.translate import TranslateJob, TranslateRecipe, automatic_translate_size
from glassformer.tasks.translate_model import model_settings
from glassformer.train.helpers import Helpers, for_each_core
from glassformer.train.machine import autocast, keep_memory
from glassformer.train.optim import build_optimizer
from glassformer.train.plan import measure_step
from glassformer.train.settings import TrainSettings

# Tokens that a training reads by default; less data is read more often, but not more than so many times.
TOKENS, MOST_EPOCHS, LEAST_STEPS = 25_000_000, 60, 1500
SAMPLE = 20_000  # pairs that a plan looks at
CHARACTERS_A_TOKEN = 4.0  # of byte-pair encoding on European text; a plan needs no more


@dataclass(frozen=True)
class Plan:
    vocab_size: int
    size: str
    n_parameters: int
    steps: int
    epochs: float
    megabytes: int
    minutes: float
    tokens_per_second: float

    def __str__(self) -> str:
        return (
            f"Plan: vocabulary {self.vocab_size:,}, size {self.size} ({self.n_parameters:,} parameters), "
            f"{self.steps:,} steps ({self.epochs:.1f} epochs), about {self.megabytes:,} MB of memory; "
            f"{self.tokens_per_second:,.0f} tokens/s measured here, so about {_time(self.minutes)}. "
            "With --minutes M training is fitted to M minutes."
        )


def automatic_steps(tokens_an_epoch: float, steps_an_epoch: float) -> int:
    """As many steps as the data is worth."""
    epochs = min(MOST_EPOCHS, max(1.0, TOKENS / tokens_an_epoch))
    return max(LEAST_STEPS, round(epochs * steps_an_epoch))


def plan_translation(files: PairFiles, found: PairReport, recipe: TranslateRecipe | None = None) -> Plan:
    """Learn a vocabulary from some of the pairs, train the proposed model on them for a moment, and reckon."""
    recipe, before = recipe or TranslateRecipe(), _peak_megabytes()
    train = for_each_core(recipe.train, torch.device("cpu"))
    characters = found.source.characters.total + found.target.characters.total
    settings = recipe.tokenizer
    if settings.file is None:
        settings = replace(settings, size=settings.size or automatic_size(characters))
    size = automatic_translate_size(found.n_pairs) if recipe.size == "auto" else recipe.size
    with tempfile.TemporaryDirectory() as folder:
        some = _some_of(usable_pairs(files), found.n_pairs)
        tokenizers = make_tokenizers(some, settings)
        vocab_size = settings.size or tokenizers.target.vocab_size
        data, _ = encode_pairs(some, tokenizers, Path(folder) / "some", recipe.max_tokens)
        model = build(model_settings(replace(recipe, size=size), vocab_size, vocab_size, tokenizers.joint))
        assert isinstance(model, EncoderDecoder)
        keep_memory()
        job = TranslateJob(model, data, data, train)
        with contextlib.closing(Helpers(job, train)) as helpers:
            seconds, n_processes = measure_step(job, train, helpers), len(helpers.helpers) + 1
        n_tokens, n_batches = int(job.lengths[-1].sum()), len(job.plan_epoch(0))
    tokens_a_step = n_tokens / n_batches * train.n_batches
    tokens_an_epoch = n_tokens * found.n_pairs / len(data)
    plan = _plan(vocab_size, size, count_parameters(model), tokens_an_epoch, seconds, tokens_a_step)
    return replace(plan, megabytes=before + (plan.megabytes - before) * n_processes)


def _some_of(pairs: Pairs, n: int) -> Pairs:
    """About so many of n pairs that a moment is enough for them, the same each time, from everywhere."""

    def some() -> Iterator[Pair]:
        chance = random.Random(1)
        return (pair for pair in pairs() if n <= SAMPLE or chance.random() < SAMPLE / n)

    return some


def plan_completion(found: DocumentReport, recipe: CompleteRecipe | None = None) -> Plan:
    """The same for a language model, on a made-up text: all its batches are alike."""
    recipe = resolved(recipe or CompleteRecipe(), found)
    vocab_size = recipe.tokenizer.size or automatic_size(found.n_characters)
    rows = max(1, recipe.train.batch_tokens // recipe.context)
    ids = torch.randint(3, vocab_size, (rows, recipe.context))
    batch = WindowBatch(ids, ids, None, None)

    def loss(model: nn.Module) -> Tensor:
        assert isinstance(model, DecoderOnly)
        return complete_loss(model, batch, recipe.train.label_smoothing) / ids.numel()

    seconds, n_parameters = _seconds_a_step(text_settings(COMPLETE, recipe, vocab_size), recipe.train, loss)
    tokens_a_step = ids.numel() * recipe.train.n_batches
    tokens_an_epoch = found.n_characters / CHARACTERS_A_TOKEN
    return _plan(vocab_size, recipe.size, n_parameters, tokens_an_epoch, seconds, tokens_a_step)


def _plan(
    vocab_size: int, size: str, n_parameters: int, tokens_an_epoch: float, seconds: float, tokens_a_step: float
) -> Plan:
    steps_an_epoch = tokens_an_epoch / tokens_a_step
    steps = automatic_steps(tokens_an_epoch, steps_an_epoch)
    return Plan(
        vocab_size=vocab_size,
        size=size,
        n_parameters=n_parameters,
        steps=steps,
        epochs=steps / steps_an_epoch,
        megabytes=_peak_megabytes(),
        minutes=steps * seconds * 1.1 / 60,  # a tenth for validation
        tokens_per_second=tokens_a_step / seconds,
    )


def _seconds_a_step(
    settings: ModelSettings, train: TrainSettings, loss: Callable[[nn.Module], Tensor]
) -> tuple[float, int]:
    """Of a new model in the precision that training would have, and how many parameters it has."""
    keep_memory()
    model = build(settings)
    model.train()
    optimizer = build_optimizer(model, train)
    times = []
    for _ in range(4):
        began = time.monotonic()
        with autocast(train.precision, torch.device("cpu")):
            mean = loss(model)
        mean.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        times.append(time.monotonic() - began)
    return sorted(times[1:])[1] * train.n_batches, count_parameters(model)


def _peak_megabytes() -> int:
    """The most memory that this process, which just trained a little, ever had."""
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1 << 20 if sys.platform == "darwin" else 1 << 10))


def _time(minutes: float) -> str:
    return f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60:.1f} hours"
