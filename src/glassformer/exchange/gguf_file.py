"""The frame of a GGUF file: metadata, a table of tensors, and each tensor on demand as float32.

The `gguf` package undoes the quantisation. Its reader believes what a file says of its own lengths, so the frame is
read here, and nothing is believed: not a length, a shape, an offset, nor that two tensors are apart.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from glassformer.errors import UserError, require
from glassformer.exchange.cursor import Cursor

MAGIC = b"GGUF"
TEXT, ARRAY, BOOL = 8, 9, 7
NUMBERS = {
    0: "u1",
    1: "i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    6: "<f4",
    BOOL: "?",
    10: "<u8",
    11: "<i8",
    12: "<f8",
}
LARGEST_ALIGNMENT = 1 << 16
MOST_DIMENSIONS = 4


@dataclass(frozen=True)
class Stored:
    """Where a tensor lies and how; the shape is torch's, rows first."""

    shape: tuple[int, ...]
    kind: str  # Q4_1
    start: int
    n_bytes: int


class GgufFile:
    """A checked file; the metadata are numbers, texts, numpy arrays and lists of texts."""

    def __init__(self, path: Path) -> None:
        self.path, self._library = path, _library()
        with path.open("rb") as file:
            cursor = Cursor(file, path, "GGUF")
            n_tensors, n_values = _read_head(cursor)
            self.metadata: dict[str, Any] = {}
            for _ in range(n_values):
                key = _text(cursor, "a name of the metadata")
                if key in self.metadata:
                    raise cursor.fail(f"{key!r} is said twice")
                self.metadata[key] = _value(cursor, cursor.number("I", key), key[:60])
            self.tensors = self._read_table(cursor, n_tensors)
        _check_apart(self.tensors, cursor)

    def _read_table(self, cursor: Cursor, n_tensors: int) -> Mapping[str, Stored]:
        table = {}
        for i in range(n_tensors):
            name = _text(cursor, f"the name of tensor {i}")
            n_dims = cursor.number("I", name)
            if n_dims > MOST_DIMENSIONS or name in table:
                raise cursor.fail(f"the tensor {name[:60]!r} has {n_dims} dimensions, or is there twice")
            dims = cursor.numbers(f"{n_dims}Q", name)
            kind, offset = cursor.numbers("IQ", name)
            table[name] = (dims, kind, offset)
        alignment = self.metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or not 0 < alignment <= LARGEST_ALIGNMENT:
            raise cursor.fail(f"its alignment is {alignment}")
        data = -(-cursor.place // alignment) * alignment
        return {name: self._place(cursor, data, name, *entry) for name, entry in table.items()}

    def _place(self, cursor: Cursor, data: int, name: str, dims: tuple[int, ...], kind: int, offset: int) -> Stored:
        library = self._library
        try:
            quantisation = library.GGMLQuantizationType(kind)
        except ValueError:
            raise cursor.fail(f"the tensor {name[:60]!r} is of the unknown type {kind}") from None
        per_block, block_bytes = library.GGML_QUANT_SIZES[quantisation]
        row = dims[0] if dims else 1
        if 0 in dims or row % per_block:
            raise cursor.fail(f"the tensor {name[:60]!r} has the shape {dims} in {quantisation.name}")
        n_bytes = math.prod(dims) // per_block * block_bytes
        if data + offset + n_bytes > cursor.size:
            raise cursor.fail(f"the tensor {name[:60]!r} would end after the file")
        return Stored(tuple(reversed(dims)), str(quantisation.name), data + offset, n_bytes)

    def read(self, name: str) -> Tensor:
        """One tensor as float32."""
        stored = self.tensors[name]
        raw = np.fromfile(self.path, dtype=np.uint8, count=stored.n_bytes, offset=stored.start)
        require(len(raw) == stored.n_bytes, f"{self.path} became shorter while it was read.", "Import it again.")
        n_rows = math.prod(stored.shape[:-1])
        try:
            with np.errstate(all="ignore"):  # numbers that are none are seen in what the model computes
                flat = self._library.dequantize(
                    raw.reshape(n_rows, -1), self._library.GGMLQuantizationType[stored.kind]
                )
        except NotImplementedError:
            raise UserError(
                f"{name} in {self.path} is stored as {stored.kind}, which the gguf package cannot turn into numbers.",
                "Take a file in F16, Q8_0, Q4_1 or another of its common types.",
            ) from None
        return torch.from_numpy(np.ascontiguousarray(flat, dtype=np.float32)).reshape(stored.shape)

    def get(self, key: str, kind: type, default: Any = None) -> Any:
        """A value of the metadata, of the kind that it must have; a whole number does for a float."""
        value = self.metadata.get(key, default)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if not fits and not (value is None and default is None and key not in self.metadata):
            raise UserError(
                f"{self.path} is not a sound GGUF file: {key} is {str(value)[:60]!r}.",
                "Copy it again from where it came.",
            )
        return value


def _read_head(cursor: Cursor) -> tuple[int, int]:
    if cursor.bytes(4, "the head") != MAGIC:
        raise cursor.fail("it does not begin with the letters GGUF")
    version = cursor.number("I", "the head")
    require(
        version in (2, 3),
        f"{cursor.path} is a GGUF file of version {version}, or a big-endian one; versions 2 and 3 are read.",
        "Convert the model again with a current llama.cpp.",
    )
    n_tensors, n_values = cursor.numbers("2Q", "the head")
    # A tensor takes at least 24 bytes of the table, a value 13.
    cursor.need(24 * n_tensors + 13 * n_values, f"{n_tensors:,} tensors and {n_values:,} values")
    return n_tensors, n_values


def _value(cursor: Cursor, kind: int, key: str) -> Any:
    if kind == TEXT:
        return _text(cursor, key)
    if kind != ARRAY:
        return _array(cursor, kind, 1, key)[0].item()
    kind, n = cursor.numbers("IQ", key)
    if kind == TEXT:
        cursor.need(8 * n, f"{key} with {n:,} texts")
        return [_text(cursor, key) for _ in range(n)]
    return _array(cursor, kind, n, key)


def _array(cursor: Cursor, kind: int, n: int, key: str) -> Any:
    if kind not in NUMBERS:
        raise cursor.fail(f"{key} is of the kind {kind}")
    if kind == BOOL:  # any byte may stand there
        return cursor.array("u1", n, key) != 0
    return cursor.array(NUMBERS[kind], n, key)


def _text(cursor: Cursor, what: str) -> str:
    return cursor.text(cursor.number("Q", what), what)


def _check_apart(tensors: Mapping[str, Stored], cursor: Cursor) -> None:
    """Overlapping tensors would let a small file claim any amount of memory."""
    end = 0
    for name, stored in sorted(tensors.items(), key=lambda item: item[1].start):
        if stored.start < end:
            raise cursor.fail(f"the tensor {name[:60]!r} lies over another one")
        end = stored.start + stored.n_bytes


def _library() -> ModuleType:
    try:
        import gguf
    except ImportError:
        raise UserError(
            "Reading GGUF files needs the package gguf, which is not installed.",
            "Install it: pip install 'glassformer[gguf]'.",
        ) from None
    return gguf
