"""How the rungs with weights learn: windows out of the sequences, Adam on the error of the next word, one short loop.

A window begins with the start token, which says "nothing is known of what came before": so the first word has a
probability too, and a piece out of a long text is read in the same way as a sentence.

b rows, n words of a window, N words of the vocabulary (the start token has number N)
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from glassformer.errors import require
from glassformer.ladder.counts import Ids
from glassformer.ladder.rung import Scores

NO_WORD = -1  # stands in the targets where a row has ended
CLIP = 1.0  # recurrent cells know steps that would throw all their weights away
WARM_UP = 0.03  # of the whole fit; Adam knows little about its first gradients


@dataclass(frozen=True)
class Progress:
    """What the `report` of a rung is told after each step."""

    step: int
    seconds: float
    share: float  # of the whole fit
    loss: float  # nats a word, of this step's windows


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How long to learn: so many steps, so many seconds, or whatever ends first. Only steps can be repeated exactly."""

    steps: int | None
    seconds: float | None
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        require(
            self.steps is not None or self.seconds is not None,
            "The rung has neither steps nor seconds to learn in.",
            "Give one of them, or both.",
        )
        for name, value in (("steps", self.steps), ("seconds", self.seconds)):
            require(value is None or value > 0, f"{name} is {value}.", f"Give {name} above 0.")

    def share(self, step: int, seconds: float) -> float:
        """How much of it is used up."""
        by_steps = 0.0 if self.steps is None else step / self.steps
        return max(by_steps, 0.0 if self.seconds is None else seconds / self.seconds)


Schedule = Literal["cosine", "constant"]


def learning_rate(peak: float, share: float, schedule: Schedule) -> float:
    """Up in a straight line, then constant or down half a wave, at the given share of the fit."""
    if share < WARM_UP:
        return peak * share / WARM_UP
    return peak if schedule == "constant" else peak * (0.02 + 0.98 * (1 + math.cos(math.pi * min(share, 1.0))) / 2)


class Windows:
    """All sequences end to end, and pieces of them as rows of one size.

    A few short sequences are given whole, each time, and their weights weigh the error. Of more, or of long ones, rows
    are drawn: a sequence as often as its weight and its words ask for, a place in it by chance.
    """

    def __init__(self, sequences: Sequence[Ids], weights: Scores, context: int, rows: int) -> None:
        lengths = torch.tensor([len(ids) for ids in sequences])
        self.ids = torch.from_numpy(np.concatenate(sequences))
        self.firsts, self.lengths, self.weights = lengths.cumsum(0) - lengths, lengths, torch.from_numpy(weights)
        self.n, self.rows = min(context, int(lengths.max())), rows
        self.whole = len(sequences) <= rows and int(lengths.max()) <= context

    def next(self, random: torch.Generator) -> tuple[Tensor, Tensor]:
        """Words (b, n) with NO_WORD after the end of a row, and the rows' weights (b)."""
        if self.whole:
            rows, places = torch.arange(len(self.lengths)), torch.zeros_like(self.lengths)
            weights = self.weights
        else:  # a long sequence gives only n words at a time, and so must be drawn more often
            shares = self.weights * (self.lengths / self.n).clamp(min=1.0) * (self.lengths > 0)
            rows = torch.multinomial(shares, self.rows, replacement=True, generator=random)
            room = (self.lengths[rows] - self.n).clamp(min=0) + 1
            places = (torch.rand(self.rows, dtype=torch.float64, generator=random) * room).long()
            weights = torch.ones(self.rows)
        columns = places[:, None] + torch.arange(self.n)  # (b, n)
        real = columns < self.lengths[rows, None]
        words = self.ids[(self.firsts[rows, None] + columns).clamp(max=len(self.ids) - 1)]
        return words.masked_fill(~real, NO_WORD), weights.float()


def shift(words: Tensor, start: int) -> Tensor:
    """What is read to guess these words: the start token, then all of them but the last."""
    return F.pad(words[:, :-1].masked_fill(words[:, :-1] == NO_WORD, start), (1, 0), value=start)


def learn(
    network: nn.Module,
    windows: Windows,
    n_words: int,
    budget: Budget,
    peak: float,
    schedule: Schedule,
    seed: int,
    report: Callable[[Progress], None] | None = None,
) -> None:
    """Give the network weights under which the next word is likely."""
    random = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(network.parameters(), lr=peak, fused=True)
    network.train()
    step, started = 0, budget.clock()
    while (share := budget.share(step, budget.clock() - started)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(peak, share, schedule)
        words, weights = windows.next(random)
        loss = next_word_loss(network(shift(words, n_words))[..., :n_words], words, weights)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), CLIP)
        optimizer.step()
        step += 1
        if report is not None:
            seconds = budget.clock() - started
            report(Progress(step, seconds, min(1.0, budget.share(step, seconds)), loss.item()))
    network.eval()


def next_word_loss(scores: Tensor, words: Tensor, weights: Tensor) -> Tensor:
    """Mean nats a word, each row weighing as much as its weight says."""
    nats = F.cross_entropy(scores.flatten(0, 1), words.flatten(), ignore_index=NO_WORD, reduction="none")
    each = ((words != NO_WORD) * weights[:, None]).flatten()
    return (nats * each).sum() / each.sum()
