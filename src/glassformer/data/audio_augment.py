"""A recording heard differently each time: faster or slower, louder or softer, noisier, with parts of it hidden.

The generator is the caller's, so that a batch of an epoch is the same after a resume, to the bit.
"""

from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from glassformer.data.audio import Series, resample
from glassformer.data.features import cosines
from glassformer.errors import require


@dataclass(frozen=True, kw_only=True)
class AugmentSettings:
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    # One of these speeds is drawn each time; 10 % either way is what helps most recognisers.
    speeds: tuple[float, ...] = (0.9, 1.0, 1.1)
    # Slower or faster by up to this share at the same pitch, as people do from one day to the next.
    tempo: float = 0.0
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
    # For vectors that are cepstral numbers (MFCC): the spectrum behind them is stretched or squeezed by up to this
    # share, as if somebody with a shorter or longer throat spoke, and bands of it are hidden. 0: just vectors.
    throat: float = 0.0
    # This share of the batches hears its recordings joined in pairs, each time others: what follows what in the few
    # that there are cannot be learned by heart.
    joined: float = 0.0
    # In this share of the batches recordings go on, from a pause between two words, as another one of them ends. The
    # model that the training starts from says where the words are.
    crossed: float = 0.0

    def __post_init__(self) -> None:
        require(
            bool(self.speeds) and all(0.5 <= speed <= 2 for speed in self.speeds),
            f"augment.speeds is {self.speeds}.",
            "Give speeds from 0.5 to 2, such as [0.9, 1.0, 1.1]; [1.0] changes nothing.",
        )
        for name in ("noise", "time_mask", "feature_mask", "throat", "tempo", "joined", "crossed"):
            value = getattr(self, name)
            require(0 <= value <= 1, f"augment.{name} is {value}, but it is a share.", "Set it to 0 or more, up to 1.")
        for name in ("gain", "n_time_masks", "n_feature_masks"):
            require(getattr(self, name) >= 0, f"augment.{name} is below 0.", "Set it to 0 for none.")


Piece = TypeVar("Piece")

BANDS = 40  # of the spectrum behind cepstral numbers
MOST_EXCHANGES = 3  # of ends between two recordings

NONE = AugmentSettings(speeds=(1.0,), gain=0.0, noise=0.0, n_time_masks=0, n_feature_masks=0)


def draw_speed(settings: AugmentSettings, random: np.random.Generator) -> float:
    return float(random.choice(settings.speeds))


def draw_tempo(settings: AugmentSettings, random: np.random.Generator) -> float:
    return random.uniform(1 - settings.tempo, 1 + settings.tempo) if settings.tempo else 1.0


def change_speed(series: Series, speed: float, rate: int | None) -> Series:
    """Heard at another speed, samples (and with them the pitch) or, without a rate, vectors."""
    if rate is not None:
        return resample(series, rate * speed, rate, "LQ")
    return change_tempo(torch.from_numpy(series.copy()), speed).numpy()


def augment_wave(wave: Series, settings: AugmentSettings, random: np.random.Generator) -> Series:
    """Another loudness, and noise."""
    if settings.gain:
        wave = wave * np.float32(10 ** (random.uniform(-settings.gain, settings.gain) / 20))
    if settings.noise and random.random() < settings.noise:
        below = random.uniform(*settings.noise_below)
        loud = float(np.sqrt(np.mean(np.square(wave)))) * 10 ** (-below / 20)
        wave = wave + np.float32(loud) * random.standard_normal(len(wave), dtype=np.float32)
    return wave


def augment_vectors(vectors: Series, settings: AugmentSettings, random: np.random.Generator) -> Series:
    """For cepstral numbers another throat."""
    if not settings.throat:
        return vectors
    stretch = random.uniform(1 - settings.throat, 1 + settings.throat)
    changed = torch.from_numpy(vectors.copy()) @ stretched_cepstra(vectors.shape[1], float(stretch))
    return np.ascontiguousarray(_hide_bands(changed, settings, random).numpy())


def stretched_cepstra(n: int, stretch: float) -> Tensor:
    """(n, n) what n cepstral numbers are multiplied with so that their spectrum is `stretch` times as wide."""
    to_spectrum = cosines(BANDS, n).T  # (n, bands)
    places = (torch.arange(BANDS) / stretch).clamp(max=BANDS - 1)  # where the value of each band was before
    below = places.floor().long()
    share = (places - below)[None]
    above = (below + 1).clamp(max=BANDS - 1)
    return ((1 - share) * to_spectrum[:, below] + share * to_spectrum[:, above]) @ to_spectrum.T


def _hide_bands(cepstra: Tensor, settings: AugmentSettings, random: np.random.Generator) -> Tensor:
    to_spectrum = cosines(BANDS, cepstra.shape[1]).T
    for begin, end in _parts(BANDS, settings.n_feature_masks, settings.feature_mask, random):
        band = to_spectrum[:, begin:end]
        cepstra = cepstra - (cepstra - cepstra.mean(dim=0)) @ band @ band.T
    return cepstra


def change_tempo(features: Tensor, tempo: float) -> Tensor:
    """Features (n, f) as of somebody who speaks slower or faster: the values between are interpolated."""
    n = max(1, round(len(features) / max(tempo, 0.1)))
    if n == len(features):
        return features
    return F.interpolate(features.T[None], size=n, mode="linear", align_corners=True)[0].T


def hide_parts(features: Tensor, settings: AugmentSettings, random: np.random.Generator) -> Tensor:
    """Features (n, f) with some stretches of time and some bands set to their mean."""
    hidden = features.clone()
    fill = features.mean(dim=0)
    for begin, end in _parts(len(features), settings.n_time_masks, settings.time_mask, random):
        hidden[begin:end] = fill
    if not settings.throat:  # else they are hidden already
        for begin, end in _parts(features.shape[1], settings.n_feature_masks, settings.feature_mask, random):
            hidden[:, begin:end] = fill[begin:end]
    return hidden


def cross(rows: list[list[Piece]], settings: AugmentSettings, random: np.random.Generator) -> list[list[Piece]]:
    """Each row a recording in parts: in pairs they exchange their ends, from about the same place on, a few times."""
    if not settings.crossed or random.random() >= settings.crossed:
        return rows
    crossed, order = list(rows), random.permutation(len(rows)).tolist()
    for i, j in zip(order[::2], order[1::2], strict=False):  # an odd one stays as it is
        for _ in range(random.integers(1, MOST_EXCHANGES + 1)):
            one, other = crossed[i], crossed[j]
            here = int(random.integers(0, len(one) + 1))
            there = round(here / len(one) * len(other))
            crossed[i], crossed[j] = one[:here] + other[there:], other[:there] + one[here:]
    return crossed


def pairs_to_join(n: int, settings: AugmentSettings, random: np.random.Generator) -> list[tuple[int, ...]]:
    """Which of a batch's n recordings are heard as one: each alone, or in pairs (an odd one stays alone)."""
    if not settings.joined or random.random() >= settings.joined:
        return [(i,) for i in range(n)]
    order = random.permutation(n).tolist()
    return [tuple(order[i : i + 2]) for i in range(0, n, 2)]


def _parts(size: int, n: int, share: float, random: np.random.Generator) -> list[tuple[int, int]]:
    """Where each of n parts begins and ends; none is longer than the share."""
    found = []
    for _ in range(n):
        width = int(random.integers(0, int(share * size) + 1))
        begin = int(random.integers(0, size - width + 1))
        found.append((begin, begin + width))
    return found
