"""IDX, the format that MNIST and its followers ship arrays in: a magic number, sizes, then plain numbers; .gz too."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.data.lines import opening
from glassformer.errors import UserError, require

# The third byte of the magic number; all numbers are big-endian.
_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_NAME = re.compile(r"(images|labels)([-_.])?(idx\d)?", re.IGNORECASE)
MOST_BYTES = 1 << 34  # more than this is a broken header, or a trap


def is_idx(path: Path) -> bool:
    """By the first bytes: two zeros, a type, and how many sizes follow."""
    if not path.is_file():
        return False
    with opening(path) as file:
        start = file.read(4)
    return len(start) == 4 and start[:2] == b"\0\0" and start[2] in _TYPES and 1 <= start[3] <= 4


def read_idx(path: Path) -> NDArray[Any]:
    """The one array of a file; its size must be what the header says."""
    require(is_idx(path), f"{path} is not an IDX file.", "Give one such as train-images-idx3-ubyte.")
    with opening(path) as file:
        _, _, code, n_sizes = file.read(4)
        sizes = tuple(int.from_bytes(file.read(4), "big") for _ in range(n_sizes))
        kind = np.dtype(_TYPES[code])
        wanted = math.prod(sizes) * kind.itemsize
        require(
            wanted <= MOST_BYTES, f"{path} says that it holds {wanted:,} bytes, which is too much.", "Copy it again."
        )
        # One byte more than is wanted shows what is too long; nothing is made room for that is not there.
        content = file.read(wanted + 1)
    require(
        len(content) == wanted,
        f"{path} is to hold {wanted:,} bytes of numbers, but holds {'more' if len(content) > wanted else 'fewer'}.",
        "Copy it again.",
    )
    return np.frombuffer(content, kind).reshape(sizes).astype(kind.newbyteorder("="), copy=False)


def labels_beside(path: Path) -> Path:
    """The file of labels that belongs to one of pictures: train-images-idx3-ubyte has train-labels-idx1-ubyte."""
    other = _NAME.sub(lambda found: f"labels{found[2] or ''}{'idx1' if found[3] else ''}", path.name, count=1)
    plain = other.removesuffix(".gz")
    for name in (other, plain, f"{plain}.gz"):
        if name != path.name and (path.parent / name).is_file():
            return path.parent / name
    raise UserError(
        f"{path} has no labels: there is no file {other if other != path.name else 'of labels'} beside it.",
        "Put it there, or name it with --labels.",
    )
