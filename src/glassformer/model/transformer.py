"""The three shapes: a front-end turns anything into vectors, a stack thinks, a head speaks.

b batch, n target length, m source length, d width, N vocabulary
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from glassformer.errors import require
from glassformer.model.cache import Cache
from glassformer.model.heads import TokenHead, build_head, log_totals
from glassformer.model.inputs import Tokens, build_input, check_rows
from glassformer.model.settings import (
    DecoderOnlySettings,
    EncoderDecoderSettings,
    EncoderOnlySettings,
    FrontEnd,
    StackSettings,
    TokensSettings,
)
from glassformer.model.stack import Stack


@dataclass(frozen=True)
class Memory:
    """What the encoder found, and which of its positions are real."""

    x: Tensor  # (b, m, d)
    keep: Tensor | None  # (b, m)

    def select(self, rows: Tensor) -> "Memory":
        return Memory(self.x[rows], None if self.keep is None else self.keep[rows])


class EncoderDecoder(nn.Module):
    """Translation and transcription.

    source ─ front-end ─ encoder ─ memory ─┬─ maybe ctc ─ scores at each position of the source
                                           ▼
    target ─ front-end ──────────────── decoder ─ head ─ scores of the next token
    """

    def __init__(self, settings: EncoderDecoderSettings) -> None:
        super().__init__()
        self.settings = settings
        d_encoder, d_decoder = settings.encoder.d_model, settings.decoder.d_model
        self.source = build_input(settings.source, d_encoder)
        self.target = Tokens(settings.target, d_decoder)
        self.encoder = Stack(settings.encoder)
        self.decoder = Stack(settings.decoder, causal=True, d_memory=d_encoder)
        self.head = TokenHead(settings.head, d_decoder, settings.target.vocab_size)
        self.ctc = TokenHead(settings.ctc, d_encoder, settings.target.vocab_size) if settings.ctc is not None else None
        self.tie()

    def tie(self) -> None:
        """Let the tables be one that the settings say are one, the first the owner; again after weights are put in."""
        if self.settings.tie_source_target:
            self.target.embedding.weight = self.source.embedding.weight  # type: ignore[union-attr, assignment]
        if self.settings.tie_output:
            self.head.w.weight = self.target.embedding.weight

    def encode(self, source: Tensor, keep: Tensor | None = None) -> Memory:
        x, keep = self.source(source, keep)
        return Memory(self.encoder(x, keep), keep)

    def decode(self, target: Tensor, memory: Memory, keep: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        """The decoder's states before its head, for the given target tokens."""
        return _run(self.target, self.decoder, target, keep, cache, memory)

    def forward(
        self, source: Tensor, target: Tensor, source_keep: Tensor | None = None, target_keep: Tensor | None = None
    ) -> Tensor:
        states = self.decode(target, self.encode(source, source_keep), target_keep)
        logits: Tensor = self.head(states, target_keep)
        return logits  # (b, n, N)

    def new_cache(self, b: int, capacity: int) -> Cache:
        return _new_cache(self, self.decoder, self.settings.decoder, b, capacity)


class DecoderOnly(nn.Module):
    """Completion (GPT).

    tokens ─ front-end ─ decoder (each position sees the earlier ones) ─ head ─ scores of the next token
    """

    def __init__(self, settings: DecoderOnlySettings) -> None:
        super().__init__()
        self.settings = settings
        self.source = Tokens(settings.source, settings.decoder.d_model)
        self.decoder = Stack(settings.decoder, causal=True)
        self.head = build_head(settings.head, settings.decoder.d_model, settings.source.vocab_size)
        self.log_totals: Callable[[Tensor], Tensor] = log_totals  # of scores; a fast engine brings its own
        self.tie()

    def tie(self) -> None:
        """Let the head's table be the front-end's if the settings say so."""
        if self.settings.tie_output:
            self.head.w.weight = self.source.embedding.weight  # type: ignore[union-attr]

    def states(
        self,
        ids: Tensor,
        keep: Tensor | None = None,
        cache: Cache | None = None,
        mask: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """The states before the head; `mask` and `positions` serve rows that hold several documents."""
        return _run(self.source, self.decoder, ids, keep, cache, mask=mask, positions=positions)

    def forward(self, ids: Tensor, keep: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        logits: Tensor = self.head(self.states(ids, keep, cache), keep)
        return logits  # (b, n, N)

    def new_cache(self, b: int, capacity: int) -> Cache:
        return _new_cache(self, self.decoder, self.settings.decoder, b, capacity)


class EncoderOnly(nn.Module):
    """Representation (BERT, ViT).

    tokens, frames, patches or vectors ─ front-end ─ encoder (each position sees all) ─ head
    """

    def __init__(self, settings: EncoderOnlySettings) -> None:
        super().__init__()
        self.settings = settings
        d_model = settings.encoder.d_model
        self.source = build_input(settings.source, d_model)
        self.encoder = Stack(settings.encoder)
        self.head = build_head(settings.head, d_model, _vocab_size(settings.source))
        self.tie()

    def tie(self) -> None:
        """Let the head's table be the front-end's if the settings say so."""
        if self.settings.tie_output:
            self.head.w.weight = self.source.embedding.weight  # type: ignore[union-attr]

    def states(
        self,
        source: Tensor,
        keep: Tensor | None = None,
        types: Tensor | None = None,
        mask: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Memory:
        """The states before the head; `mask` and `positions` serve rows of tokens that hold several documents."""
        require(
            (types is None and positions is None) or isinstance(self.source, Tokens),
            f"types and positions are those of tokens, but the source is {self.settings.source.kind}.",
            "Give types = None and positions = None.",
        )
        of_tokens = {"types": types, "positions": positions} if isinstance(self.source, Tokens) else {}
        x, keep = self.source(source, keep, **of_tokens)
        return Memory(self.encoder(x, keep, positions, mask), keep)

    def forward(self, source: Tensor, keep: Tensor | None = None, types: Tensor | None = None) -> Tensor:
        states = self.states(source, keep, types)
        out: Tensor = self.head(states.x, states.keep)
        return out


Transformer = EncoderDecoder | DecoderOnly | EncoderOnly


def _vocab_size(source: FrontEnd) -> int:
    return source.vocab_size if isinstance(source, TokensSettings) else 0


def _run(
    front_end: nn.Module,
    decoder: Stack,
    ids: Tensor,
    keep: Tensor | None,
    cache: Cache | None,
    memory: Memory | None = None,
    mask: Tensor | None = None,
    positions: Tensor | None = None,
) -> Tensor:
    """Tokens through a decoder, with or without a cache of what came before."""
    start, all_keep = 0, keep
    if cache is not None:
        require(positions is None, "A cache counts positions by itself.", "Give positions = None with a cache.")
        check_rows(ids)
        start, positions, all_keep = cache.extend(ids.shape[0], ids.shape[1], keep, ids.device)
        keep = None if all_keep is None else all_keep[:, start:]
    x, _ = front_end(ids, keep, positions)
    source, source_keep = (None, None) if memory is None else (memory.x, memory.keep)
    states: Tensor = decoder(x, all_keep, positions, mask, source, source_keep, cache, start)
    if cache is not None:
        cache.advance(ids.shape[1], all_keep)
    return states  # (b, n, d)


def _new_cache(model: nn.Module, decoder: Stack, settings: StackSettings, b: int, capacity: int) -> Cache:
    weight: Tensor = next(p for p in model.parameters() if torch.is_floating_point(p))
    return Cache(settings, b, capacity, weight.device, decoder.cache_dtype or weight.dtype)
