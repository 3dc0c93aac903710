"""A plan before training: measured, in keeping with what training then does."""

from pathlib import Path

import pytest

from glassformer.data.check import check_pairs
from glassformer.data.pairs import open_pairs
from glassformer.tasks.plan import LEAST_STEPS, MOST_EPOCHS, automatic_steps, plan_translation
from tests.tasks.corpus import tiny_recipe, write_tsv


def test_little_data_is_read_often_but_not_without_end() -> None:
    assert automatic_steps(tokens_an_epoch=400_000, batches_an_epoch=110) == MOST_EPOCHS * 110
    assert automatic_steps(tokens_an_epoch=5_000, batches_an_epoch=2) == LEAST_STEPS


def test_much_data_is_read_at_least_once() -> None:
    assert automatic_steps(tokens_an_epoch=10**9, batches_an_epoch=250_000) == 250_000


@pytest.mark.parametrize("smaller", [10_000, 100_000])
def test_more_data_never_means_fewer_steps(smaller: int) -> None:
    assert automatic_steps(smaller, smaller / 4000) <= automatic_steps(10 * smaller, 10 * smaller / 4000)


def test_the_plan_is_about_the_model_that_would_be_trained(tmp_path: Path) -> None:
    found = check_pairs(open_pairs([write_tsv(tmp_path / "pairs.tsv")]))
    plan = plan_translation(found, tiny_recipe(train={"batch_tokens": 256}))
    assert plan.vocab_size >= 259
    assert plan.size == "tiny"
    assert plan.tokens_per_second > 0
    assert plan.minutes > 0
    assert plan.megabytes > 50
    assert plan.steps == LEAST_STEPS
    assert f"{plan.n_parameters:,} parameters" in str(plan)
