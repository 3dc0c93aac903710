"""Batches of labelled examples, whatever they are made of.

b batch, n length
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer.data.batch import Rows, cut, pad
from glassformer.data.framing import Framing, Ids
from glassformer.data.labels import Targets

POOL = 50  # batches that are sorted by length among themselves: neighbours are alike, and epochs still differ


@dataclass(frozen=True)
class Inputs:
    """What a model reads: tokens (b, n), vectors (b, n, features) or pictures; which places are real; types."""

    source: Tensor
    keep: Tensor | None = None
    types: Tensor | None = None

    def to(self, device: torch.device) -> "Inputs":
        moved = (None if part is None else part.to(device) for part in (self.source, self.keep, self.types))
        return Inputs(*moved)  # type: ignore[arg-type]


@dataclass(frozen=True)
class LabelledBatch:
    inputs: Inputs
    targets: Tensor  # class numbers (b,), shares of the classes (b, classes), or numbers (b,)

    def to(self, device: torch.device) -> "LabelledBatch":
        return replace(self, inputs=self.inputs.to(device), targets=self.targets.to(device))


class Readable(Protocol):
    """Examples; what they are made of shows only in what `load` gives."""

    @property
    def lengths(self) -> NDArray[np.int64]: ...

    def load(self, rows: Rows) -> Inputs: ...


class LabelledData(Readable, Protocol):
    """Examples and their targets."""

    @property
    def targets(self) -> Targets: ...

    def train_batch(self, rows: Rows) -> LabelledBatch:
        """The same with targets, and changed at random where that teaches more (pictures)."""
        ...

    def show(self, row: int) -> str:
        """An example as a person reads it, in one line."""
        ...


class Texts(Protocol):
    """Texts in tokens, such as a TokenStore."""

    @property
    def lengths(self) -> NDArray[np.int64]: ...

    def __getitem__(self, i: int) -> Ids: ...


@dataclass(frozen=True)
class TextExamples:
    """Texts, or pairs of texts, in tokens; a pair is two sequences of the store, one after the other."""

    sides: Sequence[Texts]
    framing: Framing
    with_types: bool  # whether the model knows first and second texts apart
    targets: Targets
    decode: "Decode"

    @property
    def lengths(self) -> NDArray[np.int64]:
        return self.framing.lengths(self.side_lengths)

    @property
    def side_lengths(self) -> list[NDArray[np.int64]]:
        return [side.lengths for side in self.sides]

    def load(self, rows: Rows) -> Inputs:
        return text_inputs([[side[i] for side in self.sides] for i in rows], self.framing, self.with_types)

    def train_batch(self, rows: Rows) -> LabelledBatch:
        return LabelledBatch(self.load(rows), torch.from_numpy(self.targets[rows]))

    def show(self, row: int) -> str:
        return " ‖ ".join(" ".join(self.decode(side[row].tolist()).split()) for side in self.sides)


class Decode(Protocol):
    def __call__(self, ids: list[int]) -> str: ...


def text_inputs(texts: Sequence[Sequence[Ids]], framing: Framing, with_types: bool) -> Inputs:
    """Texts in tokens, one or two a row, as tensors."""
    framed = [framing.frame(row) for row in texts]
    ids, keep = pad([ids for ids, _ in framed])
    types = pad([types for _, types in framed])[0] if with_types else None
    return Inputs(ids, None if bool(keep.all()) else keep, types)


def plan_examples(lengths: NDArray[np.int64], n_rows: int, budget: int, seed: int, epoch: int) -> list[Rows]:
    """An epoch's batches: `n_rows` examples of similar lengths each, fewer where they would fill more than `budget`."""
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(len(lengths))
    batches: list[Rows] = []
    for begin in range(0, len(order), POOL * n_rows):
        pool = order[begin : begin + POOL * n_rows]
        batches += in_order(pool[np.argsort(lengths[pool], kind="stable")], lengths, n_rows, budget)
    return [batches[i] for i in random.permutation(len(batches))]


def in_order(rows: Rows, lengths: NDArray[np.int64], n_rows: int, budget: int) -> list[Rows]:
    """Neighbours together, at most `n_rows` and `budget` places."""
    parts = (rows[i : i + n_rows] for i in range(0, len(rows), n_rows))
    return [batch for part in parts for batch in cut(part, lengths[part], budget)]


@dataclass(frozen=True)
class SeriesExamples:
    """Series of vectors, of any lengths."""

    values: Sequence[NDArray[np.float32]]
    max_steps: int
    targets: Targets

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.array([min(len(values), self.max_steps) for values in self.values], dtype=np.int64)

    def load(self, rows: Rows) -> Inputs:
        chosen = [self.values[i][: self.max_steps] for i in rows]
        longest = max(map(len, chosen))
        table = np.zeros((len(chosen), longest, chosen[0].shape[1]), dtype=np.float32)
        keep = np.zeros(table.shape[:2], dtype=bool)
        for row, values in enumerate(chosen):
            table[row, : len(values)], keep[row, : len(values)] = values, True
        return Inputs(torch.from_numpy(table), None if keep.all() else torch.from_numpy(keep))

    def train_batch(self, rows: Rows) -> LabelledBatch:
        return LabelledBatch(self.load(rows), torch.from_numpy(self.targets[rows]))

    def show(self, row: int) -> str:
        first = ", ".join(f"{value:.2g}" for value in self.values[row][0][:4])
        return f"{len(self.values[row])} steps, the first begins {first}"
