"""Sounds made on the spot."""

from pathlib import Path

import numpy as np
import soundfile

from glassformer.data.audio import Series


def tone(seconds: float = 0.5, hertz: float = 440.0, rate: int = 16_000, loud: float = 0.5) -> Series:
    t = np.arange(round(seconds * rate)) / rate
    return (loud * np.sin(2 * np.pi * hertz * t)).astype(np.float32)


def noise(seconds: float = 0.5, rate: int = 16_000, loud: float = 0.1, seed: int = 0) -> Series:
    random = np.random.default_rng(seed)
    return (loud * random.standard_normal(round(seconds * rate))).astype(np.float32)


def speechlike(seconds: float = 1.0, rate: int = 16_000, seed: int = 0) -> Series:
    """A few tones that come and go, over a little noise."""
    random = np.random.default_rng(seed)
    t = np.arange(round(seconds * rate)) / rate
    wave = 0.01 * random.standard_normal(len(t))
    for hertz in random.uniform(100, 0.4 * rate, size=5):
        swell = np.clip(np.sin(2 * np.pi * random.uniform(1, 4) * t + random.uniform(0, 6)), 0, 1)
        wave += 0.15 * swell * np.sin(2 * np.pi * hertz * t)
    return wave.astype(np.float32)


def write_sound(path: Path, wave: Series, rate: int = 16_000) -> Path:
    soundfile.write(path, wave, rate)
    return path
