"""Batches of pictures, normalised, and in training changed at random.

b batch, c channels, h height, w width
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from glassformer.data.batch import Rows
from glassformer.data.labelled_batch import Inputs, LabelledBatch
from glassformer.data.labels import Targets
from glassformer.data.picture_augment import Augmentation, augment, mix

NOTHING = Augmentation(strength="off")


@dataclass(frozen=True)
class PictureExamples:
    """Pictures as bytes (n, h, w, c), and how a model wants them."""

    pixels: NDArray[np.uint8]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    n_positions: int  # of one picture in the model
    targets: Targets
    places: Sequence[str]
    how: Augmentation = NOTHING
    n_classes: int = 0  # where an example has one of them

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.full(len(self.pixels), self.n_positions, dtype=np.int64)

    def load(self, rows: Rows) -> Inputs:
        return Inputs(normalised(self.pixels[rows], self.mean, self.std))

    def train_batch(self, rows: Rows) -> LabelledBatch:
        # torch's own state is saved with a run: what is drawn from it is the same after a run was taken up.
        random = np.random.default_rng(int(torch.randint(2**62, ())))
        x = augment(normalised(self.pixels[rows], self.mean, self.std), self.how, random)
        targets = torch.from_numpy(self.targets[rows])
        if self.how.mixup:
            shares = F.one_hot(targets, self.n_classes).float() if targets.dtype == torch.int64 else targets
            x, targets = mix(x, shares, self.how.mixup, random)
        return LabelledBatch(Inputs(x.contiguous()), targets)

    def show(self, row: int) -> str:
        return self.places[row]


def normalised(pixels: NDArray[np.uint8], mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """Bytes (b, h, w, c) as floats (b, c, h, w): each channel's share of white, in deviations from the mean."""
    x = torch.from_numpy(np.ascontiguousarray(pixels)).permute(0, 3, 1, 2).float() / 255
    means, deviations = (torch.tensor(values)[:, None, None] for values in (mean, std))
    return ((x - means) / deviations).contiguous()


def moments(pixels: NDArray[np.uint8]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation of each channel, in shares of white."""
    mean, std = [], []
    for channel in range(pixels.shape[3]):
        counts = np.bincount(pixels[..., channel].reshape(-1), minlength=256).astype(np.float64)
        values = np.arange(256) / 255
        middle = float((counts * values).sum() / counts.sum())
        spread = float((counts * (values - middle) ** 2).sum() / counts.sum()) ** 0.5
        mean.append(middle)
        std.append(spread or 1.0)
    return tuple(mean), tuple(std)
