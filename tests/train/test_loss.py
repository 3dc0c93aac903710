"""Our cross-entropy is torch's with label smoothing, summed: values and gradients, in pieces of any size."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from glassformer.train import loss
from glassformer.train.loss import cross_entropy

R, D, N = 37, 8, 50
Inputs = tuple[Tensor, Tensor, Tensor | None, Tensor]


def inputs(bias: bool = True, dtype: torch.dtype = torch.float32, r: int = R, n: int = N) -> Inputs:
    x, weight = torch.randn(r, D, dtype=dtype), torch.randn(n, D, dtype=dtype)
    b = torch.randn(n, dtype=dtype).requires_grad_() if bias else None
    return x.requires_grad_(), weight.requires_grad_(), b, torch.randint(n, (r,))


def textbook(x: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float) -> Tensor:
    return F.cross_entropy(F.linear(x, weight, bias), targets, reduction="sum", label_smoothing=smoothing)


def gradients(total: Tensor, given: Inputs) -> list[Tensor]:
    return list(torch.autograd.grad(total, [t for t in given[:3] if t is not None]))


@pytest.mark.parametrize("piece", [1, 20 * N, R * N, 1 << 23])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_equals_torch(
    monkeypatch: pytest.MonkeyPatch, piece: int, bias: bool, smoothing: float, dtype: torch.dtype, tolerance: float
) -> None:
    monkeypatch.setattr(loss, "PIECE", piece)
    given = inputs(bias, dtype)
    ours, theirs = cross_entropy(*given, smoothing), textbook(*given, smoothing)
    assert ours.dtype == dtype
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
    # Scaled, as by a mean over the tokens of several batches.
    for mine, other in zip(gradients(ours / 7.5, given), gradients(theirs / 7.5, given), strict=True):
        torch.testing.assert_close(mine, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_gradcheck(monkeypatch: pytest.MonkeyPatch, bias: bool, smoothing: float) -> None:
    monkeypatch.setattr(loss, "PIECE", 1)
    x, weight, b, targets = inputs(bias, torch.float64, r=18, n=5)
    assert torch.autograd.gradcheck(lambda x, w, b: cross_entropy(x, w, b, targets, smoothing), (x, weight, b))


def test_large_scores_do_not_overflow() -> None:
    x, weight, b, targets = inputs()
    given = (x.detach() * 1000, weight, b, targets)
    torch.testing.assert_close(cross_entropy(*given, 0.1), textbook(*given, 0.1), rtol=1e-5, atol=1e-2)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradient(monkeypatch: pytest.MonkeyPatch, mode: type) -> None:
    given = inputs()
    expected = cross_entropy(*given, 0.1).detach()

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a gradient was made in vain")

    monkeypatch.setattr(torch, "zeros_like", never)
    with mode():
        found = cross_entropy(*given, 0.1)
    assert not found.requires_grad
    assert torch.equal(found, expected)


def test_frozen_table_leaves_the_gradient_of_the_states() -> None:
    x, weight, b, targets = inputs()
    fixed = (x, weight.detach(), None if b is None else b.detach(), targets)
    (mine,) = torch.autograd.grad(cross_entropy(*fixed, 0.1), x)
    (other,) = torch.autograd.grad(textbook(*fixed, 0.1), x)
    torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-5)


def test_tied_table_gathers_both_gradients() -> None:
    table = torch.randn(N, D, requires_grad=True)
    ids, targets = torch.randint(N, (R,)), torch.randint(N, (R,))
    (mine,) = torch.autograd.grad(cross_entropy(F.embedding(ids, table), table, None, targets, 0.1), table)
    (other,) = torch.autograd.grad(textbook(F.embedding(ids, table), table, None, targets, 0.1), table)
    torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("states", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("bias", [True, False])
def test_bf16_products_are_near(states: torch.dtype, bias: bool) -> None:
    given = inputs(bias)
    exact = cross_entropy(*given, 0.1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        near = cross_entropy(given[0].to(states), *given[1:], 0.1)
    assert near.dtype == torch.float32
    torch.testing.assert_close(near, exact, rtol=1e-2, atol=1e-2)
    for mine, other in zip(gradients(near, given), gradients(exact, given), strict=True):
        assert mine.dtype == torch.float32
        assert F.cosine_similarity(mine.flatten(), other.flatten(), dim=0) > 0.999


def test_no_rows_cost_nothing() -> None:
    given = inputs(r=0)
    total = cross_entropy(*given, 0.1)
    assert total == 0
    assert all(not g.any() for g in gradients(total, given))
