"""Filling blanks as a job for the training loop: masked language modelling, as BERT is pre-trained.

A row is a window of the text between the marks of a beginning and an end, as it will be in use. Some batches are cut
into shorter rows, so that a short sentence is nothing new.

b batch, n width of the row, r blanks
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from glassformer.data.batch import Planned, placed
from glassformer.data.masking import Ids, make_masking
from glassformer.data.tokenizer import Marks
from glassformer.data.windows import Starts, plan_windows, window_batch
from glassformer.model import EncoderOnly
from glassformer.tasks.complete import VALIDATED
from glassformer.tasks.text import TextData, TextRecipe, TextTask, TextTraining
from glassformer.train.loop import Validation
from glassformer.train.loss import cross_entropy
from glassformer.train.settings import TrainSettings

FILL = TextTask("fill", "encode", "encoder_only", has_blanks=True)
SHORT_BATCHES = 0.2  # share of the batches that are cut
CUTS = (2, 4, 8)
SHOWN = 24  # tokens of a sample


@dataclass(frozen=True, kw_only=True)
class FillTraining(TextTraining):
    # One token of seven is learned from, and it takes thousands of steps to say more than the commonest words.
    batch_tokens: int = 1024


@dataclass(frozen=True, kw_only=True)
class FillRecipe(TextRecipe):
    train: FillTraining = field(default_factory=FillTraining)
    context: int = 128
    # Of the tokens that are to be guessed.
    masked: float = 0.15
    # Hide all pieces of a word together: the rest of a word gives it away.
    whole_words: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._at_least(8, "context")
        self._share("masked")


@dataclass(frozen=True)
class FillBatch:
    seen: Tensor  # (b, n) with blanks
    chosen: Tensor  # (b, n) True = to be guessed
    answers: Tensor  # (r,)
    mask: Tensor | None  # (b, 1, n, n) where rows hold several documents
    positions: Tensor | None

    def to(self, device: torch.device) -> "FillBatch":
        parts = (self.seen, self.chosen, self.answers, self.mask, self.positions)
        return FillBatch(*(None if part is None else part.to(device) for part in parts))  # type: ignore[arg-type]


class FillJob:
    """What the training loop asks of filling."""

    def __init__(self, model: EncoderOnly, train: TextData, valid: TextData, recipe: FillRecipe) -> None:
        self.model, self.train, self.valid = model, train, valid
        self.settings: TrainSettings = recipe.train
        self.device = next(model.parameters()).device
        self.marks = train.tokenizer.marks
        n_marks = 1 + (self.marks.start is not None)
        self.width, self.valid_width = (min(recipe.context - n_marks, len(data.stream) - 1) for data in (train, valid))
        self.masking = make_masking(train.tokenizer, recipe.masked, recipe.whole_words)

    def plan_epoch(self, epoch: int) -> list[Planned]:
        rows, seed = max(1, self.settings.batch_tokens // self.width), self.settings.seed
        batches = plan_windows(len(self.train.stream), self.width, rows, seed, epoch)
        return placed(batches, seed, epoch)

    def load(self, planned: Planned) -> FillBatch:
        random, starts, width = planned.random, planned.rows, self.width
        if random.random() < SHORT_BATCHES:
            cut = int(random.choice([cut for cut in CUTS if cut <= width] or [1]))
            width //= cut
            starts = (starts[:, None] + width * np.arange(cut)).ravel()
        return self._batch(self.train, starts, width, random).to(self.device)

    def _batch(self, data: TextData, starts: Starts, width: int, random: np.random.Generator) -> FillBatch:
        windows = window_batch(data.stream, starts, width, data.documents)
        ids = framed(windows.ids.numpy(), self.marks)
        chosen = self.masking.choose(ids, random)
        seen = self.masking.hide(ids, chosen, random)
        mask, positions = windows.mask, windows.positions
        if mask is not None and positions is not None:  # the marks around belong to their neighbours' documents
            before = int(self.marks.start is not None)
            mask = torch.nn.functional.pad(mask.float(), (before, 1, before, 1), mode="replicate").bool()
            positions = torch.cat(
                [positions[:, :before] * 0, positions + before, positions[:, -1:] + before + 1], dim=1
            )
        answers = torch.from_numpy(ids[chosen])
        return FillBatch(torch.from_numpy(seen), torch.from_numpy(chosen), answers, mask, positions)

    def n_tokens(self, batch: FillBatch) -> int:
        return len(batch.answers)

    def loss(self, batch: FillBatch) -> Tensor:
        head: Any = self.model.head
        rows = guessed(self.model, batch)
        return cross_entropy(rows, head.w.weight, head.w.bias, batch.answers, self.settings.label_smoothing)

    @torch.inference_mode()
    def validate(self) -> Validation:
        """The same blanks each time: how likely the true tokens are, and how often the best guess is true."""
        width, stream = self.valid_width, self.valid.stream
        starts = np.arange(0, len(stream) - width, width)
        starts = starts[:: -(-len(starts) * width // VALIDATED)]
        rows, random = max(1, self.settings.batch_tokens // width), np.random.default_rng(0)
        total, n_right, n = 0.0, 0, 0
        for i in range(0, len(starts), rows):
            batch = self._batch(self.valid, starts[i : i + rows], width, random).to(self.device)
            log_p = _log_p(self.model, batch)
            total -= float(log_p.gather(1, batch.answers[:, None]).sum())
            n_right += int((log_p.argmax(dim=1) == batch.answers).sum())
            n += len(batch.answers)
        loss = total / n
        metrics = {"valid_loss": loss, "perplexity": float(np.exp(min(loss, 80.0))), "accuracy": n_right / n}
        return Validation(-loss, metrics, [self._sample(starts)])

    def _sample(self, starts: Starts) -> str:
        """A piece of the validation text with its blanks, and how the model fills them."""
        width = min(SHOWN, self.valid_width)
        batch = self._batch(self.valid, starts[:1], width, np.random.default_rng(1)).to(self.device)
        best = _log_p(self.model, batch).argmax(dim=1)
        tokenizer, ids = self.valid.tokenizer, batch.seen[0].clone()
        ids[batch.chosen[0]] = -1
        words = iter(tokenizer.tokens(best.tolist()))
        shown = [f"[{next(words)}]" if i < 0 else tokenizer.decode([i]) for i in ids.tolist()]
        return " ".join("".join(shown).split())


def framed(ids: Ids, marks: Marks) -> Ids:
    """Rows between the marks of a beginning, where the vocabulary has one, and an end."""
    b = len(ids)
    before = [] if marks.start is None else [np.full((b, 1), marks.start)]
    return np.concatenate([*before, ids, np.full((b, 1), marks.ends[0])], axis=1)


def guessed(model: EncoderOnly, batch: FillBatch) -> Tensor:
    """What the head multiplies, at the blanks alone."""
    states = model.states(batch.seen, mask=batch.mask, positions=batch.positions).x
    head: Any = model.head
    rows: Tensor = head.prepare(states[batch.chosen])
    return rows  # (r, d)


def _log_p(model: EncoderOnly, batch: FillBatch) -> Tensor:
    head: Any = model.head
    log_p: Tensor = head.w(guessed(model, batch)).float().log_softmax(dim=-1)
    return log_p  # (r, N)
