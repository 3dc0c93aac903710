"""Linear layers in 8 bits: near the fp32 ones, at the same paths, and the model itself untouched."""

import pytest
import torch
from torch import nn

from glassformer.decode.options import DecodeOptions
from glassformer.fast.int8 import Int8Linear, quantise_int8
from glassformer.model.stack import Stack
from glassformer.tasks.backend import TorchBackend
from tests.builders import decoder_only, encoder_only, random_ids
from tests.fast.models import SETTINGS, lively, requests


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(3, 64), (2, 5, 64)])
@torch.inference_mode()
def test_one_layer(bias: bool, shape: tuple[int, ...]) -> None:
    linear = nn.Linear(64, 48, bias=bias)
    linear.weight[7] = 0
    linear.weight[8] *= 1000  # a loud row of the weight must not blur the others
    x = torch.randn(shape)
    x[0] *= 1000  # nor one of the input
    small = Int8Linear(linear)
    exact, rounded = linear(x), small(x)
    assert rounded.shape == exact.shape
    others = [i for i in range(48) if i != 8]
    for row, near in zip(exact[..., others].flatten(0, -2), rounded[..., others].flatten(0, -2), strict=True):
        assert (row - near).norm() <= 0.03 * row.norm()
    assert torch.allclose(rounded[..., 7], exact[..., 7], atol=1e-6)
    assert torch.equal(small(x[1:2]), rounded[1:2])
    assert torch.allclose(small(0 * x), linear(0 * x))


@pytest.mark.parametrize("name", SETTINGS)
@torch.inference_mode()
def test_a_model_keeps_its_paths_and_nearly_its_logits(name: str) -> None:
    model = lively(SETTINGS[name])
    before = {path: weight.clone() for path, weight in model.state_dict().items()}
    small = quantise_int8(model)
    assert [path for path, _ in small.named_modules()] == [path for path, _ in model.named_modules()]
    source, target = random_ids(4, 9) % 19, random_ids(4, 6, seed=2) % 19
    exact, rounded = model(source, target), small(source, target)
    assert (exact - rounded).norm() / exact.norm() < 0.06
    assert all(torch.equal(weight, before[path]) for path, weight in model.state_dict().items())
    assert not any(isinstance(m, Int8Linear) for m in model.modules())
    left = [m for part in (small.encoder, small.decoder, small.head) for m in part.modules()]
    assert not any(isinstance(m, nn.Linear) for m in left)


def test_other_shapes_too() -> None:
    for model in (decoder_only(), encoder_only()):
        small = quantise_int8(model)
        stacks = [m for m in small.modules() if isinstance(m, Stack)]
        assert stacks
        assert not any(isinstance(m, nn.Linear) for stack in stacks for m in stack.modules())
        with torch.inference_mode():
            exact, rounded = model(random_ids(2, 5)), small(random_ids(2, 5))
        assert (exact - rounded).norm() / exact.norm() < 0.06


def test_the_torch_engine_runs_it() -> None:
    model = lively({})
    backend = TorchBackend(quantise_int8(model), name="torch int8")
    asked, options = requests(20), DecodeOptions(max_len=12)
    answers = backend.generate(asked, options)
    exact = TorchBackend(model).generate(asked, options)
    assert backend.name == "torch int8"
    assert sum(a[0].ids[:1] == b[0].ids[:1] for a, b in zip(answers, exact, strict=True)) >= 12
    assert all(abs(a[0].score - b[0].score) < 0.5 for a, b in zip(answers, exact, strict=True))
