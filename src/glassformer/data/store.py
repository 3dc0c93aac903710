"""Token sequences on disk, memory-mapped: a corpus may be larger than memory.

A store is two files: NAME.ids holds all ids one after the other; NAME.ends the bytes of an id, the number of sequences,
a checksum, and where each of them ends. So each file's size can be checked to the byte, and what is in it too.
"""

import copy
import zlib
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from glassformer.data.files import writing
from glassformer.errors import require

HEADER = 3  # numbers before the ends
BLOCK = 2**20  # bytes that are checked at a time


class TokenStore:
    """Read access to the sequences of one store."""

    def __init__(self, path: Path) -> None:
        ids, ends = _ids_file(path), _ends_file(path)
        require(
            ids.exists() and ends.exists(),
            f"The token store {path} is not complete.",
            "Delete its folder and train again.",
        )
        numbers: NDArray[np.int64] = np.fromfile(ends, dtype="<i8")
        width, n_sequences, checksum = numbers[:HEADER].tolist() if len(numbers) >= HEADER else (0, 0, 0)
        self.ends = numbers[HEADER:]
        self.lengths: NDArray[np.int64] = np.diff(self.ends, prepend=0)
        n_ids = int(self.ends[-1]) if len(self.ends) else 0
        require(
            width in (2, 4)
            and ends.stat().st_size == 8 * (HEADER + n_sequences)
            and ids.stat().st_size == width * n_ids
            and bool((self.lengths >= 0).all())
            and checksum == zlib.crc32(self.ends.data, _checksum(ids)),
            f"The token store {path} is damaged, or another version of Glassformer wrote it.",
            "Delete its folder and train again.",
        )
        self.ids = np.memmap(ids, dtype=f"<u{width}", mode="r") if n_ids else np.empty(0, dtype="<u2")

    def every(self, step: int, begin: int) -> "TokenStore":
        """A view of sequences begin, begin + step, …: pairs are stored one side after the other."""
        view = copy.copy(self)
        view.ends, view.lengths = self.ends[begin::step], self.lengths[begin::step]
        return view

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, i: int) -> NDArray[np.int64]:
        end = self.ends[i]
        return np.asarray(self.ids[end - self.lengths[i] : end], dtype=np.int64)

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        return (self[i] for i in range(len(self)))


def write_store(path: Path, sequences: Iterable[list[int]], vocab_size: int) -> TokenStore:
    """Write sequences as they come; nothing but the ends is held in memory, in eight bytes each."""
    return write_pieces(path, ((ids, True) for ids in sequences), vocab_size)


def write_pieces(path: Path, pieces: Iterable[tuple[list[int], bool]], vocab_size: int) -> TokenStore:
    """The same for sequences that come in pieces, each with whether its sequence ends there."""
    width = 2 if vocab_size <= 2**16 else 4
    ends: array[int] = array("q")
    end = checksum = 0
    with writing(_ids_file(path)) as file:
        whole = True
        for ids, whole in pieces:
            data = np.asarray(ids, dtype=f"<u{width}").tobytes()
            file.write(data)
            checksum = zlib.crc32(data, checksum)
            end += len(ids)
            if whole:
                ends.append(end)
        if not whole:
            ends.append(end)
    all_ends: NDArray[np.int64] = np.asarray(ends, dtype="<i8")  # the same memory, where integers are like that
    with writing(_ends_file(path)) as file:
        file.write(np.asarray([width, len(ends), zlib.crc32(all_ends.data, checksum)], dtype="<i8").tobytes())
        file.write(all_ends.data)
    return TokenStore(path)


def _checksum(path: Path) -> int:
    """Of a file that may be larger than memory."""
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _ids_file(path: Path) -> Path:
    return path.with_name(path.name + ".ids")


def _ends_file(path: Path) -> Path:
    return path.with_name(path.name + ".ends")
