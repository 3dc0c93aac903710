"""The nearest texts to a query: vectors of all texts, compared by cosine.

The vectors may be kept in a file; it knows which texts and which model they come from, and is made again when either
has changed.
"""

import hashlib
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from glassformer.data.files import writing
from glassformer.data.lines import check_text, read_lines
from glassformer.errors import UserError, require
from glassformer.tasks.embedder import Embedder, Vectors

MODEL_FILES = ("settings.json", "model.safetensors", "adapter.safetensors", "tokenizer.json", "source_tokenizer.json")
BLOCK = 256  # queries compared at once


@dataclass(frozen=True)
class Texts:
    """The lines of a file that hold something, each with its number from 1 on."""

    texts: list[str]
    lines: list[int]


@dataclass(frozen=True)
class Hit:
    score: float  # the cosine, 1 for the same direction
    line: int
    text: str


def read_texts(path: Path) -> Texts:
    check_text(path)
    rows = [(n, line.decode("utf-8", errors="replace").strip()) for n, line in enumerate(read_lines(path), 1)]
    kept = [(n, text) for n, text in rows if text]
    return Texts([text for _, text in kept], [n for n, _ in kept])


class SearchIndex:
    """Texts and their vectors, each of length 1."""

    def __init__(self, texts: Texts, vectors: Vectors) -> None:
        assert len(texts.texts) == len(vectors)
        self.texts, self.vectors = texts, vectors

    def search(self, embedder: Embedder, queries: Sequence[str], top: int = 5) -> list[list[Hit]]:
        """For each query the `top` nearest texts, the nearest first; of equals the earlier line."""
        require(top >= 1, f"top is {top}, but at least one text is to be found.", "Ask for 1 or more.")
        vectors = embedder.embed(queries, normalise=True)
        found = []
        for i in range(0, len(vectors), BLOCK):
            found += [self._nearest(scores, top) for scores in vectors[i : i + BLOCK] @ self.vectors.T]
        return found

    def _nearest(self, scores: Vectors, top: int) -> list[Hit]:
        n = min(top, len(scores))
        border = np.partition(scores, -n)[-n]
        near = np.flatnonzero(scores >= border)
        best = near[np.argsort(-scores[near], kind="stable")][:n]
        return [Hit(float(scores[i]), self.texts.lines[i], self.texts.texts[i]) for i in best]


def make_index(embedder: Embedder, texts: Texts) -> SearchIndex:
    return SearchIndex(texts, embedder.embed(texts.texts, normalise=True))


def keep_index(embedder: Embedder, texts: Texts, path: Path) -> tuple[SearchIndex, str]:
    """The index from the file if it is of these texts and this model; else it is made, and written there.

    The second is what was done: "read", "made", or "made again".
    """
    require(path.suffix == ".npz", f"The index is to be {path}, but it is an .npz file.", f"Say {path.stem}.npz.")
    key = _key(embedder, texts)
    done = "made"
    if path.exists():
        known, vectors = _read(path)
        if known == key and len(vectors) == len(texts.texts):
            return SearchIndex(texts, vectors), "read"
        done = "made again"
    index = make_index(embedder, texts)
    with writing(path) as file:
        np.savez(file, key=np.array(key), vectors=index.vectors)
    return index, done


def _read(path: Path) -> tuple[str, Vectors]:
    """What the file holds; one that is no index is not touched."""
    try:
        with np.load(path, allow_pickle=False) as file:
            key, vectors = str(file["key"]), file["vectors"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"{path} is no index of texts: {str(error)[:100]}.", "Name another file.") from None
    sound = vectors.ndim == 2 and vectors.dtype == np.float32 and bool(np.isfinite(vectors).all())
    require(sound, f"{path} is no index of texts: its vectors are none.", "Name another file.")
    return key, vectors


def _key(embedder: Embedder, texts: Texts) -> str:
    """Stands for the texts and everything in the model's folder that shapes a vector."""
    total = hashlib.sha256()
    for name in MODEL_FILES:
        path = embedder.loaded.path / name
        if path.exists():
            with path.open("rb") as file:
                total.update(hashlib.file_digest(file, "sha256").digest())
    for line, text in zip(texts.lines, texts.texts, strict=True):
        total.update(f"{line}\t{text}\n".encode("utf-8", errors="replace"))
    return total.hexdigest()
