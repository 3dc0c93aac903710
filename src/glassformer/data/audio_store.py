"""Recordings on disk, ready to train on: samples as 16-bit numbers, or vectors as floats, memory-mapped.

A store is two files: NAME.values holds all values one after the other; NAME.rows the width of a row (0: samples), the
number of recordings, and the row where each of them ends.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from glassformer.data.audio import Series
from glassformer.data.files import writing
from glassformer.errors import require

FULL = 32767  # the largest sample


class AudioStore:
    """Read access to the recordings of one store."""

    def __init__(self, path: Path) -> None:
        values, rows = _values_file(path), _rows_file(path)
        require(
            values.exists() and rows.exists(),
            f"The store {path} is not complete.",
            "Delete its folder and train again.",
        )
        numbers: NDArray[np.int64] = np.fromfile(rows, dtype="<i8")
        head: list[int] = numbers[:2].tolist() if len(numbers) >= 2 else [-1, 0]
        self.width, n = head
        self.ends = numbers[2:]
        self.lengths: NDArray[np.int64] = np.diff(self.ends, prepend=0)
        n_rows = int(self.ends[-1]) if len(self.ends) else 0
        size = 2 * n_rows if self.width == 0 else 4 * self.width * n_rows
        require(
            self.width >= 0
            and len(self.ends) == n
            and values.stat().st_size == size
            and bool((self.lengths > 0).all()),
            f"The store {path} is damaged.",
            "Delete its folder and train again.",
        )
        shape = (n_rows,) if self.width == 0 else (n_rows, self.width)
        kind = "<i2" if self.width == 0 else "<f4"
        self.values = np.memmap(values, dtype=kind, mode="r", shape=shape) if n_rows else np.empty(shape, dtype=kind)

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, i: int) -> Series:
        part = self.values[self.ends[i] - self.lengths[i] : self.ends[i]]
        return part.astype(np.float32) / np.float32(FULL) if self.width == 0 else part.astype(np.float32)


def write_audio_store(path: Path, recordings: Iterable[Series]) -> AudioStore:
    """Write recordings as they come, all of them samples or all of them vectors of one width."""
    ends: list[int] = []
    width, end = 0, 0
    with writing(_values_file(path)) as file:
        for series in recordings:
            width = 0 if series.ndim == 1 else series.shape[1]
            if width == 0:
                file.write((np.clip(series, -1, 1) * FULL).round().astype("<i2").tobytes())
            else:
                file.write(series.astype("<f4").tobytes())
            end += len(series)
            ends.append(end)
    with writing(_rows_file(path)) as file:
        file.write(np.asarray([width, len(ends), *ends], dtype="<i8").tobytes())
    return AudioStore(path)


def _values_file(path: Path) -> Path:
    return path.with_name(path.name + ".values")


def _rows_file(path: Path) -> Path:
    return path.with_name(path.name + ".rows")
