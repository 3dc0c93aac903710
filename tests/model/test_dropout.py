"""Dropout by bytes: the rate, the mean and the independence of torch's, and the same numbers again from a seed."""

import pytest
import torch
from torch import Tensor

from glassformer.model.attention import ScaledDotProduct
from glassformer.model.dropout import Dropout, set_strength

SIZE = 400_003  # no multiple of eight
RATES = [0.05, 0.1, 0.3, 0.5, 0.9]


def zeros(p: float, n: int = SIZE) -> Tensor:
    """Where a row of ones was dropped."""
    return Dropout(p)(torch.ones(n)) == 0


def correlation(a: Tensor, b: Tensor) -> float:
    return float(torch.corrcoef(torch.stack([a.float(), b.float()]))[0, 1])


@pytest.mark.parametrize("p", RATES)
def test_rate_is_within_bounds(p: float) -> None:
    rate = round(p * 256) / 256
    sigma = (rate * (1 - rate) / SIZE) ** 0.5
    assert abs(float(zeros(p).float().mean()) - rate) < 4 * sigma
    assert abs(rate - p) <= 1 / 512


@pytest.mark.parametrize("p", RATES)
def test_mean_is_kept(p: float) -> None:
    y = Dropout(p)(torch.full((SIZE,), 3.0))
    sigma = 3 * (p / (1 - p) / SIZE) ** 0.5
    assert abs(float(y.mean()) - 3) < 4 * sigma
    assert len(y.unique()) == 2  # nothing, or scaled up


@pytest.mark.parametrize(("p", "threshold"), [(1e-6, 1), (0.999999, 255), (1.0, 255)])
def test_extreme_rates_stay_possible(p: float, threshold: int) -> None:
    dropout = Dropout(p)
    assert dropout.threshold == threshold
    assert Dropout(p)(torch.ones(1000)).isfinite().all()


def test_calls_are_independent() -> None:
    dropout, x = Dropout(0.3), torch.ones(SIZE)
    assert abs(correlation(dropout(x) == 0, dropout(x) == 0)) < 4 / SIZE**0.5


@pytest.mark.parametrize("distance", [1, 2, 3, 4, 7, 8, 16, 64])
def test_positions_are_independent(distance: int) -> None:
    dropped = zeros(0.3)
    assert abs(correlation(dropped[distance:], dropped[:-distance])) < 4 / SIZE**0.5


def test_each_byte_of_a_draw_has_the_same_rate() -> None:
    rate = round(0.3 * 256) / 256
    n = SIZE // 8
    for place in zeros(0.3)[: n * 8].view(n, 8).float().mean(dim=0).tolist():
        assert abs(place - rate) < 4.5 * (rate * (1 - rate) / n) ** 0.5


def test_gradient_uses_the_same_mask() -> None:
    x = torch.randn(50, 33, requires_grad=True)
    y = Dropout(0.4)(x)
    y.backward(torch.full_like(y, 2.0))
    scale = 256 / (256 - round(0.4 * 256))
    assert x.grad is not None
    torch.testing.assert_close(x.grad, torch.where(y == 0, 0.0, 2 * scale))


@pytest.mark.parametrize("dropout", [Dropout(0.0), Dropout(0.5).eval()])
def test_off_is_the_same_tensor_and_draws_nothing(dropout: Dropout) -> None:
    x, before = torch.randn(9), torch.get_rng_state()
    assert dropout(x) is x
    assert torch.equal(torch.get_rng_state(), before)


def test_seed_and_restored_state_give_the_same_masks() -> None:
    dropout, x = Dropout(0.5), torch.ones(1001)
    torch.manual_seed(7)
    first = dropout(x)
    state = torch.get_rng_state()
    second = dropout(x)
    torch.set_rng_state(state)
    assert torch.equal(dropout(x), second)
    torch.manual_seed(7)
    assert torch.equal(dropout(x), first)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (2, 3, 5), (8,)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_any_shape_and_dtype(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    y = Dropout(0.5)(torch.ones(shape, dtype=dtype))
    assert y.shape == shape
    assert y.dtype == dtype


def test_not_contiguous_input() -> None:
    x = torch.randn(6, 10).T
    y = Dropout(0.5)(x)
    kept = y != 0
    torch.testing.assert_close(y[kept], x[kept] * 2)


def test_strength_scales_the_rate_of_all_parts() -> None:
    model = torch.nn.Sequential(Dropout(0.5), torch.nn.Linear(2, 2), Dropout(0.25), ScaledDotProduct(0.5))
    set_strength(model, 0.5)
    x = torch.ones(40_000)
    for part, p in ((model[0], 0.25), (model[2], 0.125)):
        dropped = part(x)
        assert float((dropped == 0).float().mean()) == pytest.approx(p, abs=0.02)
        assert float(dropped.mean()) == pytest.approx(1.0, abs=0.02)
    assert model[3].strength == 0.5
    set_strength(model, 0.0)
    assert torch.equal(model[0](x), x)
