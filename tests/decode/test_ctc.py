"""CTC prefix scores are sums over all paths: compared with a sum that really goes over all of them, and with torch."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from glassformer.decode.beam import beam_search
from glassformer.decode.ctc import BLANK, CtcPrefixes, JointSteps, likeliest_path
from glassformer.decode.options import DecodeOptions
from tests.decode import tables

END, N = 2, 5  # the blank, a start, the end, and two words


def frames(t: int, seed: int, s: int = 1) -> Tensor:
    return torch.randn(s, t, N, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).log_softmax(-1)


def collapse(path: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(token for token, _ in itertools.groupby(path) if token != BLANK)


def by_all_paths(log_p: Tensor) -> dict[tuple[int, ...], float]:
    """The probability of each whole answer."""
    totals: dict[tuple[int, ...], float] = {}
    for path in itertools.product(range(N), repeat=len(log_p)):
        p = math.exp(sum(float(log_p[t, token]) for t, token in enumerate(path)))
        totals[collapse(path)] = totals.get(collapse(path), 0.0) + p
    return totals


def prefix_score(prefix: tuple[int, ...], log_p: Tensor) -> CtcPrefixes:
    found = CtcPrefixes(log_p, None, 1, END)
    for token in prefix:
        found.extend(torch.tensor([token]))
    return found


@given(st.integers(1, 5), st.integers(0, 100), st.lists(st.sampled_from([1, 3, 4]), max_size=3))
def test_prefix_scores_sum_over_all_paths(t: int, seed: int, prefix: list[int]) -> None:
    log_p = frames(t, seed)
    whole = by_all_paths(log_p[0])
    found = prefix_score(tuple(prefix), log_p)
    total = sum(p for answer, p in whole.items() if answer[: len(prefix)] == tuple(prefix))
    assert math.exp(float(found.total)) == pytest.approx(total, abs=1e-9)
    if total < 1e-9:
        return
    scores = found.scores()[0].exp()
    for token in (1, 3, 4):
        longer = (*prefix, token)
        wanted = sum(p for answer, p in whole.items() if answer[: len(longer)] == longer)
        assert float(scores[token]) == pytest.approx(wanted / total, abs=1e-9)
    assert float(scores[END]) == pytest.approx(whole.get(tuple(prefix), 0.0) / total, abs=1e-9)


@given(st.integers(4, 60), st.integers(0, 100), st.lists(st.sampled_from([1, 3, 4]), min_size=1, max_size=4))
def test_a_whole_answer_is_torchs_ctc_loss(t: int, seed: int, answer: list[int]) -> None:
    log_p = frames(t, seed)
    found = prefix_score(tuple(answer), log_p)
    total = float(found.total + found.scores()[0, END])
    loss = F.ctc_loss(
        log_p.transpose(0, 1), torch.tensor([answer]), torch.tensor([t]), torch.tensor([len(answer)]), blank=BLANK
    )
    wanted = float(loss) * len(answer)  # the default is the mean over the answer
    if math.isfinite(wanted):
        assert -total == pytest.approx(wanted, rel=1e-9)
    else:
        assert total < -1e4


def test_padding_changes_nothing_and_rows_may_move() -> None:
    log_p = frames(7, 1, s=2)
    keep = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    both = CtcPrefixes(log_p, keep, 2, END)
    both.extend(torch.tensor([3, 4, 3, 4]))
    alone = prefix_score((4,), log_p[1:, :4])
    assert torch.allclose(both.scores()[3].exp(), alone.scores()[0].exp(), atol=1e-9)
    both.select(torch.tensor([3, 2]), torch.tensor([1]))
    assert torch.allclose(both.scores()[0].exp(), alone.scores()[0].exp(), atol=1e-9)
    both.extend(torch.tensor([4, 3]))
    longer = prefix_score((4, 4), log_p[1:, :4])
    assert torch.allclose(both.scores()[0].exp(), longer.scores()[0].exp(), atol=1e-9)


def test_impossible_answers_stay_numbers() -> None:
    found = prefix_score((3, 3, 3, 3), frames(2, 0))
    assert bool(found.scores().isfinite().all())


def test_joint_search_finds_the_best_of_both() -> None:
    """A beam that holds everything finds the answer with the best weighted sum, found here by trying all."""
    log_p = frames(4, 5)
    weight, longest = 0.4, 3
    ctc = CtcPrefixes(log_p, None, 40, END)
    steps = JointSteps(tables.TableSteps(1, 40, N), ctc, weight)
    options = DecodeOptions(beam=40, length_penalty=0.0, max_len=longest + 1)
    found = beam_search(steps, torch.tensor([[1]]), options, END, normalise=False)[0][0]
    whole = by_all_paths(log_p[0])

    def joint(answer: tuple[int, ...]) -> float:
        path = (1, *answer, END)
        said = sum(float(tables.log_p(0, 0, path[:i], N)[path[i]]) for i in range(1, len(path)))
        return (1 - weight) * said + weight * math.log(whole[answer])

    answers = [a for n in range(longest + 1) for a in itertools.product((1, 3, 4), repeat=n) if whole.get(a, 0) > 0]
    best = max(answers, key=joint)
    assert tuple(found.ids) == best
    assert found.score == pytest.approx(joint(best), abs=1e-4)


@given(st.integers(1, 6), st.integers(0, 100), st.lists(st.sampled_from([1, 3, 4]), min_size=1, max_size=4))
def test_the_likeliest_path_is_the_best_of_all(t: int, seed: int, answer: list[int]) -> None:
    log_p = frames(t, seed)[0]
    paths = [p for p in itertools.product([BLANK, *set(answer)], repeat=t) if collapse(p) == tuple(answer)]
    found = likeliest_path(log_p.numpy(), answer)
    if not paths:
        assert found == []
        return
    best = max(paths, key=lambda path: sum(float(log_p[i, token]) for i, token in enumerate(path)))
    runs, place = [], 0
    for token, group in itertools.groupby(best):
        begin, place = place, place + len(list(group))
        runs += [(begin, place)] if token != BLANK else []
    assert found == runs


def test_no_token_has_no_path() -> None:
    assert likeliest_path(frames(3, 0)[0].numpy(), []) == []
