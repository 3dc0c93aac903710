"""The fused core = the textbook function, also where nothing may be seen; and gradients = finite differences."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck

from glassformer.model import ScaledDotProduct, attention
from glassformer.model.layers import FeedForward, Residual, build_norm
from glassformer.model.masks import look_ahead_mask
from glassformer.model.positions import LearnedPositions, Rotary, RotaryAngles, SinusoidalPositions
from glassformer.model.settings import (
    FeedForwardSettings,
    LearnedSettings,
    NormSettings,
    RotarySettings,
    SinusoidalSettings,
)
from tests.builders import close

B, N, M = 3, 5, 7
# query heads, key/value heads, d_k, d_v
HEADS = pytest.mark.parametrize("heads", [(4, 4, 8, 8), (4, 4, 6, 10), (4, 2, 8, 8), (4, 1, 3, 5)], ids=str)
MASKS = [(N, M), (1, M), (N, 1), (B, 1, 1, M), (B, 1, N, M), (B, 4, N, M), (1, 4, N, M), (B, 1, N, 1), (1, 1, 1, 1)]


def inputs(heads: tuple[int, int, int, int], dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    h, h_kv, d_k, d_v = heads
    shapes = [(B, h, N, d_k), (B, h_kv, M, d_k), (B, h_kv, M, d_v)]
    q, k, v = (torch.randn(*shape, dtype=dtype, requires_grad=True) for shape in shapes)
    return q, k, v


def textbook(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """With each key/value head written out for all the query heads it serves."""
    times = q.shape[1] // k.shape[1]
    return attention(q, torch.repeat_interleave(k, times, 1), torch.repeat_interleave(v, times, 1), mask)


def random_mask(shape: tuple[int, ...]) -> Tensor:
    """Half of it allowed, and the first query of all may look at nothing."""
    mask = torch.rand(shape) < 0.5
    mask[(*[0] * (len(shape) - 1),)] = False
    return mask


@HEADS
@pytest.mark.parametrize("shape", [None, *MASKS], ids=str)
def test_the_fused_core_gives_the_textbook_numbers_and_gradients(
    heads: tuple[int, int, int, int], shape: tuple[int, ...] | None
) -> None:
    q, k, v = inputs(heads)
    mask = None if shape is None else random_mask(shape)
    fused, (z, weights, _) = ScaledDotProduct()(q, k, v, mask), textbook(q, k, v, mask)
    assert weights.isfinite().all()
    close(fused, z)
    direction = torch.randn_like(z)
    for a, b in zip(
        torch.autograd.grad((fused * direction).sum(), (q, k, v)),
        torch.autograd.grad((z * direction).sum(), (q, k, v)),
        strict=True,
    ):
        assert a.isfinite().all()
        assert b.isfinite().all()
        close(a, b)


@HEADS
def test_in_mixed_precision_a_cpu_attends_in_fp32(heads: tuple[int, int, int, int]) -> None:
    q, k, v = (t.detach().bfloat16() for t in inputs(heads))
    mask = random_mask((B, 1, N, M))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        fused = ScaledDotProduct()(q, k, v, mask)
        assert (q.float() @ k.float()[:, :1].mT).dtype == torch.bfloat16  # all around it goes on as before
    assert fused.dtype == torch.float32
    close(fused, textbook(q.float(), k.float(), v.float(), mask)[0])


@HEADS
def test_the_causal_flag_is_the_look_ahead_mask(heads: tuple[int, int, int, int]) -> None:
    q, k, v = inputs(heads)
    k, v = k[:, :, :N], v[:, :, :N]
    core = ScaledDotProduct()
    close(core(q, k, v, causal=True), core(q, k, v, look_ahead_mask(N)))
    close(core(q, k, v, causal=True), textbook(q, k, v, look_ahead_mask(N))[0])


@HEADS
def test_a_query_that_may_look_at_nothing_gets_zero_weights_and_zero_gradients(
    heads: tuple[int, int, int, int],
) -> None:
    mask = torch.ones(B, 1, N, M, dtype=torch.bool)
    mask[1, :, 2] = False
    for core in (lambda *a: textbook(*a)[0], ScaledDotProduct()):
        q, k, v = inputs(heads)
        z = core(q, k, v, mask)
        assert (z[1, :, 2] == 0).all()
        assert (z[0, :, 2] != 0).all()
        gradients = torch.autograd.grad(z.square().sum() + z.sum(), (q, k, v))
        assert all(g.isfinite().all() for g in gradients)
        assert (gradients[0][1, :, 2] == 0).all()
    q, k, v = inputs(heads)
    assert (textbook(q, k, v, mask)[1][1, :, 2] == 0).all()


def test_dropout_on_the_weights_acts_in_training_only() -> None:
    q, k, v = inputs((4, 4, 8, 8))
    core = ScaledDotProduct(dropout=0.5)
    assert not torch.equal(core(q, k, v), core(q, k, v))
    core.eval()
    close(core(q, k, v), textbook(q, k, v, None)[0])


def test_attention_has_the_gradient_of_finite_differences() -> None:
    mask = random_mask((B, 1, N, M))
    q, k, v = (t[:2].detach().requires_grad_() for t in inputs((2, 2, 3, 4), torch.float64))
    core = ScaledDotProduct()
    assert gradcheck(lambda q, k, v: core(q, k, v, mask[:2]), (q, k, v))
    assert gradcheck(lambda q, k, v: attention(q, k, v, mask[:2])[:2], (q, k, v))


def _norm(kind: str, place: str) -> NormSettings:
    return NormSettings(kind=kind, place=place)  # type: ignore[arg-type]


def _sinusoidal() -> Callable[[Tensor], Tensor]:
    positions = SinusoidalPositions(SinusoidalSettings(), 6).double()
    return lambda x: x + positions(torch.arange(4))


def _learned() -> nn.Module:
    class Add(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.positions = LearnedPositions(LearnedSettings(max_len=9), 6)
            nn.init.normal_(self.positions.table)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = x + self.positions(torch.tensor([0, 3, 3, 8]))
            return out

    return Add()


def _rotary(layout: str) -> Callable[[Tensor], Tensor]:
    settings = RotarySettings(layout=layout)  # type: ignore[arg-type]
    angles, rotary = RotaryAngles(settings, 6)(torch.tensor([0, 1, 5, 90])), Rotary(settings)
    return lambda x: rotary(x[:, None], angles)


class _InResidual(nn.Module):
    def __init__(self, place: str) -> None:
        super().__init__()
        self.residual = Residual(_norm("layer", place), 6, 0.0)
        self.inner = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.residual(x, self.inner)
        return out


@pytest.mark.parametrize(
    "make",
    [
        lambda: build_norm(_norm("layer", "pre"), 6),
        lambda: build_norm(_norm("rms", "pre"), 6),
        lambda: FeedForward(FeedForwardSettings(d_ff=5, activation="gelu"), 6),
        lambda: FeedForward(FeedForwardSettings(d_ff=5, activation="silu", gated=True), 6),
        lambda: FeedForward(FeedForwardSettings(d_ff=5, activation="gelu_tanh", gated=True, bias=False), 6),
        lambda: _InResidual("pre"),
        lambda: _InResidual("post"),
        _sinusoidal,
        _learned,
        lambda: _rotary("halves"),
        lambda: _rotary("interleaved"),
    ],
    ids=["layer", "rms", "gelu", "swiglu", "geglu", "pre", "post", "waves", "learned", "halves", "interleaved"],
)
def test_each_part_has_the_gradient_of_finite_differences(make: Callable[[], Callable[[Tensor], Tensor]]) -> None:
    part = make()
    x = torch.randn(2, 4, 6, dtype=torch.float64, requires_grad=True)
    weights = list(part.double().parameters()) if isinstance(part, nn.Module) else []
    assert gradcheck(lambda x, *_: part(x), (x, *weights))
