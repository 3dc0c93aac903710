"""Labelled pictures, unpacked: all of one size and number of channels, as bytes in memory.

Size and channels are found from the pictures themselves. n pictures, h height, w width, c channels
"""

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.data.counted import counted
from glassformer.data.labels import Raw
from glassformer.data.picture_file import Frame, Header, Pixels, array_picture, read_header, read_picture
from glassformer.data.picture_find import ArrayedPictures, FiledPictures, PictureFiles
from glassformer.errors import UserError, require

SAMPLE = 2000  # pictures whose size is looked at
Span = tuple[float, float]  # the values that are black and white in an array
BYTES: Span = (0.0, 255.0)


@dataclass(frozen=True)
class Pictures:
    """All pictures of some files, their raw labels (none where nothing says them) and where each comes from."""

    paths: tuple[Path, ...]
    pixels: NDArray[np.uint8]  # (n, h, w, c)
    labels: list[Raw]
    places: list[str]
    bad: list[str]  # what could not be read, and why

    def keys(self) -> list[str]:
        """What tells two pictures apart."""
        return [hashlib.blake2b(one.tobytes(), digest_size=16).hexdigest() for one in self.pixels]

    def fingerprint(self) -> str:
        total = hashlib.sha256(np.ascontiguousarray(self.pixels).data)
        total.update(repr((self.pixels.shape, self.labels)).encode())
        return total.hexdigest()

    def without_colours(self) -> "Pictures":
        """With one channel."""
        return Pictures(self.paths, self.pixels[..., :1].copy(), self.labels, self.places, self.bad)

    def select(self, rows: Sequence[int]) -> "Pictures":
        labels = [self.labels[i] for i in rows] if self.labels else []
        return Pictures(self.paths, self.pixels[list(rows)], labels, [self.places[i] for i in rows], self.bad)

    def __str__(self) -> str:
        h, w, c = self.pixels.shape[1:]
        said = (
            f"{counted(len(self.pixels), 'picture')}, read as {h} × {w} pixels {'in colour' if c == 3 else 'in grey'}."
        )
        return " ".join([said, *self.skipped()])

    def skipped(self) -> list[str]:
        """In a sentence, what could not be read; nothing where all could."""
        return [f"Skipped {len(self.bad):,}: the first, {self.bad[0]}."] if self.bad else []


@dataclass(frozen=True)
class Survey:
    """What pictures look like before they are unpacked."""

    sizes: Counter[tuple[int, int]]  # height and width
    is_coloured: bool
    span: Span

    @property
    def size(self) -> tuple[int, int]:
        """The commonest one; of equals the greatest."""
        return max(self.sizes, key=lambda size: (self.sizes[size], size))

    @property
    def n_other(self) -> int:
        return self.sizes.total() - self.sizes[self.size]


def survey(files: PictureFiles) -> Survey:
    """Look at a sample, evenly spread."""
    sizes: Counter[tuple[int, int]] = Counter()
    coloured, reasons = False, list(files.skipped)
    for part in files.parts:
        for found in _headers(part):
            if isinstance(found, str):
                reasons.append(found)
            else:
                sizes[found.height, found.width] += 1
                coloured |= found.is_coloured
    if not sizes:
        raise UserError(f"No picture can be read: {reasons[0]}.", "Check the files.")
    arrays = [part.values for part in files.parts if isinstance(part, ArrayedPictures)]
    return Survey(sizes, coloured, find_span(arrays))


def read_pictures(files: PictureFiles, frame: Frame, span: Span = BYTES) -> Pictures:
    """Unpack all; what cannot be read is left out and named. That nothing is left is an error."""
    n = sum(len(part.places) for part in files.parts)
    _check_memory(n, frame)
    parts = list(read_some(files, frame, span, max(1, n)))
    assert len(parts) == 1
    found = parts[0]
    require(
        bool(found.places),
        f"No picture can be read: {found.bad[0] if found.bad else files.paths[0]}.",
        "Check the files.",
    )
    require(
        len(found.labels) in (0, len(found.places)),
        f"{files.paths[0]} and the others: {len(found.places) - len(found.labels):,} pictures have no label.",
        "Give files that all have labels, or none.",
    )
    return found


def read_some(files: PictureFiles, frame: Frame, span: Span, at_once: int) -> Iterator[Pictures]:
    """Unpack so many at a time, in order; the last have what is left."""
    shape = (frame.height, frame.width, frame.n_channels)
    n, bad = 0, list(files.skipped)
    labels: list[Raw] = []
    places: list[str] = []
    pixels = np.empty((at_once, *shape), dtype=np.uint8)
    for part in files.parts:
        for i, found in enumerate(_unpacked(part, frame, span)):
            if n == at_once:
                yield Pictures(files.paths, pixels[: len(places)], labels, places, bad)
                pixels = np.empty_like(pixels)
                n, bad, labels, places = 0, [], [], []
            n += 1
            if isinstance(found, str):
                bad.append(f"{part.places[i]} {found}")
                continue
            pixels[len(places)] = found
            places.append(part.places[i])
            labels += part.labels[i : i + 1]
    yield Pictures(files.paths, pixels[: len(places)], labels, places, bad)


def picture_of(given: Any, frame: Frame, span: Span) -> Pixels:
    """One picture by its path or as an array (h, w) or (h, w, c); what is none is refused."""
    if isinstance(given, str | Path):
        found = read_picture(Path(given), frame)
        if isinstance(found, str):
            raise UserError(f"{given} {found}.", "Give a picture such as a PNG or JPEG file.")
        return found
    values = np.asarray(given)
    values = values[:, :, None] if values.ndim == 2 else values
    require(
        values.ndim == 3 and values.shape[2] in (1, 3) and values.size > 0 and values.dtype.kind in "fiub",
        f"A picture has shape {values.shape} and type {values.dtype}.",
        "Give a path, or an array (height, width), or with 1 or 3 channels at the end.",
    )
    return array_picture(as_bytes(values, span), frame)


def are_grey(pixels: NDArray[np.uint8]) -> bool:
    """Whether three channels say no more than one."""
    if pixels.shape[-1] != 3:
        return False
    return all(bool((one[..., :1] == one[..., 1:]).all()) for one in pixels)


def find_span(arrays: Sequence[NDArray[Any]]) -> Span:
    """What is black and what is white in arrays: bytes, shares, or else their least and greatest value."""
    if not arrays:
        return BYTES
    low, high = min(float(a.min()) for a in arrays), max(float(a.max()) for a in arrays)
    whole = all(a.dtype.kind in "iub" for a in arrays)
    if low >= 0 and high <= 255 and (any(a.dtype == np.uint8 for a in arrays) or high > (1 if whole else 128)):
        return BYTES
    if low >= 0 and high <= 1:
        return (0.0, 1.0)
    return (low, high)


def as_bytes(values: NDArray[Any], span: Span) -> NDArray[np.uint8]:
    """Numbers between the two of `span` as 0 to 255; what lies outside is cut off."""
    if values.dtype == np.uint8 and span == BYTES:
        return np.asarray(values, dtype=np.uint8)
    low, high = span
    scaled = (values.astype(np.float32) - low) * (255.0 / ((high - low) or 1.0))
    clipped: NDArray[np.uint8] = np.clip(scaled.round(), 0, 255).astype(np.uint8)
    return clipped


def _headers(part: FiledPictures | ArrayedPictures) -> Iterator[Header | str]:
    if isinstance(part, ArrayedPictures):
        _, height, width, n_channels = part.values.shape
        yield from [Header(height, width, n_channels == 3)] * min(SAMPLE, len(part.values))
        return
    n = len(part.files)
    for i in range(n) if n <= SAMPLE else (j * n // SAMPLE for j in range(SAMPLE)):
        found = read_header(part.files[i])
        yield f"{part.places[i]} {found}" if isinstance(found, str) else found


def _unpacked(part: FiledPictures | ArrayedPictures, frame: Frame, span: Span) -> Iterator[Pixels | str]:
    if isinstance(part, FiledPictures):
        yield from (read_picture(path, frame) for path in part.files)
    else:
        yield from (array_picture(as_bytes(values, span), frame) for values in part.values)


def _check_memory(n: int, frame: Frame) -> None:
    needed = n * frame.height * frame.width * frame.n_channels
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return
    require(
        needed * 4 < there * 3,
        f"{n:,} pictures of {frame.height} × {frame.width} need {needed / 2**30:.1f} GB of memory, which is too much.",
        "Make them smaller, such as --set pictures.size=[64,64], or give fewer.",
    )
