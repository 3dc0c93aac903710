"""A recording heard differently each time: faster or slower, louder or softer, noisier, with parts of it hidden.

The generator is the caller's, so that a batch of an epoch is the same after a resume, to the bit.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from glassformer.data.audio import Series, resample
from glassformer.errors import require


@dataclass(frozen=True, kw_only=True)
class AugmentSettings:
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    # One of these speeds is drawn each time; 10 % either way is what helps most recognisers.
    speeds: tuple[float, ...] = (0.9, 1.0, 1.1)
    # Decibels louder or softer at most.
    gain: float = 6.0
    # This share of the recordings gets noise, so many decibels below the sound.
    noise: float = 0.3
    noise_below: tuple[float, float] = (10.0, 40.0)
    # Stretches of time and bands of features that are hidden, as shares of the whole at most (SpecAugment).
    n_time_masks: int = 2
    time_mask: float = 0.1
    n_feature_masks: int = 2
    feature_mask: float = 0.2

    def __post_init__(self) -> None:
        require(
            bool(self.speeds) and all(0.5 <= speed <= 2 for speed in self.speeds),
            f"augment.speeds is {self.speeds}.",
            "Give speeds from 0.5 to 2, such as [0.9, 1.0, 1.1]; [1.0] changes nothing.",
        )
        for name in ("noise", "time_mask", "feature_mask"):
            value = getattr(self, name)
            require(0 <= value <= 1, f"augment.{name} is {value}, but it is a share.", "Set it to 0 or more, up to 1.")
        for name in ("gain", "n_time_masks", "n_feature_masks"):
            require(getattr(self, name) >= 0, f"augment.{name} is below 0.", "Set it to 0 for none.")


NONE = AugmentSettings(speeds=(1.0,), gain=0.0, noise=0.0, n_time_masks=0, n_feature_masks=0)


def augment_wave(wave: Series, rate: int, settings: AugmentSettings, random: np.random.Generator) -> Series:
    """Another speed (and pitch with it), loudness and noise."""
    speed = float(random.choice(settings.speeds))
    wave = resample(wave, rate * speed, rate, "LQ")
    if settings.gain:
        wave = wave * np.float32(10 ** (random.uniform(-settings.gain, settings.gain) / 20))
    if settings.noise and random.random() < settings.noise:
        below = random.uniform(*settings.noise_below)
        loud = float(np.sqrt(np.mean(np.square(wave)))) * 10 ** (-below / 20)
        wave = wave + np.float32(loud) * random.standard_normal(len(wave), dtype=np.float32)
    return wave


def augment_vectors(vectors: Series, settings: AugmentSettings, random: np.random.Generator) -> Series:
    """Another speed, for vectors whose sound is not known: the values between are interpolated."""
    speed = float(random.choice(settings.speeds))
    if speed == 1.0:
        return vectors
    n = max(1, round(len(vectors) / speed))
    stretched = F.interpolate(torch.from_numpy(vectors.copy()).T[None], size=n, mode="linear", align_corners=True)
    return np.ascontiguousarray(stretched[0].T.numpy())


def hide_parts(features: Tensor, settings: AugmentSettings, random: np.random.Generator) -> Tensor:
    """Features (n, f) with some stretches of time and some bands set to their mean."""
    hidden = features.clone()
    fill = features.mean(dim=0)
    for n_masks, share, axis in (
        (settings.n_time_masks, settings.time_mask, 0),
        (settings.n_feature_masks, settings.feature_mask, 1),
    ):
        size = features.shape[axis]
        for _ in range(n_masks):
            width = int(random.integers(0, int(share * size) + 1))
            begin = int(random.integers(0, size - width + 1))
            if axis == 0:
                hidden[begin : begin + width] = fill
            else:
                hidden[:, begin : begin + width] = fill[begin : begin + width]
    return hidden
