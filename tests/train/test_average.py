"""The running mean follows its formula, by name; the plain mean is the plain mean."""

import pytest
import torch
from torch import Tensor, nn

from glassformer.train.average import RunningMean, mean_of
from tests.train.toy import ToyModel


def drift(model: nn.Module) -> None:
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p))


@pytest.mark.parametrize("decay", [0.5, 0.999])
def test_running_mean_is_its_formula(decay: float) -> None:
    model = ToyModel().double()
    mean = RunningMean(model, decay)
    expected = {name: p.detach().clone() for name, p in model.named_parameters()}
    for step in range(1, 30):
        drift(model)
        mean.update(model, step)
        share = min(decay, step / (step + 10))
        for name, p in model.named_parameters():
            expected[name] = share * expected[name] + (1 - share) * p.detach()
    for name, tensor in mean.tensors.items():
        torch.testing.assert_close(tensor, expected[name], rtol=1e-12, atol=1e-12)


def test_running_mean_is_its_own_copy() -> None:
    model = ToyModel()
    mean = RunningMean(model, 0.9)
    before = {name: t.clone() for name, t in mean.tensors.items()}
    drift(model)
    assert all(torch.equal(before[name], t) for name, t in mean.tensors.items())


def test_loaded_in_another_order_it_goes_on_the_same() -> None:
    model = ToyModel()
    first, second = RunningMean(model, 0.9), RunningMean(model, 0.9)
    drift(model)
    first.update(model, 50)
    second.load(dict(sorted(first.tensors.items())))
    drift(model)
    for mean in (first, second):
        mean.update(model, 51)
    assert all(torch.equal(first.tensors[name], second.tensors[name]) for name in first.tensors)


def test_mean_of() -> None:
    models: list[dict[str, Tensor]] = [{"a": torch.full((2,), float(i)), "b": torch.eye(2) * i} for i in (1, 2, 6)]
    mean = mean_of(models)
    assert mean["a"].tolist() == [3, 3]
    assert torch.equal(mean["b"], torch.eye(2) * 3)


def test_mean_of_halves_is_taken_in_fp32() -> None:
    mean = mean_of([{"a": torch.tensor([1000.0]).half()}, {"a": torch.tensor([1001.0]).half()}])
    assert mean["a"].dtype == torch.float32
    assert mean["a"].item() == 1000.5
