"""The shape and the text that all systems train: tiny Shakespeare by characters."""

import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.training.meter import Job

FIRST = 3  # ids below are marks


@dataclass(frozen=True)
class Shape:
    d_model: int
    n_layers: int
    n_heads: int
    context: int

    @classmethod
    def of(cls, job: Job) -> "Shape":
        return cls(**json.loads((job.folder / "shape.json").read_text()))


def read_stream(job: Job) -> tuple[NDArray[np.int64], int]:
    """Characters as ids, and how many ids there are."""
    text = (job.folder / "text.txt").read_text(encoding="utf-8")
    ids = {character: FIRST + i for i, character in enumerate(sorted(set(text)))}
    return np.array([ids[character] for character in text], dtype=np.int64), FIRST + len(ids)
