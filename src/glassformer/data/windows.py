"""Windows over one long stream of tokens, each as wide as the context: no padding, and documents kept apart.

An epoch's windows depend on nothing but the stream's length, the seed and the epoch's number. Each epoch cuts at other
places, so that every token is met with more and with less before it.

b batch, n width of the window
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Stream = NDArray[np.unsignedinteger]
Starts = NDArray[np.int64]


@dataclass(frozen=True)
class WindowBatch:
    ids: Tensor  # (b, n)
    answers: Tensor  # (b, n) the token after each
    mask: Tensor | None  # (b, 1, n, n) True = same document; None: all windows lie in one document
    positions: Tensor | None  # (b, n) counted from the document's beginning

    def to(self, device: torch.device) -> "WindowBatch":
        def move(t: Tensor | None) -> Tensor | None:
            return None if t is None else t.to(device)

        return WindowBatch(self.ids.to(device), self.answers.to(device), move(self.mask), move(self.positions))


def plan_windows(n_tokens: int, width: int, rows: int, seed: int, epoch: int) -> list[Starts]:
    """The epoch's batches as the places where windows start; together they cover the stream once."""
    random = np.random.default_rng([seed, epoch])
    last = n_tokens - 1 - width  # the latest start
    starts = np.arange(int(random.integers(width)), last + 1, width) if last > 0 else np.zeros(1, dtype=np.int64)
    starts = random.permutation(np.append(starts, random.integers(last + 1)) if last > 0 else starts)
    return [starts[i : i + rows] for i in range(0, len(starts), rows)]


def window_batch(stream: Stream, starts: Starts, width: int, documents: Starts | None) -> WindowBatch:
    """The windows as tensors; `documents` are the places where one begins, None lets attention go across."""
    rows = np.stack([stream[start : start + width + 1] for start in starts.tolist()]).astype(np.int64)
    ids, answers = torch.from_numpy(rows[:, :-1].copy()), torch.from_numpy(rows[:, 1:].copy())
    if documents is None:
        return WindowBatch(ids, answers, None, None)
    begins = torch.from_numpy(np.isin(starts[:, None] + np.arange(width), documents))
    begins[:, 0] = False  # a window begins with whatever it begins with
    if not bool(begins.any()):
        return WindowBatch(ids, answers, None, None)
    document = begins.cumsum(dim=1)  # (b, n)
    place = torch.arange(ids.shape[1]).expand_as(document)
    origin = place.masked_fill(~begins, 0).cummax(dim=1).values
    mask = document[:, None, :, None] == document[:, None, None, :]
    return WindowBatch(ids, answers, mask, place - origin)
