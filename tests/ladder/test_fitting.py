"""Windows, budget, rate and loss of the rungs that learn."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import UserError
from glassformer.ladder.fitting import NO_WORD, Budget, Windows, learning_rate, next_word_loss, shift


def windows(lengths: list[int], context: int, rows: int, weights: list[float] | None = None) -> Windows:
    """Sequence i holds 100 * i, 100 * i + 1, …: every word says where it stands."""
    sequences = [100 * i + np.arange(n) for i, n in enumerate(lengths)]
    return Windows(sequences, np.array(weights or [1.0] * len(lengths)), context, rows)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6).filter(any), st.integers(2, 20), st.integers(1, 8))
def test_every_row_is_a_piece_of_one_sequence(lengths: list[int], context: int, rows: int) -> None:
    words, weights = windows(lengths, context, rows).next(torch.Generator().manual_seed(1))
    assert words.shape[1] == min(context, max(lengths))
    assert len(weights) == len(words) <= rows
    for row in words:
        real = row[row != NO_WORD]
        assert torch.equal(row[: len(real)], real)  # nothing follows the end
        if len(real) == 0:
            assert 0 in lengths
            continue
        sequence, place = divmod(int(real[0]), 100)
        assert torch.equal(real, torch.arange(int(real[0]), int(real[0]) + len(real)))
        assert place + len(real) <= lengths[sequence]
        assert len(real) == min(lengths[sequence], words.shape[1])  # as much as there is


def test_a_few_short_sequences_are_given_whole_with_their_weights() -> None:
    words, weights = windows([2, 3], context=8, rows=4, weights=[0.4, 0.6]).next(torch.Generator())
    assert words.tolist() == [[0, 1, NO_WORD], [100, 101, 102]]
    assert weights.tolist() == pytest.approx([0.4, 0.6])


def test_rows_are_drawn_by_weight_and_by_length() -> None:
    some = windows([4, 4, 16, 0], context=4, rows=20_000, weights=[1, 3, 1, 50])
    some.whole = False
    first = some.next(torch.Generator().manual_seed(1))[0][:, 0]
    shares = torch.bincount(first // 100, minlength=4) / len(first)
    assert shares.tolist() == pytest.approx([1 / 8, 3 / 8, 4 / 8, 0], abs=0.02)


def test_every_place_of_a_long_sequence_comes_up() -> None:
    words, _ = windows([10], context=4, rows=500).next(torch.Generator().manual_seed(1))
    assert set(words[:, 0].tolist()) == set(range(7))


def test_what_is_read_begins_with_the_start_token() -> None:
    words = torch.tensor([[5, 6, 7], [5, NO_WORD, NO_WORD]])
    assert shift(words, start=9).tolist() == [[9, 5, 6], [9, 5, 9]]


def test_the_loss_is_the_weighted_mean_of_nats() -> None:
    p = torch.tensor([[[0.5, 0.5], [0.25, 0.75]], [[0.1, 0.9], [0.5, 0.5]]])
    words = torch.tensor([[0, 1], [1, NO_WORD]])
    weights = torch.tensor([1.0, 3.0])
    expected = -(math.log(0.5) + math.log(0.75) + 3 * math.log(0.9)) / (1 + 1 + 3)
    assert next_word_loss(p.log(), words, weights).item() == pytest.approx(expected)


@pytest.mark.parametrize("schedule", ["cosine", "constant"])
def test_the_rate_rises_to_its_peak_and_never_above(schedule: str) -> None:
    rates = [learning_rate(0.1, share, schedule) for share in np.linspace(0, 1, 201)]  # type: ignore[arg-type]
    assert max(rates) == pytest.approx(0.1, rel=0.01)
    assert max(rates) <= 0.1
    assert rates[0] < rates[3] < rates[7]
    assert rates[-1] == pytest.approx(0.1 if schedule == "constant" else 0.002)


def test_the_budget_ends_with_whatever_ends_first() -> None:
    both = Budget(steps=10, seconds=100)
    assert both.share(5, 10) == 0.5
    assert both.share(5, 90) == 0.9
    assert Budget(steps=None, seconds=4).share(1000, 1) == 0.25


@pytest.mark.parametrize(("steps", "seconds", "said"), [(None, None, "neither"), (0, None, "steps"), (None, -1, "sec")])
def test_a_budget_of_nothing_is_refused(steps: int | None, seconds: float | None, said: str) -> None:
    with pytest.raises(UserError, match=said):
        Budget(steps=steps, seconds=seconds)
