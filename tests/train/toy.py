"""A training job small enough to run hundreds of times: predict the next of four symbols from the last."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.model.dropout import Dropout
from glassformer.train.loop import Trainer, Validation
from glassformer.train.loss import cross_entropy
from glassformer.train.report import Report
from glassformer.train.settings import TrainSettings

N_SYMBOLS, N_BATCHES = 5, 7


class ToyModel(nn.Module):
    """Parameters of several shapes, whose names do not sort as they were made."""

    def __init__(self, dropout: float = 0.2) -> None:
        super().__init__()
        self.table = nn.Embedding(N_SYMBOLS, 6)
        self.hidden = nn.Linear(6, 6)
        self.dropout = Dropout(dropout)
        self.answer = nn.Linear(6, N_SYMBOLS)

    def forward(self, ids: Tensor) -> Tensor:
        states: Tensor = self.dropout(torch.tanh(self.hidden(self.table(ids))))
        return states


class ToyJob:
    """Batches of unequal sizes; `scores` are the answers of the validations in turn, else minus the loss."""

    def __init__(self, model: nn.Module, scores: list[float] | None = None) -> None:
        self.model, self.scores = model, list(scores or [])
        self.losses: list[float] = []
        self.after_loss: Callable[[int], None] = lambda n: None

    def plan_epoch(self, epoch: int) -> list[int]:
        order = torch.randperm(N_BATCHES, generator=torch.Generator().manual_seed(epoch))
        return [epoch * N_BATCHES + int(i) for i in order]

    def load(self, planned: int) -> tuple[Tensor, Tensor]:
        random = torch.Generator().manual_seed(planned)
        ids = torch.randint(N_SYMBOLS, (3 + planned % 5,), generator=random)
        return ids, (ids * 2 + 1) % N_SYMBOLS

    def n_tokens(self, batch: tuple[Tensor, Tensor]) -> int:
        return len(batch[0])

    def loss(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        ids, wanted = batch
        answer: Any = self.model.answer
        loss = cross_entropy(self.model(ids), answer.weight, answer.bias, wanted, 0.1)
        self.losses.append(float(loss.detach()))
        self.after_loss(len(self.losses))
        return loss

    @torch.inference_mode()
    def validate(self) -> Validation:
        assert not self.model.training
        ids = torch.arange(N_SYMBOLS)
        answer: Any = self.model.answer
        loss = float(cross_entropy(self.model(ids), answer.weight, answer.bias, (ids * 2 + 1) % N_SYMBOLS)) / N_SYMBOLS
        return Validation(self.scores.pop(0) if self.scores else -loss, {"valid_loss": loss}, ["one → two"])


def toy_trainer(
    folder: Path, scores: list[float] | None = None, identity: str = "toy", double: bool = False, **changes: Any
) -> Trainer:
    """A trainer with its own fresh model."""
    settings = TrainSettings(**({"steps": 24, "validations": 4, "lr": 0.02, "precision": "fp32"} | changes))
    torch.manual_seed(3)
    model = ToyModel().double() if double else ToyModel()
    return Trainer(ToyJob(model, scores), settings, folder, identity, Report(folder, quiet=True))


def toy_job(trainer: Trainer) -> ToyJob:
    assert isinstance(trainer.job, ToyJob)
    return trainer.job


def weights(trainer: Trainer) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in trainer.job.model.named_parameters()}


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    """Equal to the bit."""
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
