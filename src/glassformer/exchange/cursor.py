"""Numbers and texts from a binary file that nobody vouches for: each length is held against the bytes that are left."""

import struct
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from glassformer.errors import UserError


class Cursor:
    """A place in an open file; it moves forward only, and never past the end."""

    def __init__(self, file: BinaryIO, path: Path, what: str) -> None:
        self.file, self.path, self.what = file, path, what
        self.size = file.seek(0, 2)
        self.place = file.seek(0)

    @property
    def left(self) -> int:
        return self.size - self.place

    def fail(self, why: str) -> UserError:
        return UserError(f"{self.path} is not a sound {self.what} file: {why}.", "Copy it again from where it came.")

    def need(self, n_bytes: int, what: str) -> None:
        if n_bytes < 0 or n_bytes > self.left:
            raise self.fail(f"{what} would need {n_bytes:,} bytes at byte {self.place:,}, but {self.left:,} are left")

    def bytes(self, n: int, what: str) -> bytes:
        self.need(n, what)
        found = self.file.read(n)
        self.place += n
        if len(found) != n:  # it became shorter while it was read
            raise self.fail(f"it ends in {what}")
        return found

    def numbers(self, layout: str, what: str) -> tuple[int, ...]:
        """Whole numbers in struct's layout, little-endian."""
        return struct.unpack(f"<{layout}", self.bytes(struct.calcsize(f"<{layout}"), what))

    def number(self, layout: str, what: str) -> int:
        return self.numbers(layout, what)[0]

    def array(self, dtype: str, n: int, what: str) -> NDArray[np.generic]:
        """n numbers of a numpy type."""
        kind = np.dtype(dtype)
        self.need(n * kind.itemsize, what)
        found = np.empty(n, dtype=kind)
        self.place += n * kind.itemsize
        if self.file.readinto(found.view(np.uint8)) != found.nbytes:  # type: ignore[attr-defined]
            raise self.fail(f"it ends in {what}")
        return found

    def text(self, n: int, what: str) -> str:
        try:
            return self.bytes(n, what).decode("utf-8")
        except UnicodeDecodeError:
            raise self.fail(f"{what} is not UTF-8") from None

    def skip_to(self, place: int, what: str) -> None:
        self.need(place - self.place, what)
        self.place = self.file.seek(place)
