"""The learning rate: a straight line up, then the paper's root, a cosine, or nothing."""

import itertools
from typing import Any

import pytest

from glassformer.train.schedule import learning_rate, warmup_steps
from glassformer.train.settings import TrainSettings

SCHEDULES = ["cosine", "paper", "constant"]


def rates(n_steps: int = 1000, **changes: Any) -> list[float]:
    """For steps 1 to n_steps; index 0 is step 1."""
    settings = TrainSettings(**({"lr": 0.5, "warmup": 100} | changes))
    return [learning_rate(settings, step, n_steps) for step in range(1, n_steps + 1)]


def test_paper_is_the_papers_up_to_scale() -> None:
    d_model, warmup = 512, 100
    ours = rates(schedule="paper", warmup=warmup)
    theirs = [d_model**-0.5 * min(step**-0.5, step * warmup**-1.5) for step in range(1, 1001)]
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    assert ratios == pytest.approx([ratios[0]] * 1000, rel=1e-12)
    assert max(ours) == ours[warmup - 1] == 0.5


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_warm_up_is_a_straight_line_to_the_peak(schedule: str) -> None:
    assert rates(schedule=schedule)[:100] == pytest.approx([0.5 * step / 100 for step in range(1, 101)])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_never_jumps_and_never_rises_after_the_peak(schedule: str) -> None:
    found = rates(schedule=schedule)
    changes = [b - a for a, b in itertools.pairwise(found)]
    assert max(abs(change) for change in changes) <= 0.5 / 100 + 1e-12
    assert max(changes[99:]) <= 0
    assert min(found) > 0


def test_cosine_ends_near_zero() -> None:
    found = rates(schedule="cosine")
    assert found[-1] == pytest.approx(0.005)
    assert found[549] == pytest.approx(0.5 * 0.505)  # half-way down
    settings = TrainSettings(lr=0.5, warmup=100)
    assert learning_rate(settings, 1001, 1000) == pytest.approx(0.005)  # and stays there


def test_constant_stays() -> None:
    assert set(rates(schedule="constant")[99:]) == {0.5}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_without_warm_up_the_peak_comes_first(schedule: str) -> None:
    assert rates(schedule=schedule, warmup=0)[0] == pytest.approx(0.5, rel=1e-4)


@pytest.mark.parametrize(("n_steps", "expected"), [(5, 1), (1000, 100), (100_000, 4000)])
def test_automatic_warm_up(n_steps: int, expected: int) -> None:
    assert warmup_steps(TrainSettings(), n_steps) == expected
    assert warmup_steps(TrainSettings(warmup=7), n_steps) == 7
