"""A decoder that goes on from some prompts at once, a token a row at each step, with a cache of what came before.

Rows are as if alone: shorter prompts are padded on the left, where nothing looks; rows that have ended leave the batch.
Deliberately not here: text, and where it stops.

r rows still going
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from glassformer.decode.choose import Chosen, Said, choose_next
from glassformer.decode.complete_options import CompleteOptions
from glassformer.errors import require
from glassformer.model import DecoderOnly
from glassformer.model.cache import Cache

CHUNK = 512  # tokens of a prompt that are read at once: attention over more would fill the memory


class Generator:
    """Iterate over it: each step gives (row, token) for all rows that still go on; `stop(row)` ends a row."""

    def __init__(
        self,
        model: DecoderOnly,
        prompts: list[list[int]],
        options: CompleteOptions,
        ends: tuple[int, ...] = (),
        context: int | None = None,
        seeds: list[int] | None = None,
    ) -> None:
        """A token of `ends` is given too, and ends its row; `context` is the most that the model can see."""
        require(all(prompts), "A prompt is empty.", "Begin with the start token.")
        self.model, self.options, self.ends, self.context = model.eval(), options, ends, context
        self.said = [Said(list(prompt), len(prompt)) for prompt in prompts]
        self.rows = list(range(len(prompts)))
        first = int(torch.randint(2**31, ())) if options.seed is None else options.seed
        given = seeds if seeds is not None else [first + 7919 * row for row in self.rows]
        self.generators = [torch.Generator().manual_seed(seed) for seed in given]
        self.stopped: set[int] = set()
        self.cache: Cache | None = None

    def stop(self, row: int) -> None:
        """This row is not asked for more."""
        self.stopped.add(row)

    @torch.inference_mode()
    def __iter__(self) -> Iterator[list[tuple[int, Chosen]]]:
        for _ in range(self.options.max_tokens):
            if self.is_full and not self.options.slide:
                return
            said = [self.said[row] for row in self.rows]
            generators = [self.generators[row] for row in self.rows]
            chosen = choose_next(self._scores(), said, self.options, generators, totals=self.model.log_totals)
            for row, token in zip(self.rows, chosen, strict=True):
                self.said[row].ids.append(token.id)
                if token.id in self.ends:
                    self.stop(row)
            yield list(zip(self.rows, chosen, strict=True))
            self._drop_stopped()
            if not self.rows:
                return

    @property
    def is_full(self) -> bool:
        """Whether the context has no room for another token."""
        return self.cache is not None and self.cache.length >= self.cache.capacity

    def _scores(self) -> Tensor:
        """Of the next token, from each row's newest one; at first, or where the context is full, from all."""
        texts = [self.said[row].ids for row in self.rows]
        if self.cache is not None and not self.is_full:
            return self._step(torch.tensor([ids[-1:] for ids in texts], device=self._device), None)
        return self._read(texts)

    def _read(self, texts: list[list[int]]) -> Tensor:
        """Begin a cache with the texts, or with the newer parts of those that the context has no room for."""
        if self.context is not None and max(map(len, texts)) + 1 > self.context:
            require(self.options.slide, *_too_long(max(map(len, texts)), self.context))
            texts = [ids[-max(1, self.context // 2) :] for ids in texts]
        width = max(map(len, texts))
        room = width + self.options.max_tokens
        self.cache = self.model.new_cache(len(texts), room if self.context is None else min(room, self.context))
        ids = torch.tensor([[0] * (width - len(t)) + t for t in texts], device=self._device)
        keep = torch.tensor([[False] * (width - len(t)) + [True] * len(t) for t in texts], device=self._device)
        scores = torch.empty(0)
        for begin in range(0, width, CHUNK):
            part = slice(begin, begin + CHUNK)
            scores = self._step(ids[:, part], None if bool(keep.all()) else keep[:, part])
        return scores

    def _step(self, ids: Tensor, keep: Tensor | None) -> Tensor:
        scores: Tensor = self.model.head(self.model.states(ids, keep, self.cache)[:, -1])
        return scores

    def _drop_stopped(self) -> None:
        left = [i for i, row in enumerate(self.rows) if row not in self.stopped]
        if len(left) < len(self.rows):
            self.rows = [self.rows[i] for i in left]
            if self.cache is not None and left:
                self.cache.select(torch.tensor(left, device=self._device))

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device


def _too_long(n: int, context: int) -> tuple[str, str]:
    return (
        f"The prompt has {n:,} tokens, but the model sees only {context:,} at once, with the answer.",
        "Shorten it, or let its older part be forgotten (--slide).",
    )
