"""A decoder that goes on from some prompts at once, a token a row at each step, with a cache of what came before.

Rows are as if alone: shorter prompts are padded on the left, where nothing looks, so that slots may be more than the
context while no row's own tokens are; rows that have ended leave the batch.
Deliberately not here: text, and where it stops.

r rows still going
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from glassformer.decode.choose import SEEDS_APART, Chosen, Said, choose_next
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
        if context is not None and not options.slide:
            check_lengths(prompts, context)
        self.said = [Said(list(prompt), len(prompt)) for prompt in prompts]
        self.begins = [0 if context is None or len(ids) < context else self._newer(ids) for ids in prompts]
        self.rows = list(range(len(prompts)))
        first = int(torch.randint(2**31, ())) if options.seed is None else options.seed
        given = seeds if seeds is not None else [first + SEEDS_APART * row for row in self.rows]
        self.generators = [torch.Generator().manual_seed(seed) for seed in given]
        self.stopped: set[int] = set()
        self.cache: Cache | None = None

    def stop(self, row: int) -> None:
        """This row is not asked for more."""
        self.stopped.add(row)

    @torch.inference_mode()
    def __iter__(self) -> Iterator[list[tuple[int, Chosen]]]:
        for _ in range(self.options.max_tokens):
            said = [self.said[row] for row in self.rows]
            generators = [self.generators[row] for row in self.rows]
            chosen = choose_next(self._scores(), said, self.options, generators, totals=self.model.log_totals)
            for row, token in zip(self.rows, chosen, strict=True):
                self.said[row].ids.append(token.id)
                if token.id in self.ends or (self._is_full(row) and not self.options.slide):
                    self.stop(row)
            yield list(zip(self.rows, chosen, strict=True))
            self._drop_stopped()
            if not self.rows:
                return

    def _is_full(self, row: int) -> bool:
        """Whether the context has no room for the newest token."""
        return self.context is not None and len(self.said[row].ids) - self.begins[row] > self.context

    def _newer(self, ids: list[int]) -> int:
        """Where the newer half of what the context can hold begins."""
        assert self.context is not None
        return len(ids) - max(1, self.context // 2)

    def _scores(self) -> Tensor:
        """Of the next token, from each row's newest one; at first, or where a row's context is full, from all."""
        full = [row for row in self.rows if self._is_full(row)]
        if self.cache is not None and not full:
            newest = [self.said[row].ids[-1:] for row in self.rows]
            return self._step(torch.tensor(newest, device=self._device), None)
        for row in full:
            self.begins[row] = self._newer(self.said[row].ids)
        return self._read([self.said[row].ids[self.begins[row] :] for row in self.rows])

    def _read(self, texts: list[list[int]]) -> Tensor:
        """Begin a cache with the texts, and room until all rows are full, or with a sliding window the first."""
        width, room = max(map(len, texts)), self.options.max_tokens
        if self.context is not None:
            ended = min if self.options.slide else max
            room = min(room, ended(self.context - len(t) for t in texts))
        self.cache = self.model.new_cache(len(texts), width + room)
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


def check_lengths(prompts: list[list[int]], context: int) -> None:
    """A prompt that leaves no room for an answer is refused by its number."""
    for i, prompt in enumerate(prompts):
        require(
            len(prompt) < context,
            f"{'The prompt' if len(prompts) == 1 else f'Prompt {i + 1}'} has {len(prompt):,} tokens, but the model "
            f"sees only {context:,} at once, with the answer.",
            "Shorten it, or let its older part be forgotten (--slide).",
        )
