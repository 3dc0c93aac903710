"""A plan before training: measured, in keeping with what training then does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from glassformer import config
from glassformer.data.batch import PairBatch
from glassformer.data.check import check_pairs
from glassformer.data.documents import check_documents, open_documents
from glassformer.data.files import write_text
from glassformer.data.pairs import open_pairs
from glassformer.data.tokenizer import SMALLEST, train_tokenizer
from glassformer.model import EncoderDecoder
from glassformer.tasks.complete import CompleteRecipe
from glassformer.tasks.plan import (
    CHARACTERS_A_TOKEN,
    LEAST_STEPS,
    MOST_EPOCHS,
    automatic_steps,
    plan_completion,
    plan_translation,
)
from glassformer.tasks.text import TextFiles
from glassformer.tasks.train_complete import train_complete
from glassformer.tasks.train_translate import TrainingFiles, train_translate
from glassformer.tasks.translate import TranslateJob
from tests.tasks.corpus import tiny_recipe, write_tsv


def test_little_data_is_read_often_but_not_without_end() -> None:
    assert automatic_steps(tokens_an_epoch=400_000, steps_an_epoch=110) == MOST_EPOCHS * 110
    assert automatic_steps(tokens_an_epoch=5_000, steps_an_epoch=2) == LEAST_STEPS


def test_much_data_is_read_at_least_once() -> None:
    assert automatic_steps(tokens_an_epoch=10**9, steps_an_epoch=250_000) == 250_000


@pytest.mark.parametrize("smaller", [10_000, 100_000])
def test_more_data_never_means_fewer_steps(smaller: int) -> None:
    assert automatic_steps(smaller, smaller / 4000) <= automatic_steps(10 * smaller, 10 * smaller / 4000)


def test_the_plan_is_about_the_model_that_would_be_trained(tmp_path: Path) -> None:
    files = open_pairs([write_tsv(tmp_path / "pairs.tsv")])
    plan = plan_translation(files, check_pairs(files), tiny_recipe(train={"batch_tokens": 256}))
    assert plan.vocab_size >= 259
    assert plan.size == "tiny"
    assert plan.tokens_per_second > 0
    assert plan.minutes > 0
    assert plan.megabytes > 50
    assert plan.steps == LEAST_STEPS
    assert f"{plan.n_parameters:,} parameters" in str(plan)


def test_the_plan_has_the_vocabulary_of_a_given_tokenizer(tmp_path: Path) -> None:
    write_text(tmp_path / "own.json", train_tokenizer(["two red cats"] * 3, "word", 300).to_json())
    files = open_pairs([write_tsv(tmp_path / "pairs.tsv")])
    recipe = tiny_recipe(tokenizer={"kind": str(tmp_path / "own.json"), "size": "none"}, train={"batch_tokens": 256})
    assert plan_translation(files, check_pairs(files), recipe).vocab_size == SMALLEST + 3


@pytest.mark.parametrize(("precision", "mixed"), [("fp32", False), ("bf16", True)])
def test_the_plan_is_measured_in_the_precision_of_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: str, mixed: bool
) -> None:
    seen: list[bool] = []
    whole = TranslateJob.loss_of

    def spy(model: EncoderDecoder, batch: PairBatch, smoothing: float) -> Tensor:
        seen.append(torch.is_autocast_enabled("cpu"))
        return whole(model, batch, smoothing)

    monkeypatch.setattr(TranslateJob, "loss_of", staticmethod(spy))
    files = open_pairs([write_tsv(tmp_path / "pairs.tsv")])
    plan_translation(files, check_pairs(files), tiny_recipe(train={"batch_tokens": 256, "precision": precision}))
    assert set(seen) == {mixed}


@pytest.mark.parametrize("sample", [60, 20_000])
def test_the_plan_has_the_steps_of_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample: int) -> None:
    """Also where only some of the pairs are looked at."""
    monkeypatch.setattr("glassformer.tasks.plan.SAMPLE", sample)
    monkeypatch.setattr("glassformer.tasks.plan.LEAST_STEPS", 1)
    steps: list[int] = []

    def remember(tokens_an_epoch: float, steps_an_epoch: float) -> int:
        steps.append(automatic_steps(tokens_an_epoch, steps_an_epoch))
        return 1

    files, recipe = open_pairs([write_tsv(tmp_path / "pairs.tsv")]), tiny_recipe(train={"batch_tokens": 64})
    plan = plan_translation(files, check_pairs(files), recipe)
    monkeypatch.setattr("glassformer.tasks.train_translate.automatic_steps", remember)
    unbounded = tiny_recipe(train={"batch_tokens": 64, "steps": None})
    train_translate(TrainingFiles(files, files), unbounded, tmp_path / "out", device="cpu", quiet=True)
    assert plan.steps == pytest.approx(steps[0], rel=0.1)


@pytest.mark.parametrize("accumulate", [1, 4])
def test_batches_that_are_added_up_are_counted(tmp_path: Path, accumulate: int) -> None:
    """However many batches a step takes, the same text is read as often."""
    (tmp_path / "text.txt").write_text("Some words. " * 40_000)
    found = check_documents(open_documents([tmp_path / "text.txt"]))
    train = {"batch_tokens": 128, "accumulate": accumulate}
    model = {"decoder": {"d_model": 16, "n_layers": 1, "feed_forward": {"d_ff": 16}}}
    data = {"context": 128, "size": "tiny", "model": model, "tokenizer": {"size": 300}, "train": train}
    plan = plan_completion(found, config.parse(CompleteRecipe, data))
    assert plan.epochs == pytest.approx(MOST_EPOCHS, rel=0.01)
    tokens = found.n_characters / CHARACTERS_A_TOKEN * MOST_EPOCHS
    assert plan.steps == pytest.approx(tokens / 128 / accumulate, rel=0.01)
    assert plan.minutes * 60 == pytest.approx(tokens / plan.tokens_per_second * 1.1, rel=0.01)


def complete(folder: Path, train: dict[str, Any]) -> None:
    data = {"context": 16, "size": "tiny", "tokenizer": {"size": 300}, "train": {"batch_tokens": 64, **train}}
    files = TextFiles(open_documents([write_tsv(folder / "text.txt")]), None)
    train_complete(files, config.parse(CompleteRecipe, data), folder / "out", device="cpu", quiet=True)


def translate(folder: Path, train: dict[str, Any]) -> None:
    files = TrainingFiles(open_pairs([write_tsv(folder / "pairs.tsv")]), None)
    train_translate(files, tiny_recipe(train={"steps": None, **train}), folder / "out", device="cpu", quiet=True)


@pytest.mark.parametrize(("train", "module"), [(complete, "train_text"), (translate, "train_translate")])
def test_a_training_counts_them_likewise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, train: Callable[[Path, dict[str, Any]], None], module: str
) -> None:
    planned: list[float] = []

    def remember(_: float, steps_an_epoch: float) -> int:
        planned.append(steps_an_epoch)
        return 1

    monkeypatch.setattr(f"glassformer.tasks.{module}.automatic_steps", remember)
    for k in (1, 4):
        train(tmp_path / str(k), {"accumulate": k})
    assert planned[0] == 4 * planned[1]
