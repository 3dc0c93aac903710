"""Small pictures that we draw ourselves."""

import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def shapes(n: int, seed: int, size: int = 12) -> tuple[NDArray[np.uint8], list[str]]:
    """Bars that lie or stand, somewhere, in some grey, in noise: the mean picture of both is the same."""
    random = np.random.default_rng(seed)
    pixels = random.integers(0, 60, (n, size, size)).astype(np.uint8)
    labels = []
    for i in range(n):
        at, grey = int(random.integers(1, size - 2)), int(random.integers(150, 255))
        lies = i % 2 == 0
        pixels[(i, slice(at, at + 2)) if lies else (i, slice(None), slice(at, at + 2))] = grey
        labels.append("lies" if lies else "stands")
    return pixels, labels


def write_folders(folder: Path, n: int, seed: int, size: int = 12) -> Path:
    for i, (pixels, label) in enumerate(zip(*shapes(n, seed, size), strict=True)):
        (folder / label).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(folder / label / f"{i:04d}.png")
    return folder


def write_idx(path: Path, array: NDArray[np.uint8]) -> Path:
    """By hand, as the format's page says it."""
    header = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    content = header + array.tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path
