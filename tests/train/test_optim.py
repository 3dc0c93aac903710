"""Adam as torch has it; only matrices decay."""

import pytest
import torch
from torch import nn

from glassformer.errors import UserError
from glassformer.model import build
from glassformer.sizes import load_size
from glassformer.train.optim import build_optimizer, speed_of
from glassformer.train.settings import FineTuning, TrainSettings


def small_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3))


def take_steps(model: nn.Module, optimizer: torch.optim.Optimizer, n: int = 5) -> None:
    x = torch.arange(8.0).view(2, 4) / 8
    for _ in range(n):
        optimizer.zero_grad()
        (model(x) ** 3).sum().backward()
        optimizer.step()


def test_without_decay_it_is_adam() -> None:
    ours, theirs = small_model(), small_model()
    settings = TrainSettings(lr=0.01, betas=(0.8, 0.9), eps=1e-6)
    take_steps(ours, build_optimizer(ours, settings))
    take_steps(theirs, torch.optim.Adam(theirs.parameters(), lr=0.01, betas=(0.8, 0.9), eps=1e-6))
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other)


def test_only_matrices_decay() -> None:
    model = small_model()
    optimizer = build_optimizer(model, TrainSettings(lr=0.1, weight_decay=0.5))
    before = [p.detach().clone() for p in model.parameters()]
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step()
    for old, new in zip(before, model.parameters(), strict=True):
        torch.testing.assert_close(new.detach(), old * (1 - 0.1 * 0.5) if old.dim() == 2 else old)


def test_frozen_parameters_are_left_out() -> None:
    model = small_model()
    model[1].requires_grad_(False)  # type: ignore[index]
    optimizer = build_optimizer(model, TrainSettings())
    assert sum(len(group["params"]) for group in optimizer.param_groups) == 2
    model[0].bias.requires_grad_(False)  # type: ignore[index]
    assert len(build_optimizer(model, TrainSettings()).param_groups) == 1


def test_lower_layers_learn_slower_and_the_head_faster() -> None:
    changes = ["source.vocab_size=20", "encoder.d_model=16", "encoder.n_layers=3"]
    model = build(load_size("classify-tiny", changes))
    settings = FineTuning(layer_decay=0.5, head_speed=4.0, weight_decay=0.1)
    speeds = {name: speed_of(name, model, settings) for name, _ in model.named_parameters()}
    assert speeds["head.w.weight"] == 4.0
    assert speeds["encoder.norm.weight"] == speeds["encoder.blocks.2.feed_forward.w_1.weight"] == 1.0
    assert speeds["encoder.blocks.1.self_attention.w_q.weight"] == 0.5
    assert speeds["encoder.blocks.0.self_attention.w_q.bias"] == 0.25
    assert speeds["source.embedding.weight"] == 0.125
    groups = build_optimizer(model, settings).param_groups
    found = {id(p): (group["speed"], group["weight_decay"]) for group in groups for p in group["params"]}
    for name, parameter in model.named_parameters():
        assert found[id(parameter)] == (speeds[name], 0.1 if parameter.dim() >= 2 else 0.0)


def test_without_fine_tuning_all_learn_alike() -> None:
    groups = build_optimizer(small_model(), TrainSettings()).param_groups
    assert [group["speed"] for group in groups] == [1.0, 1.0]


@pytest.mark.parametrize("change", [{"layer_decay": 0.0}, {"layer_decay": 1.5}, {"head_speed": 0.0}])
def test_speeds_out_of_range(change: dict[str, float]) -> None:
    with pytest.raises(UserError, match=f"train.{next(iter(change))} is"):
        FineTuning(**change)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("lr", 0.0, "train.lr is 0.0, but it must be above 0"),
        ("minutes", 0.0, "train.minutes is 0.0, but it must be above 0"),
        ("warmup", -1, "train.warmup is -1, but it must be 0 or more"),
        ("betas", (0.9, 1.0), "train.betas is (0.9, 1.0), but both are shares"),
    ],
)
def test_settings_out_of_range(setting: str, value: object, message: str) -> None:
    with pytest.raises(UserError) as caught:
        TrainSettings(**{setting: value})  # type: ignore[arg-type]
    assert message in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("setting", "value"), [("accumulate", 0), ("steps", 0), ("average", 0), ("clip", -1.0), ("ema", 1.5)]
)
def test_numbers_out_of_range(setting: str, value: object) -> None:
    with pytest.raises(UserError, match=setting):
        TrainSettings(**{setting: value})  # type: ignore[arg-type]
