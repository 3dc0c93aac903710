"""Pictures changed at random while a model trains, so that it learns what does not matter; targets mixed with them.

Every draw comes from the generator that is given: the same one gives the same pictures. b batch, c channels, h height,
w width
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

Strength = Literal["off", "light", "strong"]

N_CHANGES = 2  # of the ones below that each picture gets
ANGLE = math.radians(15)
SHEAR = 0.2
ZOOM = 0.2
LIGHT = 0.4  # deviations
CONTRAST = 0.4
ERASED = (0.2, 0.45)  # of each side
CHANGES = ("rotate", "shear_x", "shear_y", "zoom", "brightness", "contrast", "erase")


@dataclass(frozen=True)
class Augmentation:
    """`light` moves pictures about a little; `strong` also turns, shears, zooms, lights or hides parts of them."""

    strength: Strength = "light"
    flip: bool = False
    # Pictures and their targets are mixed in pairs, by shares from Beta(mixup, mixup); 0 mixes nothing.
    mixup: float = 0.0
    shift: float = 0.1  # of a side, at most: 3 pixels of 28 or 32


def augment(x: Tensor, how: Augmentation, random: np.random.Generator) -> Tensor:
    """Normalised pictures (b, c, h, w), each changed in its own way."""
    if how.flip:
        x = torch.where(_column(random.random(len(x)) < 0.5), x.flip(3), x)
    if how.strength == "off":
        return x
    x = shift(x, how.shift, random)
    return change(x, random) if how.strength == "strong" else x


def shift(x: Tensor, most: float, random: np.random.Generator) -> Tensor:
    """Each moved by whole pixels, at most this share of a side; what comes in is the edge repeated."""
    b, _, h, w = x.shape
    rows, columns = (
        np.clip(np.arange(n) + random.integers(-reach, reach + 1, (b, 1)), 0, n - 1)
        for n, reach in ((h, round(h * most)), (w, round(w * most)))
    )
    x = x.gather(2, torch.from_numpy(rows)[:, None, :, None].expand(x.shape))
    return x.gather(3, torch.from_numpy(columns)[:, None, None, :].expand(x.shape))


def change(x: Tensor, random: np.random.Generator) -> Tensor:
    """A few changes of the list, drawn for each picture, each by as much as is drawn."""
    b = len(x)
    chosen = random.random((b, len(CHANGES))).argsort(axis=1) < N_CHANGES
    amounts = random.uniform(-1, 1, (b, len(CHANGES))) * chosen
    by = {name: torch.from_numpy(amounts[:, i]).float() for i, name in enumerate(CHANGES)}
    bent = torch.from_numpy(chosen[:, :4].any(axis=1))
    if bool(bent.any()):
        x = x.clone()
        x[bent] = bend(x[bent], *(by[name][bent] for name in CHANGES[:4]))
    mean = x.mean(dim=(1, 2, 3), keepdim=True)
    x = (x - mean) * (1 + CONTRAST * by["contrast"][:, None, None, None]) + mean
    x = x + LIGHT * by["brightness"][:, None, None, None]
    return erase(x, torch.from_numpy(chosen[:, CHANGES.index("erase")]), random)


def bend(x: Tensor, rotate: Tensor, shear_x: Tensor, shear_y: Tensor, zoom: Tensor) -> Tensor:
    """All that moves points, as one matrix a picture; the amounts go from -1 to 1."""
    angle, scale = rotate * ANGLE, 1 + zoom * ZOOM
    cos, sin, zero, one = angle.cos() * scale, angle.sin() * scale, torch.zeros_like(angle), torch.ones_like(angle)
    turn = torch.stack([torch.stack([cos, -sin], 1), torch.stack([sin, cos], 1)], 1)
    slant = torch.stack([torch.stack([one, shear_x * SHEAR], 1), torch.stack([shear_y * SHEAR, one], 1)], 1)
    matrix = torch.cat([turn @ slant, torch.stack([zero, zero], 1)[:, :, None]], dim=2)  # (b, 2, 3)
    grid = F.affine_grid(matrix, list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False)


def erase(x: Tensor, which: Tensor, random: np.random.Generator) -> Tensor:
    """A rectangle of each of these pictures becomes the mean of all pictures, which is 0."""
    b, _, h, w = x.shape
    inside = []
    for n in (h, w):
        length = random.uniform(*ERASED, (b, 1)) * n
        start = random.uniform(0, 1, (b, 1)) * (n - length)
        at = np.arange(n) + 0.5
        inside.append(torch.from_numpy((at >= start) & (at < start + length)))
    hidden = inside[0][:, None, :, None] & inside[1][:, None, None, :] & which[:, None, None, None]
    return x.masked_fill(hidden, 0.0)


def mix(x: Tensor, targets: Tensor, alpha: float, random: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Each picture blended with another of the batch, and its target (b, …) likewise."""
    share = torch.from_numpy(random.beta(alpha, alpha, len(x))).float()
    other = torch.from_numpy(random.permutation(len(x)))
    across = share.view(-1, *([1] * (targets.dim() - 1)))
    mixed = targets * across + targets[other] * (1 - across)
    share = share[:, None, None, None]
    return x * share + x[other] * (1 - share), mixed


def _column(which: NDArray[np.bool_]) -> Tensor:
    return torch.from_numpy(which)[:, None, None, None]
