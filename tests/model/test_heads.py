"""Each head computes what it says; dropout acts where and when it should; the device is chosen, never guessed."""

import dataclasses
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from glassformer.errors import UserError
from glassformer.model import build, choose_device, count_parameters
from glassformer.model.dropout import Dropout
from glassformer.model.heads import EmbeddingHead, PooledHead, TokenHead, build_head
from glassformer.model.layers import Activate, FeedForward
from glassformer.model.settings import (
    AttentionSettings,
    ClassHeadSettings,
    EmbeddingHeadSettings,
    EncoderOnlySettings,
    FeedForwardSettings,
    FramesSettings,
    NormSettings,
    PatchesSettings,
    RegressionHeadSettings,
    TokenHeadSettings,
    VectorsSettings,
)
from tests.builders import close, left_keep, random_ids, random_input, right_keep, stack, tokens

D = 6
X = torch.randn(3, 5, D, generator=torch.Generator().manual_seed(9))


@pytest.mark.parametrize("bias", [False, True])
def test_a_token_head_is_one_matrix(bias: bool) -> None:
    head = TokenHead(TokenHeadSettings(bias=bias), D, 11)
    close(head(X), X @ head.w.weight.T + (head.w.bias if bias else 0))
    assert (head.w.bias is not None) == bias


def test_a_token_head_with_a_transform_is_berts() -> None:
    head = TokenHead(TokenHeadSettings(transform="gelu", norm=NormSettings(eps=1e-12)), D, 11)
    inner = F.gelu(X @ head.transform.w.weight.T + head.transform.w.bias)
    close(head(X), F.layer_norm(inner, (D,), eps=1e-12) @ head.w.weight.T)


POOLED = {
    "first": lambda x, keep: x[keep][0],
    "last": lambda x, keep: x[keep][-1],
    "mean": lambda x, keep: x[keep].mean(0),
}


@pytest.mark.parametrize("pooling", POOLED)
@pytest.mark.parametrize("make_keep", [left_keep, right_keep, None])
@pytest.mark.parametrize("transform", [None, "tanh"])
def test_pooled_heads_pool_what_is_real_then_transform_and_project(
    pooling: Any, make_keep: Any, transform: Any
) -> None:
    keep = None if make_keep is None else make_keep([5, 3, 1], 5)
    real = torch.ones(3, 5, dtype=torch.bool) if keep is None else keep
    pooled = torch.stack([POOLED[pooling](x, k) for x, k in zip(X, real, strict=True)])

    def transformed(head: Any) -> torch.Tensor:
        return pooled if transform is None else torch.tanh(pooled @ head.transform.w.weight.T + head.transform.w.bias)

    for settings, n in ((ClassHeadSettings(n_classes=4), 4), (RegressionHeadSettings(n_values=2), 2)):
        head = build_head(dataclasses.replace(settings, pooling=pooling, transform=transform), D, 0).eval()
        assert isinstance(head, PooledHead)
        close(head(X, keep), transformed(head) @ head.w.weight.T + head.w.bias)
        assert head(X, keep).shape == (3, n)
    embed = EmbeddingHead(EmbeddingHeadSettings(pooling=pooling, transform=transform, normalise=False), D)
    close(embed(X, keep), transformed(embed))
    embed.normalise = True
    close(embed(X, keep), transformed(embed) / transformed(embed).norm(dim=-1, keepdim=True))


def test_pooling_over_nothing_gives_numbers() -> None:
    for pooling in POOLED:
        head = EmbeddingHead(EmbeddingHeadSettings(pooling=pooling), D)  # type: ignore[arg-type]
        assert head(X, torch.zeros(3, 5, dtype=torch.bool)).isfinite().all()


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("relu", lambda x: x.clamp(min=0)),
        ("gelu", lambda x: x * 0.5 * (1 + torch.erf(x / 2**0.5))),
        ("gelu_tanh", lambda x: 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)))),
        ("silu", lambda x: x / (1 + torch.exp(-x))),
        ("tanh", torch.tanh),
    ],
)
@pytest.mark.parametrize("gated", [False, True])
def test_the_feed_forward_layer_is_its_formula(name: Any, formula: Any, gated: bool) -> None:
    close(Activate(name)(X), formula(X))
    layer = FeedForward(FeedForwardSettings(d_ff=8, activation=name, gated=gated), D)
    hidden = layer.w_1(X)
    hidden = formula(layer.w_gate(X)) * hidden if gated else formula(hidden)
    close(layer(X), layer.w_2(hidden))


# Each place alone: the front-end, the attention weights, the hidden layer, the sub-layers' outputs, the head.
PLACES: dict[str, dict[str, Any]] = {
    "tokens": {"source": tokens(dropout=0.5)},
    "vectors": {"source": VectorsSettings(n_features=6, dropout=0.5)},
    "frames": {"source": FramesSettings(n_features=6, dropout=0.5)},
    "patches": {"source": PatchesSettings(height=8, width=12, n_channels=2, patch=4, dropout=0.5)},
    "weights": {"encoder": stack(attention=AttentionSettings(n_heads=4, dropout=0.5))},
    "hidden": {"encoder": stack(feed_forward=FeedForwardSettings(d_ff=24, dropout=0.5))},
    "sub-layers": {"encoder": stack(dropout=0.5)},
    "head": {"head": ClassHeadSettings(dropout=0.5)},
    "nowhere": {},
}


@pytest.mark.parametrize("place", PLACES)
def test_each_dropout_acts_in_training_and_only_there(place: str) -> None:
    plain: dict[str, Any] = {"source": tokens(), "encoder": stack(), "head": ClassHeadSettings(dropout=0.0)}
    model = build(EncoderOnlySettings(**(plain | PLACES[place]), init_std=0.5))
    raw = random_input(place if place in ("vectors", "frames", "patches") else "tokens", 2, 8)
    model.eval()
    calm = model(raw)
    assert torch.equal(model(raw), calm)
    model.train()
    if place == "nowhere":
        assert torch.equal(model(raw), calm)
    else:
        assert not torch.allclose(model(raw), model(raw), atol=1e-6)


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_dropout_zeroes_its_share_keeps_the_mean_and_sends_the_gradient_the_same_way(p: float) -> None:
    dropout, x = Dropout(p), torch.ones(301, 701, requires_grad=True)
    out = dropout(x)
    assert (out == 0).float().mean().item() == pytest.approx(p, abs=0.005)
    assert out.mean().item() == pytest.approx(1, abs=0.02)
    assert torch.equal(torch.autograd.grad(out.sum(), x)[0], out)
    rows = (out == 0).float().mean(1)
    assert rows.std().item() == pytest.approx((p * (1 - p) / 701) ** 0.5, rel=0.2)  # as independent draws would be
    dropout.eval()
    assert dropout(x) is x


def test_shared_weights_count_once() -> None:
    settings = EncoderOnlySettings(source=tokens(), encoder=stack(), tie_output=True)
    tied, untied = build(settings), build(dataclasses.replace(settings, tie_output=False))
    assert count_parameters(untied) - count_parameters(tied) == 29 * 16
    assert tied(random_ids(1, 3)).shape == untied(random_ids(1, 3)).shape


def test_a_device_is_taken_or_refused_and_never_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    def machine(cuda: int, mps: bool) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)

    machine(cuda=0, mps=False)
    assert choose_device() == torch.device("cpu")
    assert choose_device("cpu") == torch.device("cpu")
    for name, said in (("cuda", "not available"), ("mps", "not available"), ("tpu", "no device"), ("", "no device")):
        with pytest.raises(UserError, match=said) as caught:
            choose_device(name)
        assert "auto" in caught.value.hint
        assert "cpu" in caught.value.hint
    with pytest.raises(UserError, match="no device 'cpu:x'"):
        choose_device("cpu:x")
    machine(cuda=2, mps=False)
    assert choose_device() == torch.device("cuda")
    assert choose_device("cuda:1") == torch.device("cuda:1")
    assert choose_device("cpu") == torch.device("cpu")
    with pytest.raises(UserError, match="cuda has 2, counted from 0"):
        choose_device("cuda:2")
    machine(cuda=0, mps=True)
    assert choose_device() == torch.device("mps")
