"""The next token: penalties as published, draws as the distribution says."""

import math

import pytest
import torch
from transformers import RepetitionPenaltyLogitsProcessor

from glassformer.decode.choose import Said, choose_next, distribution, penalised
from glassformer.decode.complete_options import CompleteOptions
from glassformer.errors import UserError


def generators(n: int) -> list[torch.Generator]:
    return [torch.Generator().manual_seed(i) for i in range(n)]


def test_temperature_zero_takes_the_best_and_tells_its_probability() -> None:
    scores = torch.tensor([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]])
    found = choose_next(scores, [Said([], 0)] * 2, CompleteOptions(temperature=0), generators(2))
    assert [chosen.id for chosen in found] == [1, 0]
    assert found[0].log_p == pytest.approx(2 - math.log(1 + math.e**2 + math.e), abs=1e-6)


def test_repetition_penalty_equals_hugging_face() -> None:
    torch.manual_seed(0)
    scores, ids = torch.randn(2, 11), [[1, 4, 4], [0, 9, 2]]
    ours = penalised(scores, [Said(row, 1) for row in ids], CompleteOptions(repetition_penalty=1.7))
    theirs = RepetitionPenaltyLogitsProcessor(1.7)(torch.tensor(ids), scores.clone())
    torch.testing.assert_close(ours, theirs)


def test_frequency_and_presence_count_the_answer_only() -> None:
    scores = torch.zeros(1, 5)
    options = CompleteOptions(frequency_penalty=0.5, presence_penalty=0.25)
    found = penalised(scores, [Said([3, 3, 1, 2, 2], 2)], options)
    assert found.tolist() == [[0.0, -0.75, -1.25, 0.0, 0.0]]
    assert scores.eq(0).all()  # the given scores stay


def test_draws_follow_the_distribution() -> None:
    scores = torch.tensor([[2.0, 1.0, 0.0, -1.0]])
    options = CompleteOptions(temperature=0.7, top_k=3)
    shares = distribution(scores, [Said([], 0)], options)
    assert shares is not None
    assert shares[0].tolist() == pytest.approx([*(scores[0, :3] / 0.7).softmax(0).tolist(), 0.0])
    random = [torch.Generator().manual_seed(7)]
    counts = torch.zeros(4)
    for _ in range(4000):
        counts[choose_next(scores, [Said([], 0)], options, random)[0].id] += 1
    assert (counts / 4000).tolist() == pytest.approx(shares[0].tolist(), abs=0.03)
    assert counts[3] == 0


def test_alternatives_are_the_best_in_order() -> None:
    scores = torch.tensor([[0.0, 2.0, 1.0]])
    [found] = choose_next(scores, [Said([], 0)], CompleteOptions(temperature=0, alternatives=2), generators(1))
    assert [i for i, _ in found.alternatives] == [1, 2]
    assert found.alternatives[0][1] == pytest.approx(found.log_p)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_tokens": 0},
        {"temperature": -1},
        {"top_p": 0},
        {"min_p": 1},
        {"repetition_penalty": 0},
        {"stop": ("",)},
        {"n": 0},
        {"top_k": -1},
    ],
    ids=str,
)
def test_senseless_options_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UserError):
        CompleteOptions(**wrong)  # type: ignore[arg-type]
