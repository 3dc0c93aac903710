"""The common ground of all rungs with weights: what differs between them is the network, and what it can say of itself.

b rows, n words of a window, N words of the vocabulary (the start token has number N)
"""

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from glassformer.errors import UserError, require
from glassformer.ladder.counts import UNKNOWN, Codes, Ids
from glassformer.ladder.fitting import NO_WORD, Budget, Progress, Schedule, Windows, learn, shift
from glassformer.ladder.markov import START
from glassformer.ladder.rung import Explanation, Prediction, Reason, Rung, Scores, Words, check_sequences
from glassformer.model import count_parameters

ROWS_AT_ONCE = 32  # windows of a long text that go through the network together


@dataclass(eq=False, kw_only=True)
class LearnedRung(Rung):
    """A network from ids (b, n) to scores (b, n, N or more) that learns by `learn`; the same seed, the same weights."""

    context: int = 64  # the most that is read at once, start token included
    batch: int = 32
    steps: int | None = 300
    seconds: float | None = None
    lr: float = 3e-3
    schedule: Schedule = "cosine"
    seed: int = 1
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)  # what counts the seconds
    report: Callable[[Progress], None] | None = field(default=None, repr=False)

    how: ClassVar[str]  # what the weights of `explain` are
    _network: nn.Module | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        require(self.context >= 2, f"context is {self.context}.", "Give 2 or more: the start token and a word.")
        require(self.batch >= 1, f"batch is {self.batch}.", "Give 1 or more windows a step.")
        require(self.lr > 0, f"lr is {self.lr}.", "Give a learning rate above 0, such as 0.003.")
        self._budget = Budget(steps=self.steps, seconds=self.seconds, clock=self.clock)

    @abstractmethod
    def build(self, n_words: int) -> nn.Module:
        """A new network for so many words and the start token."""

    @abstractmethod
    def weigh(self, ids: Tensor) -> Tensor:
        """How much each of the read ids (n) had to say on the next word."""

    def fit(self, sequences: Iterable[Words], weights: Sequence[float] | None = None) -> Self:
        listed, each = check_sequences(sequences, weights)
        codes = Codes.of(listed, None)
        windows = Windows([codes.encode(sequence) for sequence in listed], each, self.context, self.batch)
        n_words = len(codes)
        with torch.random.fork_rng(devices=[]):  # the caller's random numbers stay as they were
            torch.manual_seed(self.seed)
            network = self.build(n_words)
            learn(network, windows, n_words, self._budget, self.lr, self.schedule, self.seed, self.report)
        self._network, self._codes, self.vocabulary = network, codes, codes.vocabulary
        return self

    @property
    def network(self) -> nn.Module:
        self.check_fitted()
        assert self._network is not None
        return self._network

    @property
    def n_parameters(self) -> int:
        return count_parameters(self.network)

    def predict(self, prefix: Words) -> Prediction:
        """Reads the start token and as many of the last words as the context holds."""
        return Prediction(self.vocabulary, self._read(self.window(prefix)[None])[0, -1].exp().numpy(), "probabilities")

    def log_probabilities(self, sequence: Words) -> Scores:
        """A sequence that the context cannot hold is read in windows that overlap by half. An unknown word is an error
        here and not -inf: it could not be read for the words after it."""
        ids = self._ids(sequence)
        found, i = np.empty(len(ids)), 0
        for piece in self.predict_along(sequence):
            n = len(piece)
            found[i : i + n] = piece[np.arange(n), ids[i : i + n]]
            i += n
        return found

    def predict_along(self, sequence: Words) -> Iterator[Scores]:
        """log p of every word of the vocabulary at every place, in pieces one after the other."""
        ids = self._ids(sequence)
        plan = list(overlapping(len(ids), self.context))
        for i in range(0, len(plan), ROWS_AT_ONCE):
            some = plan[i : i + ROWS_AT_ONCE]
            words = torch.full((len(some), max(end - begin for begin, _, end in some)), NO_WORD)
            for row, (begin, _, end) in zip(words, some, strict=True):
                row[: end - begin] = torch.from_numpy(ids[begin:end])
            scores = self._read(shift(words, len(self.vocabulary)))  # (b, n, N)
            pieces = [s[new - begin : end - begin] for s, (begin, new, end) in zip(scores, some, strict=True)]
            yield torch.cat(pieces).numpy()

    def explain(self, prefix: Words) -> Explanation:
        """Each word read, the start token too: its weight (the name says of what kind), and as scores the change that
        it makes to the prediction: with it, less with the start token in its place."""
        ids = self.window(prefix)
        n = len(ids)
        without = ids.repeat(n, 1).fill_diagonal_(len(self.vocabulary))  # (n, n)
        prediction = self.predict(prefix)
        changes = prediction.scores - self._read(without)[:, -1].exp().numpy()  # (n, N)
        rows = zip(self.names(ids), self.weigh(ids).tolist(), changes, strict=True)
        return Explanation(prediction, [Reason(f"{w} ({self.how})", x, s) for w, x, s in rows], adds_up=False)

    def window(self, prefix: Words) -> Tensor:
        """What is read of a prefix: ids (n)."""
        last = self._ids(prefix[max(0, len(prefix) - self.context + 1) :])
        return torch.from_numpy(np.concatenate([[len(self.vocabulary)], last]))

    def names(self, ids: Tensor) -> list[str]:
        return [START if i == len(self.vocabulary) else self.vocabulary[i] for i in ids.tolist()]

    def _ids(self, words: Words) -> Ids:
        self.check_fitted()
        ids = self._codes.encode(words)
        if len(unknown := np.flatnonzero(ids == UNKNOWN)):
            raise UserError(
                f"The word {words[int(unknown[0])]!r} is not among the {len(self.vocabulary)} words of the vocabulary.",
                "Use words of the sequences that the rung was fitted on, or fit it on some with that word.",
            )
        return ids

    @torch.no_grad()
    def _read(self, ids: Tensor) -> Tensor:
        """log p (b, n, N) after each of the ids; the start token can never follow."""
        scores: Tensor = self.network(ids)[..., : len(self.vocabulary)]
        return scores.double().log_softmax(dim=-1)


def overlapping(length: int, context: int) -> Iterator[tuple[int, int, int]]:
    """Windows (begin, first new word, end): each word is new once, with half a context before it where there is one."""
    begin = new = 0
    while new < length:
        end = min(begin + context, length)
        yield begin, new, end
        begin, new = end - (context - context // 2), end
