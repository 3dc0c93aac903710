"""Options at the edges of what can be computed."""

import pytest
import torch

from glassformer.decode.choose import Said, choose_next
from glassformer.decode.complete_options import CompleteOptions
from glassformer.decode.options import DecodeOptions
from glassformer.errors import UserError


@pytest.mark.parametrize(
    "given",
    [
        {"length_penalty": 1000.0},
        {"length_penalty": -0.1},
        {"length_penalty": float("nan")},
        {"temperature": 1e-40},
        {"temperature": 0.0},
    ],
)
def test_what_would_overflow_is_refused(given: dict[str, float]) -> None:
    [name] = given
    with pytest.raises(UserError, match=name):
        DecodeOptions(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [{"beam": 100_000}, {"beam": 1001, "nbest": 1001}])
def test_what_would_take_minutes_is_refused(given: dict[str, int]) -> None:
    with pytest.raises(UserError, match=rf"{list(given)[-1]} is {given['beam']}\. It must be 1 to 1,000\."):
        DecodeOptions(**given)  # type: ignore[arg-type]
    assert DecodeOptions(beam=1000, nbest=1000).beam == 1000


def test_the_strongest_penalty_can_be_computed() -> None:
    assert 1 / 100_000 ** DecodeOptions(length_penalty=10).length_penalty > 0


@pytest.mark.parametrize("temperature", [0.0, 1e-40, 1e-7])
def test_a_temperature_near_zero_takes_the_best(temperature: float) -> None:
    options = CompleteOptions(temperature=temperature)
    scores = torch.tensor([[1.0, 3.0, 2.9], [50.0, -50.0, 49.9]])
    said = [Said([0], 1), Said([0], 1)]
    found = choose_next(scores, said, options, [torch.Generator().manual_seed(i) for i in range(2)])
    assert [chosen.id for chosen in found] == [1, 0]
    assert options == CompleteOptions(temperature=0)
