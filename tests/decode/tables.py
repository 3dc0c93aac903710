"""A "model" without a net: what may follow depends on the sentence and on all that was fed, by a fixed dice."""

from functools import cache

import numpy as np
import torch
from torch import Tensor


class TableSteps:
    """Remembers each row's tokens as a cache would; a row that was moved wrongly gets wrong scores."""

    def __init__(self, n_sentences: int, width: int, n_words: int, seed: int = 0) -> None:
        self.n_words, self.seed = n_words, seed
        self.rows = [(s, ()) for s in range(n_sentences) for _ in range(width)]

    def step(self, ids: Tensor) -> Tensor:
        assert len(ids) == len(self.rows)
        self.rows = [(s, (*fed, *new)) for (s, fed), new in zip(self.rows, ids.tolist(), strict=True)]
        return torch.tensor(np.stack([logits(self.seed, s, fed, self.n_words) for s, fed in self.rows]))

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        before = list(dict.fromkeys(s for s, _ in self.rows))
        self.rows = [self.rows[i] for i in rows.tolist()]
        after = list(dict.fromkeys(s for s, _ in self.rows))
        assert after == (before if sentences is None else [before[i] for i in sentences.tolist()])


@cache
def logits(seed: int, sentence: int, fed: tuple[int, ...], n_words: int) -> np.ndarray:
    return np.random.default_rng([seed, sentence, *fed]).normal(size=n_words).astype(np.float32) * 2


@cache
def log_p(seed: int, sentence: int, fed: tuple[int, ...], n_words: int) -> np.ndarray:
    scores = logits(seed, sentence, fed, n_words).astype(np.float64)
    return scores - np.log(np.exp(scores).sum())
