"""Completion as a job for the training loop: a stream of text in, loss and samples out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from glassformer.data.windows import Starts, WindowBatch, plan_windows, window_batch
from glassformer.decode.complete_options import CompleteOptions
from glassformer.model import DecoderOnly
from glassformer.tasks.beginning import begin_prompt, knows_beginnings
from glassformer.tasks.generator import Generator
from glassformer.tasks.text import TextData, TextRecipe, TextTask
from glassformer.train.loop import Validation
from glassformer.train.loss import cross_entropy
from glassformer.train.settings import TrainSettings

VALIDATED = 1 << 17  # tokens of the validation text that are measured at most, evenly spread
COMPLETE = TextTask("complete", "complete", "decoder_only")
SAMPLE = CompleteOptions(max_tokens=60, temperature=0.8, seed=1)


@dataclass(frozen=True, kw_only=True)
class CompleteRecipe(TextRecipe):
    # Whether attention may look into the document before.
    across_documents: bool = False


class CompleteJob:
    """What the training loop asks of completion."""

    def __init__(self, model: DecoderOnly, train: TextData, valid: TextData, recipe: CompleteRecipe) -> None:
        self.model, self.train, self.valid = model, train, valid
        self.settings: TrainSettings = recipe.train
        self.device = next(model.parameters()).device
        self.width = min(recipe.context, len(train.stream) - 1)
        self.valid_width = min(recipe.context, len(valid.stream) - 1)
        self.across = recipe.across_documents
        self.n_bytes: int | None = None

    def plan_epoch(self, epoch: int) -> list[Starts]:
        rows = max(1, self.settings.batch_tokens // self.width)
        return plan_windows(len(self.train.stream), self.width, rows, self.settings.seed, epoch)

    def load(self, planned: Starts) -> WindowBatch:
        return self._batch(self.train, planned, self.width)

    def _batch(self, data: TextData, starts: Starts, width: int) -> WindowBatch:
        return window_batch(data.stream, starts, width, None if self.across else data.documents).to(self.device)

    def n_tokens(self, batch: WindowBatch) -> int:
        return batch.answers.numel()

    def loss(self, batch: WindowBatch) -> Tensor:
        return loss_of(self.model, batch, self.settings.label_smoothing)

    @torch.inference_mode()
    def validate(self) -> Validation:
        """Loss and bits per byte over the validation text, and how the model goes on by itself."""
        width, stream = self.valid_width, self.valid.stream
        starts = np.arange(0, len(stream) - width, width)
        starts = starts[:: -(-len(starts) * width // VALIDATED)]
        rows, total = max(1, self.settings.batch_tokens // width), 0.0
        for i in range(0, len(starts), rows):
            batch = self._batch(self.valid, starts[i : i + rows], width)
            total += float(loss_of(self.model, batch, 0.0))
        if self.n_bytes is None:
            texts = [self.valid.tokenizer.decode(stream[s + 1 : s + width + 1].tolist()) for s in starts.tolist()]
            self.n_bytes = sum(len(text.encode("utf-8")) for text in texts)
        loss = total / (len(starts) * width)
        bits = total / max(1, self.n_bytes) / float(np.log(2))
        metrics = {"valid_loss": loss, "perplexity": float(np.exp(min(loss, 80.0))), "bits_per_byte": bits}
        return Validation(-loss, metrics, [self._sample()])

    def _sample(self) -> str:
        tokenizer = self.train.tokenizer
        begin = begin_prompt(tokenizer, [], knows_beginnings(self.train, self.width))
        generator = Generator(self.model, [begin], SAMPLE, tokenizer.marks.ends, self.width)
        ids = [chosen.id for step in generator for _, chosen in step]
        return tokenizer.decode(ids)


def loss_of(model: DecoderOnly, batch: WindowBatch, smoothing: float) -> Tensor:
    """Summed over all tokens."""
    states = model.states(batch.ids, mask=batch.mask, positions=batch.positions)
    head: Any = model.head
    rows = head.prepare(states.flatten(0, 1))
    return cross_entropy(rows, head.w.weight, head.w.bias, batch.answers.flatten(), smoothing)
