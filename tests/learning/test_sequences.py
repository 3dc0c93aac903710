"""A small Transformer learns to copy, reverse and sort sequences that it never saw, through the real training loop."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from glassformer import config
from glassformer.data.tokenizer import END, START
from glassformer.decode.options import DecodeOptions
from glassformer.model import EncoderDecoder, build
from glassformer.model.settings import EncoderDecoderSettings
from glassformer.tasks.backend import Request, TorchBackend
from glassformer.train.loop import Trainer, Validation
from glassformer.train.loss import cross_entropy
from glassformer.train.report import Report
from glassformer.train.settings import TrainSettings

N_SYMBOLS, FIRST, LENGTHS, BATCH = 20, 3, (3, 9), 128
TASKS: dict[str, Callable[[list[int]], list[int]]] = {
    "copy": lambda ids: ids,
    "reverse": lambda ids: ids[::-1],
    "sort": sorted,
}


def small_model() -> EncoderDecoder:
    side = {"d_model": 64, "n_layers": 2, "dropout": 0.0, "attention": {"n_heads": 4}, "feed_forward": {"d_ff": 128}}
    tokens = {"kind": "tokens", "vocab_size": N_SYMBOLS + FIRST, "scale": True, "dropout": 0.0}
    data = {"encoder": side, "decoder": side, "source": tokens, "target": tokens}
    torch.manual_seed(0)
    model = build(config.parse(EncoderDecoderSettings, data))
    assert isinstance(model, EncoderDecoder)
    return model


class SequenceJob:
    """Endless fresh random sequences; rows of one batch have one length, so nothing is padded."""

    def __init__(self, model: EncoderDecoder, task: Callable[[list[int]], list[int]]) -> None:
        self.model, self.task = model, task

    def sequences(self, seed: int, n: int) -> list[list[int]]:
        random = torch.Generator().manual_seed(seed)
        length = int(torch.randint(LENGTHS[0], LENGTHS[1] + 1, (), generator=random))
        return torch.randint(FIRST, FIRST + N_SYMBOLS, (n, length), generator=random).tolist()

    def plan_epoch(self, epoch: int) -> list[int]:
        return list(range(epoch * 1000, epoch * 1000 + 1000))

    def load(self, planned: int) -> list[list[int]]:
        return self.sequences(planned, BATCH)

    def n_tokens(self, batch: list[list[int]]) -> int:
        return len(batch) * (len(batch[0]) + 1)

    def loss(self, batch: list[list[int]]) -> Tensor:
        answers = [self.task(ids) for ids in batch]
        source = torch.tensor([[*ids, END] for ids in batch])
        states = self.model.decode(torch.tensor([[START, *ids] for ids in answers]), self.model.encode(source))
        wanted = torch.tensor([[*ids, END] for ids in answers]).flatten()
        return cross_entropy(states.flatten(0, 1), self.model.head.w.weight, None, wanted)

    def validate(self) -> Validation:
        unseen = [ids for seed in range(10) for ids in self.sequences(10**9 + seed, 50)]
        found = TorchBackend(self.model).generate([Request(ids) for ids in unseen], DecodeOptions(beam=1, max_len=20))
        right = sum(h[0].ids == self.task(ids) for h, ids in zip(found, unseen, strict=True))
        return Validation(right / len(unseen), {"exact": right / len(unseen)})


@pytest.mark.parametrize("name", TASKS)
def test_learns_to(name: str, tmp_path: Path) -> None:
    model = small_model()
    settings = TrainSettings(steps=420, lr=5e-3, validations=1, average=1)
    trainer = Trainer(SequenceJob(model, TASKS[name]), settings, tmp_path, "toy", Report(tmp_path, quiet=True))
    trainer.run()
    assert trainer.progress.saved[-1][1] >= 0.99
