"""Batches of about as many tokens each, of similar lengths, in an order that an epoch's number decides.

An epoch's batches depend on nothing but the lengths, the seed and the epoch's number, and chance in a batch on its
place among them, so that a run can be taken up anywhere. Deliberately not here: what the ids mean.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer.data.tokenizer import END, PAD, START

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Planned:
    """A batch before it is made: its rows, and where in the run it stands, which decides all that is left to chance."""

    rows: Rows
    place: tuple[int, int, int]  # the run's seed, the epoch, the batch's number in it

    @property
    def random(self) -> np.random.Generator:
        return np.random.default_rng(self.place)


def placed(batches: list[Rows], seed: int, epoch: int) -> list[Planned]:
    return [Planned(rows, (seed, epoch, number)) for number, rows in enumerate(batches)]


@dataclass(frozen=True)
class PairBatch:
    """Source, and the target twice: as the decoder reads it (shifted right) and as it should answer."""

    source: Tensor  # (b, m)
    source_keep: Tensor | None  # (b, m); None: no padding
    target_in: Tensor  # (b, n) <s> x y z
    target_out: Tensor  # (b, n) x y z </s>, padding is PAD
    n_tokens: int  # real target tokens

    def to(self, device: torch.device) -> "PairBatch":
        keep = None if self.source_keep is None else self.source_keep.to(device)
        moved = (t.to(device) for t in (self.source, self.target_in, self.target_out))
        source, target_in, target_out = moved
        return PairBatch(source, keep, target_in, target_out, self.n_tokens)


def plan_epoch(lengths: list[NDArray[np.int64]], budget: int, seed: int, epoch: int) -> list[Planned]:
    """All rows, cut into batches whose widest side fills at most `budget` tokens, padding included."""
    random = np.random.default_rng([seed, epoch])
    rows = by_length(lengths, random.permutation(len(lengths[0])))
    batches = cut(rows, np.max([side[rows] for side in lengths], axis=0), budget)
    return placed([batches[i] for i in random.permutation(len(batches))], seed, epoch)


def spread(n: int, most: int) -> Rows:
    """So many of n places, evenly spread and the same each time: the first ones of a sorted file would all be short."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.int64)


def by_length(lengths: list[NDArray[np.int64]], rows: Rows) -> Rows:
    """Rows by their widest side, which is what fills the budget; within it by how much the first side is the longer.

    That goes up and down in turn, so that neighbours are alike on both sides. Rows that are equal keep their order.
    """
    widest = np.max([side[rows] for side in lengths], axis=0)
    excess = lengths[0][rows] - lengths[-1][rows]
    return rows[np.lexsort((np.where(widest % 2 == 0, excess, -excess), widest))]


def cut(rows: Rows, widths: NDArray[np.int64], budget: int) -> list[Rows]:
    """Neighbouring rows together, as many as fit when all are as wide as the widest; a wider row stands alone."""
    batches, start, widest = [], 0, 0
    for i, width in enumerate(widths.tolist()):
        if i > start and max(widest, width) * (i - start + 1) > budget:
            batches.append(rows[start:i])
            start, widest = i, 0
        widest = max(widest, width)
    batches.append(rows[start:])
    return [batch for batch in batches if len(batch)]


def pad(
    sequences: list[NDArray[np.int64]], before: int | None = None, after: int | None = None
) -> tuple[Tensor, Tensor]:
    """Sequences as the rows of one tensor, and which of its places are real."""
    extra = (before is not None) + (after is not None)
    table = np.full((len(sequences), max(len(s) for s in sequences) + extra), PAD, dtype=np.int64)
    keep = np.zeros(table.shape, dtype=bool)
    begin = int(before is not None)
    for row, sequence in enumerate(sequences):
        end = begin + len(sequence)
        table[row, begin:end] = sequence
        if before is not None:
            table[row, 0] = before
        if after is not None:
            table[row, end] = after
        keep[row, : len(sequence) + extra] = True
    return torch.from_numpy(table), torch.from_numpy(keep)


def pair_batch(sources: list[NDArray[np.int64]], targets: list[NDArray[np.int64]]) -> PairBatch:
    """Pairs as tensors; the source ends with </s>, as the paper's does."""
    ids, keep = pad(sources, after=END)
    target_in, _ = pad(targets, before=START)
    target_out, target_keep = pad(targets, after=END)
    return PairBatch(
        source=ids,
        source_keep=None if bool(keep.all()) else keep,
        target_in=target_in,
        target_out=target_out,
        n_tokens=int(target_keep.sum()),
    )
