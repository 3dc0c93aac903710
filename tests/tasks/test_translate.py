"""What validation of a translator looks at, and at how much at a time."""

from pathlib import Path

import numpy as np
import pytest
import torch

from glassformer.data.batch import PairBatch, Rows, spread
from glassformer.data.pairs import Pair
from glassformer.data.tokenizer import train_tokenizer
from glassformer.decode.options import DecodeOptions, Hypothesis
from glassformer.model import EncoderDecoder, build
from glassformer.tasks.backend import Request, TorchBackend
from glassformer.tasks.prepare import Tokenizers, encode_pairs
from glassformer.tasks.translate import PairData, TranslateJob
from glassformer.tasks.translate_model import model_settings
from glassformer.train.settings import TrainSettings
from tests.tasks.corpus import tiny_recipe

ROWS = [("a " * n, "b " * n) for n in range(1, 41)]  # sorted by length, as some files are


def job(folder: Path, rows: list[tuple[str, str]], settings: TrainSettings) -> TranslateJob:
    tokenizer = train_tokenizer([text for row in rows for text in row], "char", 300)
    pairs = [Pair(i, source.strip(), target.strip()) for i, (source, target) in enumerate(rows, start=1)]
    data, _ = encode_pairs(lambda: iter(pairs), Tokenizers(tokenizer, tokenizer), folder / "pairs", 250)
    torch.manual_seed(0)
    model = build(model_settings(tiny_recipe(), tokenizer.vocab_size, tokenizer.vocab_size, joint=True))
    assert isinstance(model, EncoderDecoder)
    return TranslateJob(model.eval(), data, data, settings)


def test_translated_pairs_are_spread_over_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    validating = job(tmp_path, ROWS, TrainSettings(steps=1, n_translated=5))
    asked: list[tuple[list[int], int | None]] = []
    generate = TorchBackend.generate

    def watch(self: TorchBackend, requests: list[Request], options: DecodeOptions) -> object:
        asked.append(([len(request.source) for request in requests], options.max_len))
        return generate(self, requests, options)

    monkeypatch.setattr(TorchBackend, "generate", watch)
    first, again = validating.validate(), validating.validate()
    lengths = validating.valid.source.tokens.lengths
    assert asked[0] == ([int(lengths[i]) for i in (0, 9, 19, 29, 39)], int(lengths[39]) + 10)
    assert asked[0] == asked[1]
    assert first == again
    assert [sample.partition("wanted: ")[2].count("b") for sample in first.samples] == [1, 20, 40]


def test_bleu_of_targets_without_spaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("a b c", "今天天气很好。"), ("b c a", "我很喜欢这本书。")]
    validating = job(tmp_path, rows, TrainSettings(steps=1, n_translated=2))
    targets = validating.valid.target.tokens
    shorter = [[Hypothesis(targets[i].tolist()[:-2], 0.0)] for i in range(2)]
    monkeypatch.setattr(TorchBackend, "generate", lambda *_: shorter)
    assert validating.validate().metrics["bleu"] > 50


def test_spread() -> None:
    for n in (1, 2, 9, 300, 301, 1999):
        for most in (1, 2, 9, 300):
            rows = spread(n, most)
            assert len(set(rows.tolist())) == min(n, most)
            assert rows[0] == 0
            assert rows[-1] == (n - 1 if min(n, most) > 1 else 0)
            assert np.ptp(np.diff(rows)) <= 1 if len(rows) > 1 else True
    assert spread(4, 300).tolist() == [0, 1, 2, 3]


def test_validation_fills_no_batch_with_long_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor with long targets; all pairs are looked at once, and the loss is that of each alone."""
    budget = 120
    rows = [("a " * 30, "b")] * 20 + [("a", "b " * 30)] * 20 + ROWS[:10]
    validating = job(tmp_path, rows, TrainSettings(steps=1, n_translated=0, batch_tokens=budget))
    seen: list[Rows] = []
    batch = PairData.batch

    def watch(self: PairData, part: Rows) -> PairBatch:
        made = batch(self, part)
        seen.append(part)
        assert max(made.source.numel(), made.target_out.numel()) <= budget
        return made

    with monkeypatch.context() as patch:
        patch.setattr(PairData, "batch", watch)
        found = validating.validate()
    assert sorted(np.concatenate(seen).tolist()) == list(range(len(rows)))
    alone = [validating.valid.batch(np.array([i])) for i in range(len(rows))]
    with torch.inference_mode():
        total = sum(float(validating.loss_of(validating.model, one, 0.0)) for one in alone)
    assert found.metrics["valid_loss"] == pytest.approx(total / sum(one.n_tokens for one in alone), rel=1e-4)
