"""What to train, and the clock: real target tokens a second over whole steps, after warming up."""

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

N_LAYERS, D_MODEL, D_FF, N_HEADS = 4, 128, 256, 4  # the published Multi30k shape
SMOOTHING, CLIP, LR, BETAS = 0.1, 1.0, 1e-3, (0.9, 0.98)


@dataclass(frozen=True)
class Job:
    """What every system is asked to do."""

    folder: Path  # of the corpus
    budget: int  # tokens a batch
    rows: int  # sentences a batch, for those who count sentences: as many real target tokens as our batches have
    dropout: float
    seconds: float
    warmup: float


class Meter:
    """Told after every optimizer step how many real target tokens it had; ends the process when time is over."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.n_steps = self.n_tokens = self.n_parameters = 0
        self.first: float | None = None  # the first step's end: what comes before is loading
        self.began: float | None = None

    def look_at(self, model: nn.Module) -> None:
        """Count what is trained, tied weights once: all systems should have about as much."""
        self.n_parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)

    def step(self, n_tokens: int) -> None:
        """Call it right after a step. Loading the next batch falls into the next step's time."""
        now = time.perf_counter()
        self.first = now if self.first is None else self.first
        if self.began is None:
            if now - self.first >= self.job.warmup:
                self.began = now
            return
        self.n_steps += 1
        self.n_tokens += n_tokens
        if now - self.began >= self.job.seconds:
            self._finish(now - self.began)

    def _finish(self, seconds: float) -> None:
        found: dict[str, Any] = {"tokens": self.n_tokens, "steps": self.n_steps, "seconds": seconds}
        found["parameters"] = self.n_parameters
        sys.stdout.flush()
        print("\nMETER " + json.dumps(found), flush=True)
        _end_children()
        os._exit(0)  # saving a model and the like is not what we measure


def without_inner_dropout(model: nn.Module) -> None:
    """OpenNMT-py and eole also drop inside feed-forward; the others do not, and it costs time."""
    for module in model.modules():
        if hasattr(module, "dropout_1") and hasattr(module, "dropout_2"):
            module.dropout_1.p = 0.0


def _end_children() -> None:
    """Worker processes that load data for this one."""
    import multiprocessing

    for child in multiprocessing.active_children():
        child.terminate()
