"""What a search needs to know of a model: feed tokens, get scores, reorder rows."""

import math
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor


class Steps(Protocol):
    """A running decoder with a fixed number of rows for each of some sentences.

    Row `s * width + j` is the j-th row of sentence s.
    """

    def step(self, ids: Tensor) -> Tensor:
        """Feed (rows, n) more tokens and give the scores (rows, N) of what may follow the last of them."""
        ...

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """Row i becomes what row `rows[i]` was; `sentences` says which sentences are left, where some have ended."""
        ...


class TogetherSteps:
    """Several running decoders as one (an ensemble): what may follow has the mean of the probabilities they give it."""

    def __init__(self, parts: Sequence[Steps]) -> None:
        self.parts = parts

    def step(self, ids: Tensor) -> Tensor:
        log_p = torch.stack([part.step(ids).float().log_softmax(dim=-1) for part in self.parts])
        return log_p.logsumexp(dim=0) - math.log(len(self.parts))

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        for part in self.parts:
            part.select(rows, sentences)
