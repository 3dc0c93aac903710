"""Recordings from files: wav, flac, ogg and mp3 of any rate and number of channels become one series of samples.

Ready-made series of vectors are read here too: numpy's .npy and .npz, and Sphinx's .mfc. Whatever is wrong with a file
is a UserError that names it, so that the other files can go on. Deliberately not here: what the samples turn into
(`features`).
"""

import math
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from glassformer.errors import UserError, require

Series = NDArray[np.float32]  # samples (t), or vectors (t, f)

SOUNDS = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff", ".au")
VECTORS = (".npy", ".npz", ".mfc")
MOST_SECONDS = 4 * 3600  # of one file: samples of four hours are a gigabyte
MOST_CHANNELS = 64
MOST_VALUES = 1 << 28  # numbers of one series of vectors: a gigabyte
MFC_WIDTH = 13  # numbers of a Sphinx frame


@dataclass(frozen=True)
class SoundInfo:
    rate: int
    n_channels: int
    seconds: float


def is_vectors(path: Path) -> bool:
    return path.suffix.lower() in VECTORS


def is_recording(name: str) -> bool:
    """Whether a name is that of a file that is read here."""
    return name.lower().endswith(SOUNDS + VECTORS)


def is_there(path: Path) -> bool:
    """Whether there is such a file; of a name that none can have, such as one far too long, there is none."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def sound_info(path: Path) -> SoundInfo:
    """What a sound file says of itself, without reading its samples."""
    _check_file(path)
    try:
        with soundfile.SoundFile(path) as file:
            rate, n_channels, n = int(file.samplerate), int(file.channels), int(file.frames)
    except (soundfile.SoundFileError, OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    require(n > 0, f"{path} holds no samples.", "Check that it was recorded to the end.")
    require(
        1 <= n_channels <= MOST_CHANNELS and rate >= 1000,
        f"{path} has {n_channels} channels and {rate} samples a second.",
        f"Up to {MOST_CHANNELS} channels and 1,000 samples a second or more can be read.",
    )
    require(
        n <= rate * MOST_SECONDS,
        f"{path} is {_hours(n / rate)} long, but at most {_hours(MOST_SECONDS)} are read at once.",
        "Cut it into shorter files.",
    )
    return SoundInfo(rate, n_channels, n / rate)


def read_sound(path: Path, rate: int) -> Series:
    """The samples between -1 and 1 at `rate` a second, all channels mixed into one."""
    found = sound_info(path)
    try:
        samples, _ = soundfile.read(path, dtype="float32", always_2d=True)
    except (soundfile.SoundFileError, OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    require(len(samples) > 0, f"{path} holds no samples.", "Check that it was recorded to the end.")
    wave: Series = samples[:, 0] if samples.shape[1] == 1 else samples.mean(axis=1, dtype=np.float32)
    require(bool(np.isfinite(wave).all()), f"{path} holds samples that are no numbers.", "Write it again.")
    return resample(wave, found.rate, rate)


def resample(wave: Series, rate: float, new_rate: float, quality: str = "HQ") -> Series:
    """The same sound in another number of samples a second."""
    if rate == new_rate:
        return wave
    return np.asarray(soxr.resample(wave, rate, new_rate, quality), dtype=np.float32)


def read_vectors(path: Path, width: int | None = None) -> Series:
    """A series of vectors (t, f) of the given width, if one is given."""
    _check_file(path)
    series = _read_sphinx(path, width or MFC_WIDTH) if path.suffix.lower() == ".mfc" else _read_numpy(path)
    require(
        series.ndim == 2 and 0 not in series.shape,
        f"{path} holds an array of shape {series.shape}, but a series of vectors has (length, width).",
        "Write one row for each moment.",
    )
    require(
        width is None or series.shape[1] == width,
        f"{path} holds vectors of {series.shape[1]} numbers, but the others have {width}.",
        "All series are to have the same width.",
    )
    require(bool(np.isfinite(series).all()), f"{path} holds values that are no numbers.", "Write it again.")
    return series


def _read_numpy(path: Path) -> Series:
    try:
        if path.suffix.lower() == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                names = archive.files
                require(
                    len(names) == 1, f"{path} holds {len(names)} arrays.", "Give a file with one array (length, width)."
                )
                series = archive[names[0]]
        else:
            series = np.load(path, mmap_mode="r", allow_pickle=False)
        require(
            series.dtype.kind in "fiu" and series.size <= MOST_VALUES,
            f"{path} holds {series.size:,} values of type {series.dtype}.",
            f"Up to {MOST_VALUES:,} plain numbers can be read.",
        )
        return np.array(series, dtype=np.float32)
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, MemoryError) as error:
        raise UserError(f"{path} cannot be read as numpy's file: {error}.", "Write it with numpy.save.") from None


def _read_sphinx(path: Path, width: int) -> Series:
    """A count of numbers, then so many 32-bit floats; big-endian, or little-endian where only that fits the size."""
    data = path.read_bytes()
    n = (len(data) - 4) // 4
    for order in (">", "<"):
        if len(data) == 4 + 4 * n and n > 0 and int(np.frombuffer(data, f"{order}i4", 1)[0]) == n:
            require(
                n % width == 0,
                f"{path} holds {n:,} numbers, which are no whole vectors of {width}.",
                f"Sphinx's usual width is {MFC_WIDTH}.",
            )
            return np.frombuffer(data, f"{order}f4", offset=4).astype(np.float32).reshape(-1, width)
    raise UserError(
        f"{path} is not a Sphinx feature file, or is cut short: its count does not fit its {len(data):,} bytes.",
        "Copy it again.",
    )


def level(wave: Series) -> float:
    """Loudness in decibels below full scale: the root of the mean square; -inf for pure silence."""
    power = float(np.mean(np.square(wave, dtype=np.float64)))
    return 10 * math.log10(power) if power > 0 else -math.inf


def _check_file(path: Path) -> None:
    require(is_there(path), f"There is no file {path}.", "Check the name.")
    require(path.is_file(), f"{path} is not a file.", "Name a recording.")
    require(path.stat().st_size > 0, f"{path} is empty.", "Check that it was recorded to the end.")


def _unreadable(path: Path, error: Exception) -> UserError:
    reason = str(error).rpartition(": ")[2].strip().rstrip(".") or type(error).__name__
    return UserError(
        f"{path} cannot be read as sound: {reason}.", "Wav, flac, ogg and mp3 can; check that the file is whole."
    )


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours"
