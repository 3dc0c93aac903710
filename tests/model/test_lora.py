"""LoRA: nothing before training, the detour alone in training, and the same output after merging."""

import copy

import pytest
import torch

from glassformer import config
from glassformer.errors import UserError
from glassformer.model import DecoderOnly, EncoderDecoder, Transformer, build
from glassformer.model.lora import LoraLinear, LoraSettings, add_lora, merge_lora
from glassformer.model.settings import DecoderOnlySettings, EncoderDecoderSettings

STACK = {"d_model": 16, "n_layers": 2, "dropout": 0.0, "attention": {"n_heads": 2}, "feed_forward": {"d_ff": 24}}
TOKENS = {"kind": "tokens", "vocab_size": 11, "dropout": 0.0}
IDS = torch.tensor([[3, 5, 7, 4], [9, 2, 3, 3]])


def decoder() -> DecoderOnly:
    torch.manual_seed(0)
    model = build(config.parse(DecoderOnlySettings, {"source": TOKENS, "decoder": STACK}))
    assert isinstance(model, DecoderOnly)
    return model


def train(model: DecoderOnly, steps: int = 5) -> None:
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.02)
    for _ in range(steps):
        optimizer.zero_grad()
        model(IDS).log_softmax(-1)[..., 4].sum().neg().backward()
        optimizer.step()


def test_nothing_changes_before_training() -> None:
    model, before = decoder(), decoder()
    add_lora(model, LoraSettings())
    assert torch.equal(model(IDS), before(IDS))


@pytest.mark.parametrize("targets", [("w_q", "w_v"), ("w_q", "w_k", "w_v", "w_o", "w_1", "w_2")])
def test_only_the_detours_learn_and_merging_keeps_the_output(targets: tuple[str, ...]) -> None:
    model = decoder()
    base = {name: p.detach().clone() for name, p in model.named_parameters()}
    add_lora(model, LoraSettings(rank=3, targets=targets))
    train(model)
    after = {
        name.replace(".linear.", "."): p for name, p in model.named_parameters() if not name.endswith((".a", ".b"))
    }
    assert all(torch.equal(after[name], base[name]) for name in base)
    learned = model(IDS).detach()
    merge_lora(model)
    torch.testing.assert_close(model(IDS), learned, atol=1e-5, rtol=1e-5)
    assert {name: p.shape for name, p in model.named_parameters()} == {name: p.shape for name, p in base.items()}
    assert not any(isinstance(m, LoraLinear) for m in model.modules())
    assert not torch.allclose(learned, decoder()(IDS), atol=1e-2)
    changed = {name.split(".")[-2] for name, p in model.named_parameters() if not torch.equal(p, base[name])}
    assert changed == set(targets)


def test_few_weights_are_trained() -> None:
    model = decoder()
    add_lora(model, LoraSettings(rank=2, targets=("w_q",)))
    trained = {name: tuple(p.shape) for name, p in model.named_parameters() if p.requires_grad}
    assert set(trained.values()) == {(2, 16), (16, 2)}
    assert len(trained) == 4  # two layers


def test_same_as_the_formula() -> None:
    torch.manual_seed(1)
    linear = torch.nn.Linear(6, 4)
    lora = LoraLinear(copy.deepcopy(linear), LoraSettings(rank=2, alpha=6.0))
    torch.nn.init.normal_(lora.b)
    x = torch.randn(3, 6)
    wanted = x @ (linear.weight + 3.0 * lora.b @ lora.a).T + linear.bias
    torch.testing.assert_close(lora(x), wanted)


def test_encoder_decoders_have_detours_in_cross_attention_too() -> None:
    data = {"source": TOKENS, "target": TOKENS, "encoder": STACK, "decoder": STACK}
    model: Transformer = build(config.parse(EncoderDecoderSettings, data))
    assert isinstance(model, EncoderDecoder)
    add_lora(model, LoraSettings(targets=("w_v",)))
    assert sum(isinstance(m, LoraLinear) for m in model.modules()) == 6


@pytest.mark.parametrize(
    ("settings", "answer"),
    [
        ({"targets": ("w_x",)}, "names w_x, which the model lacks"),
        ({"targets": ()}, "lora.targets is empty"),
        ({"rank": 0}, "rank is 0"),
        ({"alpha": 0.0}, "lora.alpha is 0.0"),
        ({"dropout": 1.5}, "dropout is 1.5"),
    ],
    ids=str,
)
def test_senseless_settings_are_refused(settings: dict[str, object], answer: str) -> None:
    with pytest.raises(UserError, match=answer):
        add_lora(decoder(), LoraSettings(**settings))  # type: ignore[arg-type]
