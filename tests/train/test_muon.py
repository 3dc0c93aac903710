"""Muon against torch's own and against singular values; a stopped run goes on with the same numbers."""

import pytest
import torch
from hypothesis import given, settings, strategies
from torch import Tensor, nn

from glassformer.model import build
from glassformer.sizes import load_size
from glassformer.train.checkpoint import load_optimizer, optimizer_tensors
from glassformer.train.muon import Muon, evened
from glassformer.train.optim import build_optimizer
from glassformer.train.settings import TrainSettings


def matrix(m: int, n: int, seed: int = 0) -> Tensor:
    return torch.randn(m, n, generator=torch.Generator().manual_seed(seed))


@settings(max_examples=30, deadline=None)
@given(strategies.integers(2, 40), strategies.integers(2, 40), strategies.integers(0, 100))
def test_directions_stay_and_lengths_become_one(m: int, n: int, seed: int) -> None:
    x = matrix(m, n, seed)
    u, s, v = torch.linalg.svd(x, full_matrices=False)
    found = u.mT @ evened(x[None])[0] @ v.mT  # in the matrix's own directions it is diagonal
    torch.testing.assert_close(found, torch.diag(found.diagonal()), atol=1e-3, rtol=0)
    large = s > 0.02 * s.norm()  # what is tiny needs more rounds
    assert ((found.diagonal()[large] > 0.5) & (found.diagonal()[large] < 1.3)).all()


def test_steps_are_those_of_torch() -> None:
    """Torch computes the direction with 8 bits (bfloat16), so that only about the same can be asked."""
    ours, theirs = (nn.Parameter(matrix(24, 16)) for _ in range(2))
    mine = Muon([{"params": [ours], "muon": True, "weight_decay": 0.1}], lr=0.01)
    other = torch.optim.Muon([theirs], lr=0.01, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    for step in range(5):
        for p, optimizer in ((ours, mine), (theirs, other)):
            p.grad = matrix(24, 16, step + 1) + p.detach()
            optimizer.step()
    moved, expected = ours.detach() - matrix(24, 16), theirs.detach() - matrix(24, 16)
    assert (moved - expected).norm() < 0.02 * expected.norm()


def language_model() -> nn.Module:
    torch.manual_seed(0)
    return build(
        load_size("complete-tiny", ["source.vocab_size=11", "decoder.d_model=16", "decoder.n_layers=2"])
    ).eval()  # no dropout


def learn(model: nn.Module, optimizer: torch.optim.Optimizer, n: int) -> None:
    ids = torch.arange(20).view(2, 10) % 11
    for _ in range(n):
        optimizer.zero_grad()
        model(ids).square().mean().backward()
        optimizer.step()


def test_only_matrices_of_the_stacks_go_its_way_and_the_rest_is_adam() -> None:
    model = language_model()
    optimizer = build_optimizer(model, TrainSettings(lr=0.01, optimizer="muon"))
    names = {id(p): name for name, p in model.named_parameters()}
    chosen = {names[id(p)] for group in optimizer.param_groups if group["muon"] for p in group["params"]}
    assert chosen == {name for name, p in model.named_parameters() if ".blocks." in name and p.dim() == 2}
    learn(model, optimizer, 1)
    kinds = {name: set(optimizer.state[p]) for name, p in model.named_parameters()}
    assert all(
        kind == ({"step", "momentum"} if name in chosen else {"step", "exp_avg", "exp_avg_sq"})
        for name, kind in kinds.items()
    )


def test_a_stopped_run_goes_on_with_the_same_numbers() -> None:
    how = TrainSettings(lr=0.01, optimizer="muon")
    unbroken, broken = language_model(), language_model()
    learn(unbroken, build_optimizer(unbroken, how), 6)
    before = build_optimizer(broken, how)
    learn(broken, before, 3)
    after = build_optimizer(broken, how)
    load_optimizer(after, {name: t.clone() for name, t in optimizer_tensors(before).items()})
    learn(broken, after, 3)
    for mine, other in zip(broken.parameters(), unbroken.parameters(), strict=True):
        assert torch.equal(mine, other)


def test_its_length_is_that_of_adams_steps() -> None:
    p = nn.Parameter(torch.zeros(64, 64))
    optimizer = Muon([{"params": [p], "muon": True, "weight_decay": 0.0}], lr=0.01)
    p.grad = matrix(64, 64)
    optimizer.step()
    assert float(p.detach().square().mean().sqrt()) == pytest.approx(0.2 * 0.01, rel=0.3)
