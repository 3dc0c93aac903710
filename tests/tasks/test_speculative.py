"""A draft changes the speed, never the answers."""

import itertools
from pathlib import Path

import pytest
import torch

from glassformer import config
from glassformer.data.tokenizer import Tokenizer, train_tokenizer
from glassformer.decode.complete_options import CompleteOptions
from glassformer.errors import UserError
from glassformer.model import DecoderOnly, build
from glassformer.model.settings import DecoderOnlySettings
from glassformer.tasks.completer import Completer
from glassformer.tasks.generator import Generator
from glassformer.tasks.model_dir import LoadedModel
from glassformer.tasks.speculative import SpeculativeGenerator

N = 5


def model_of(seed: int, vocab_size: int = N, n_layers: int = 1) -> DecoderOnly:
    torch.manual_seed(seed)
    data = {
        "source": {"kind": "tokens", "vocab_size": vocab_size, "positions": "none"},
        "decoder": {
            "d_model": 8,
            "n_layers": n_layers,
            "attention": {"n_heads": 2, "rotary": {}},
            "feed_forward": {"d_ff": 8},
        },
    }
    model = build(config.parse(DecoderOnlySettings, data))
    assert isinstance(model, DecoderOnly)
    for parameter in model.parameters():
        parameter.data.mul_(3)
    return model.eval()


def said(generator: Generator | SpeculativeGenerator) -> list[int]:
    return [chosen.id for step in generator for _, chosen in step]


@pytest.mark.parametrize("draft_seed", [1, 2, 3])
@pytest.mark.parametrize("change", [{}, {"repetition_penalty": 1.5}, {"frequency_penalty": 1.0}], ids=str)
@pytest.mark.parametrize(("ends", "context"), [((), None), ((3,), None), ((), 9)])
def test_greedy_is_the_same_to_the_token(
    draft_seed: int, change: dict[str, float], ends: tuple[int, ...], context: int | None
) -> None:
    model, draft = model_of(1, n_layers=2), model_of(draft_seed, n_layers=2 if draft_seed == 1 else 1)
    for prompt, n in itertools.product(([1], [4, 2, 1]), (1, 2, 13)):
        options = CompleteOptions(max_tokens=n, temperature=0, **change)  # type: ignore[arg-type]
        fast = SpeculativeGenerator(model, draft, prompt, options, ends, context)
        assert said(fast) == said(Generator(model, [prompt], options, ends, context))
        if draft_seed == 1:
            assert fast.n_taken == fast.n_proposed  # it is the model itself


def test_a_good_draft_saves_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    model, passes = model_of(1), 0
    generator = SpeculativeGenerator(model, model_of(1), [1], CompleteOptions(max_tokens=20, temperature=0))
    read = generator.model.read

    def counted(ids: list[int], n: int) -> torch.Tensor:
        nonlocal passes
        passes += 1
        return read(ids, n)

    monkeypatch.setattr(generator.model, "read", counted)
    assert len(said(generator)) == 20
    assert passes == 4  # five tokens each


@torch.inference_mode()
def test_drawn_answers_have_the_models_distribution() -> None:
    """All two-token answers: how often they come, beside how likely they are."""
    model, draft = model_of(1), model_of(2)
    options = CompleteOptions(max_tokens=2, temperature=1.2, top_k=4)
    alone: dict[tuple[int, ...], float] = {}
    for first in range(N):
        for second in range(N):
            p = 1.0
            for ids, token in (([1], first), ([1, first], second)):
                scores = model(torch.tensor([ids]))[0, -1] / 1.2
                least = scores.topk(4).values[-1]
                p *= float(scores.masked_fill(scores < least, -torch.inf).softmax(0)[token])
            alone[first, second] = p
    n = 1000
    counts = dict.fromkeys(alone, 0)
    for seed in range(n):
        counts[tuple(said(SpeculativeGenerator(model, draft, [1], options, seed=seed)))] += 1  # type: ignore[index]
    for answer, p in alone.items():
        assert counts[answer] / n == pytest.approx(p, abs=4.5 * (p * (1 - p) / n) ** 0.5 + 1e-9)


def test_completer_with_a_draft(tmp_path: Path) -> None:
    tokenizer = train_tokenizer(["the cat sat on the mat"] * 3, "bpe", 270, sentences=False)

    def loaded(seed: int, tokenizer: Tokenizer = tokenizer) -> LoadedModel:
        return LoadedModel(tmp_path, "complete", model_of(seed, tokenizer.vocab_size), tokenizer, tokenizer, {})

    plain, fast = Completer(loaded(1)), Completer(loaded(1), draft=Completer(loaded(2)))
    options = CompleteOptions(max_tokens=12, temperature=0, n=2)
    wanted, found = (c.complete_all(["the", "a cat"], options) for c in (plain, fast))
    assert [[a.text for a in answers] for answers in found] == [[a.text for a in answers] for answers in wanted]
    other = train_tokenizer(["quite another text"] * 3, "bpe", 275, sentences=False)
    with pytest.raises(UserError, match="another vocabulary"):
        Completer(loaded(1), draft=Completer(loaded(2, other)))
    with pytest.raises(UserError, match="sliding window"):
        fast.complete_all(["the"], CompleteOptions(slide=True))
