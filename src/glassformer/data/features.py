"""Sound into vectors: log-mel spectra and MFCC, in torch, many recordings at once.

The spectrum is what Whisper uses: a Hann window, mel bands of equal area (Slaney's), decibels down to 80 below the
loudest. Checked in tests against librosa and against Whisper's own.

b recordings, t samples, n frames, w window, f features
"""

import functools
import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from glassformer.data.audio import Series
from glassformer.errors import require

FLOOR, RANGE = 1e-10, 8.0  # the least power, and powers of ten between the loudest and what is still heard
BLOCK = 1 << 22  # samples of a batch that are transformed at once


@dataclass(frozen=True, kw_only=True)
class FeatureSettings:
    """How a recording is read; saved with the model, which understands nothing else."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    # "vectors": the files hold them already.
    kind: Literal["mel", "mfcc", "vectors"] = "mel"
    # Numbers of one frame.
    n_features: int = 80
    # Samples a second; speech needs no more than 16,000.
    rate: int = 16_000
    # Milliseconds of sound in a frame, and from one frame to the next.
    window: float = 25.0
    hop: float = 10.0
    # The Fourier transform's length in samples; longer than the window draws a smoother spectrum.
    n_fft: int = 512
    # Mel bands that MFCC are made from.
    n_mels: int = 80
    # "recording": each feature has mean 0 and deviation 1 over a recording, whatever the microphone; "whisper": its
    # fixed scale; "none": as they are.
    scale: Literal["recording", "whisper", "none"] = "recording"

    def __post_init__(self) -> None:
        require(self.n_features >= 1, f"features.n_features is {self.n_features}.", "It must be 1 or more.")
        require(1000 <= self.rate <= 192_000, f"features.rate is {self.rate}.", "Speech is usually read at 16000.")
        require(
            0 < self.hop <= 1000 and 0 < self.window <= 1000 and self.hop_samples >= 1,
            f"features.window is {self.window} and features.hop {self.hop} milliseconds.",
            "The usual values are 25 and 10.",
        )
        require(
            self.window_samples <= self.n_fft <= 1 << 16,
            f"features.n_fft is {self.n_fft}, but a window has {self.window_samples} samples.",
            f"Set it to {1 << max(0, self.window_samples - 1).bit_length()}.",
        )
        require(self.n_mels >= self.n_features or self.kind != "mfcc", "features.n_mels is below n_features.", "")
        require(self.scale != "whisper" or self.kind == "mel", "features.scale is whisper's, but only mel has it.", "")

    @property
    def window_samples(self) -> int:
        return round(self.rate * self.window / 1000)

    @property
    def hop_samples(self) -> int:
        return round(self.rate * self.hop / 1000)

    def n_frames(self, n_samples: int) -> int:
        """Frames of so many samples."""
        return max(1, n_samples // self.hop_samples)


def automatic_features(rate: int) -> FeatureSettings:
    """Mel bands that suit recordings of that rate: telephone sound has half the range, and half the bands."""
    if rate >= 16_000:
        return FeatureSettings()
    return FeatureSettings(rate=8000, n_fft=256, n_features=40)


def extract(waves: list[Series], settings: FeatureSettings) -> list[Tensor]:
    """Each recording's features (n, f); a recording's numbers do not depend on what else is in the batch."""
    if settings.kind == "vectors":
        return [_scaled(torch.from_numpy(wave), settings) for wave in waves]
    found: list[Tensor] = [torch.empty(0)] * len(waves)
    order = sorted(range(len(waves)), key=lambda i: len(waves[i]))
    while order:  # neighbours in length share a block, so that little of it is padding
        longest = len(waves[order[-1]]) + settings.n_fft
        rows = [order.pop() for _ in range(min(len(order), max(1, BLOCK // longest)))]
        for row, spectrum in zip(rows, _spectra([waves[i] for i in rows], settings), strict=True):
            found[row] = _from_spectrum(spectrum, settings)
    return found


def loudness(features: Tensor, settings: FeatureSettings) -> Tensor:
    """Of features (n, f) how loud each frame is, in no unit: of cepstral numbers the first says it."""
    return features.mean(dim=1) if settings.kind == "mel" else features[:, 0]


def _spectra(waves: list[Series], settings: FeatureSettings) -> list[Tensor]:
    """The power in each mel band (n, f), padded at both ends by the sound's own reflection."""
    half, hop = settings.n_fft // 2, settings.hop_samples
    padded = [_reflect(wave, half) for wave in waves]
    table = np.zeros((len(waves), max(map(len, padded))), dtype=np.float32)
    for row, wave in enumerate(padded):
        table[row, : len(wave)] = wave
    window = torch.hann_window(settings.window_samples)
    spectra = torch.stft(
        torch.from_numpy(table), settings.n_fft, hop, settings.window_samples, window, center=False, return_complex=True
    )  # (b, n_fft / 2 + 1, n)
    n_bands = settings.n_features if settings.kind == "mel" else settings.n_mels
    bands = mel_filters(settings.rate, settings.n_fft, n_bands)
    power = torch.view_as_real(spectra).square().sum(dim=-1)
    mel = torch.matmul(bands, power).transpose(1, 2)  # (b, n, f)
    return [mel[row, : settings.n_frames(len(wave))] for row, wave in enumerate(waves)]


def _reflect(wave: Series, half: int) -> Series:
    short = 2 * half - len(wave)  # a click has too little to reflect
    wave = np.pad(wave, (0, short)) if short > 0 else wave
    return np.pad(wave, half, mode="reflect")


def _from_spectrum(mel: Tensor, settings: FeatureSettings) -> Tensor:
    bels = mel.clamp(min=FLOOR).log10()
    bels = torch.maximum(bels, bels.amax() - RANGE)
    if settings.kind == "mfcc":
        bels = 10 * bels @ cosines(settings.n_mels, settings.n_features)
    return _scaled(bels, settings)


def _scaled(features: Tensor, settings: FeatureSettings) -> Tensor:
    match settings.scale:
        case "whisper":
            return (features + 4) / 4
        case "recording":
            centred = features - features.mean(dim=0)
            return centred / centred.square().mean(dim=0).sqrt().clamp(min=1e-3)
        case "none":
            return features


@functools.lru_cache(maxsize=16)
def mel_filters(rate: int, n_fft: int, n_bands: int) -> Tensor:
    """Triangles (f, n_fft / 2 + 1) of equal area, evenly spaced in mel from 0 to half the rate."""
    edges = _mel_to_hertz(np.linspace(0.0, _hertz_to_mel(rate / 2), n_bands + 2))
    hertz = np.fft.rfftfreq(n_fft, 1 / rate)
    rising = (hertz - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - hertz) / np.diff(edges)[1:, None]
    triangles = np.maximum(0.0, np.minimum(rising, falling))
    return torch.from_numpy((triangles * (2.0 / (edges[2:] - edges[:-2]))[:, None]).astype(np.float32))


# Slaney's scale: 200/3 hertz a mel up to 1,000 hertz, beyond that 27 mels for a factor of 6.4.
_LINEAR, _BREAK, _STEP = 200 / 3, 1000.0, math.log(6.4) / 27


def _hertz_to_mel(hertz: float) -> float:
    return hertz / _LINEAR if hertz < _BREAK else _BREAK / _LINEAR + math.log(hertz / _BREAK) / _STEP


def _mel_to_hertz(
    mel: "np.ndarray[tuple[int], np.dtype[np.float64]]",
) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    beyond = _BREAK * np.exp(_STEP * (mel - _BREAK / _LINEAR))
    return np.where(mel < _BREAK / _LINEAR, mel * _LINEAR, beyond)


@functools.lru_cache(maxsize=16)
def cosines(n_in: int, n_out: int) -> Tensor:
    """The first columns of the orthonormal cosine transform (DCT-II), which turns a spectrum into cepstral numbers."""
    i, k = np.arange(n_in)[:, None], np.arange(n_out)
    table = np.cos(math.pi * k * (2 * i + 1) / (2 * n_in)) * math.sqrt(2 / n_in)
    table[:, 0] /= math.sqrt(2)
    return torch.from_numpy(table.astype(np.float32))


def pad_features(features: list[Tensor]) -> tuple[Tensor, Tensor | None]:
    """One batch (b, n, f), and which of its frames are real; None if all are."""
    lengths = torch.tensor([len(f) for f in features])
    batch = torch.nn.utils.rnn.pad_sequence(features, batch_first=True)
    keep = torch.arange(batch.shape[1]) < lengths[:, None]
    return batch, None if bool(keep.all()) else keep


def pad_to(features: Tensor, n: int) -> Tensor:
    """Exactly n frames: cut, or filled up with zeros."""
    return F.pad(features[:n], (0, 0, 0, max(0, n - len(features))))
