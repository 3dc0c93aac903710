"""Engines that answer whole requests: the torch engine here and CTranslate2 in `fast/` are peers with one face."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from glassformer.data.batch import by_length, cut, pad
from glassformer.data.tokenizer import END, START
from glassformer.decode.beam import beam_search
from glassformer.decode.choose import SEEDS_APART
from glassformer.decode.options import DecodeOptions, Hypothesis
from glassformer.decode.phrases import Phrase, n_rows, phrase_search
from glassformer.decode.sample import sample_search
from glassformer.decode.steps import Steps, TogetherSteps
from glassformer.errors import require
from glassformer.model import EncoderDecoder, Memory
from glassformer.model.positions import LearnedPositions


@dataclass(frozen=True)
class Request:
    """A source to answer, what the answer must start with and contain, as ids without start and end."""

    source: list[int]
    prefix: tuple[int, ...] = ()
    phrases: tuple[Phrase, ...] = ()
    number: int = 0  # among all that are asked for, in whatever batches: what is drawn follows from it and the seed


class Backend(Protocol):
    """An engine with a model in it."""

    name: str
    is_shareable: bool  # several threads may ask at the same time

    def generate(self, requests: list[Request], options: DecodeOptions) -> list[list[Hypothesis]]:
        """For each request its answers, best first, in the order of the requests."""
        ...


class DecoderSteps:
    """A running decoder over some sentences, with `width` rows for each."""

    def __init__(self, model: EncoderDecoder, memory: Memory, width: int, capacity: int) -> None:
        self.model, self.memory = model, memory
        self.cache = model.new_cache(memory.x.shape[0] * width, capacity)

    def step(self, ids: Tensor) -> Tensor:
        states = self.model.decode(ids, self.memory, cache=self.cache)
        scores: Tensor = self.model.head(states[:, -1])
        return scores

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        self.cache.select(rows)
        if sentences is not None:
            self.memory = self.memory.select(sentences)
            self.cache.select_memory(sentences)


class TorchBackend:
    """The model itself, in fp32 or whatever its weights are; `others` of the same vocabulary answer with it as one."""

    is_shareable = False

    def __init__(
        self,
        model: EncoderDecoder,
        batch_tokens: int = 2048,
        name: str = "torch fp32",
        others: Sequence[EncoderDecoder] = (),
    ) -> None:
        self.models = [model.eval(), *(other.eval() for other in others)]
        self.batch_tokens = batch_tokens
        self.name = together(name, len(self.models))

    @torch.inference_mode()
    def generate(self, requests: list[Request], options: DecodeOptions) -> list[list[Hypothesis]]:
        answers: list[list[Hypothesis]] = [[] for _ in requests]
        if not requests:
            return answers
        # Rows of one batch start alike: same prefix length, similar source length.
        lengths = [np.array([len(r.prefix) for r in requests]), np.array([len(r.source) + 1 for r in requests])]
        order = by_length(lengths, np.arange(len(requests)))
        for rows in cut(order, lengths[1][order], self.batch_tokens):
            for part in _that_go_together(rows.tolist(), requests):
                for row, found in zip(part, self._generate([requests[i] for i in part], options), strict=True):
                    answers[row] = found
        return answers

    def _generate(self, batch: list[Request], options: DecodeOptions) -> list[list[Hypothesis]]:
        device = next(self.models[0].parameters()).device
        prefix = torch.tensor([[START, *r.prefix] for r in batch], device=device)
        for model in self.models:
            options = fit_options(model, prefix.shape[1] - 1, options)
        capacity = prefix.shape[1] + options.max_len
        require(
            not (options.sample and any(r.phrases for r in batch)),
            "An answer that is drawn cannot be made to contain phrases.",
            "Search for it (without sample), or leave the phrases out.",
        )
        if options.sample:
            steps = self._start(batch, options.nbest, capacity)
            first = int(torch.randint(2**31, ())) if options.seed is None else options.seed
            seeds = [first + SEEDS_APART * request.number + j for request in batch for j in range(options.nbest)]
            found = sample_search(steps, prefix, options, END, seeds)
        elif batch[0].phrases:
            steps = self._start(batch, n_rows(batch[0].phrases, options), capacity)
            found = [phrase_search(steps, prefix, batch[0].phrases, options, END)]
        else:
            found = beam_search(self._start(batch, options.beam, capacity), prefix, options, END)
        return [
            [Hypothesis([*request.prefix, *h.ids], h.score) for h in hypotheses]
            for request, hypotheses in zip(batch, found, strict=True)
        ]

    def _start(self, batch: list[Request], width: int, capacity: int) -> Steps:
        """Decoders that have read the sources, with `width` rows for each."""
        device = next(self.models[0].parameters()).device
        ids, keep = pad([np.asarray(r.source, dtype=np.int64) for r in batch], after=END)
        ids, maybe_keep = ids.to(device), None if bool(keep.all()) else keep.to(device)
        running = [DecoderSteps(model, model.encode(ids, maybe_keep), width, capacity) for model in self.models]
        return running[0] if len(running) == 1 else TogetherSteps(running)


def together(name: str, n_models: int) -> str:
    """The name of an engine that so many models answer through as one."""
    return name if n_models == 1 else f"{name}, {n_models} models together"


def fit_options(model: EncoderDecoder, n_prefix: int, options: DecodeOptions) -> DecodeOptions:
    """The options with no more tokens to come than the decoder has learned positions for."""
    max_len = room(model.target)
    if max_len is None:
        return options
    require(
        n_prefix < max_len,
        f"The answer is to start with {n_prefix} tokens, but positions.max_len is {max_len}.",
        "Give a shorter start, or train with a larger positions.max_len or sinusoidal or rotary positions.",
    )
    return replace(options, max_len=min(options.max_len, max_len - n_prefix))


def room(front_end: nn.Module) -> int | None:
    """The positions that a front-end has learned; None where it can go on for ever."""
    positions = getattr(front_end, "positions", None)
    return positions.table.shape[0] if isinstance(positions, LearnedPositions) else None


def _that_go_together(rows: list[int], requests: list[Request]) -> list[list[int]]:
    """Rows whose answers start with as many tokens; one that must contain phrases goes alone."""
    groups: dict[tuple[int, int], list[int]] = {}
    for row in rows:
        request = requests[row]
        groups.setdefault((len(request.prefix), row if request.phrases else -1), []).append(row)
    return list(groups.values())
