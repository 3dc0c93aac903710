"""Models whose weights are set by hand, so that what the readings must find is known beforehand."""

from typing import Any

import torch
from torch import Tensor

from glassformer.model import DecoderOnly, EncoderDecoder, build
from glassformer.model.settings import (
    AttentionSettings,
    DecoderOnlySettings,
    EncoderDecoderSettings,
    FeedForwardSettings,
    LearnedSettings,
    NormSettings,
    StackSettings,
    TokensSettings,
)

N, LENGTH = 8, 12  # words and positions
SHARP = 60.0  # a score so far above the others that softmax all but points at it


def _stack(d_model: int, n_layers: int, **changes: Any) -> StackSettings:
    attention = AttentionSettings(n_heads=2, d_k=max(N, LENGTH), d_v=N, bias="")
    return StackSettings(
        d_model=d_model,
        n_layers=n_layers,
        attention=attention,
        feed_forward=FeedForwardSettings(d_ff=4, bias=False),
        norm=NormSettings(kind="rms"),
        dropout=0.0,
        **changes,
    )


def _silent(model: Any) -> None:
    """All matrices of the stacks zero, all norms one."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.fill_(1.0 if "norm" in name else 0.0)


def induction() -> DecoderOnly:
    """Head 0 of layer 0 copies the word before; head 1 of layer 1 goes where the word before was this one.

    The stream is laid out as word | position | word before | answer.
    """
    d = 3 * N + LENGTH
    word, before, answer = slice(0, N), slice(N + LENGTH, 2 * N + LENGTH), slice(2 * N + LENGTH, d)
    place = slice(N, N + LENGTH)
    source = TokensSettings(vocab_size=N, positions=LearnedSettings(max_len=LENGTH), scale=False, dropout=0.0)
    model = build(DecoderOnlySettings(source=source, decoder=_stack(d, 2), tie_output=False))
    assert isinstance(model, DecoderOnly)
    _silent(model)
    width = max(N, LENGTH)
    with torch.no_grad():
        model.source.embedding.weight[:, word] = torch.eye(N)
        model.source.positions.table[:, place] = torch.eye(LENGTH)  # type: ignore[union-attr]
        first, second = (block.self_attention for block in model.decoder.blocks)
        shift = torch.zeros(LENGTH, LENGTH)
        shift[torch.arange(LENGTH - 1), torch.arange(1, LENGTH)] = 1.0  # from position i to i - 1
        _set(first.w_q.weight, 0, width, place, SHARP * shift)
        _set(first.w_k.weight, 0, width, place, torch.eye(LENGTH))
        _set(first.w_v.weight, 0, N, word, torch.eye(N))
        first.w_o.weight[before, :N] = torch.eye(N)
        _set(second.w_q.weight, 1, width, word, SHARP * torch.eye(N))
        _set(second.w_k.weight, 1, width, before, torch.eye(N))
        _set(second.w_v.weight, 1, N, word, torch.eye(N))
        second.w_o.weight[answer, N:] = torch.eye(N)
        model.head.w.weight[:, answer] = 10 * torch.eye(N)
    return model.eval()


def copier() -> EncoderDecoder:
    """The decoder's position i looks at source position i and says what it finds there."""
    d = 2 * N + LENGTH
    word, place, answer = slice(0, N), slice(N, N + LENGTH), slice(N + LENGTH, d)
    tokens = TokensSettings(vocab_size=N, positions=LearnedSettings(max_len=LENGTH), scale=False, dropout=0.0)
    settings = EncoderDecoderSettings(
        source=tokens,
        target=tokens,
        encoder=_stack(d, 1),
        decoder=_stack(d, 1),
        tie_output=False,
        tie_source_target=False,
    )
    model = build(settings)
    assert isinstance(model, EncoderDecoder)
    _silent(model)
    with torch.no_grad():
        for front_end in (model.source, model.target):
            front_end.embedding.weight[:, word] = torch.eye(N)
            front_end.positions.table[:, place] = torch.eye(LENGTH)
        cross = model.decoder.blocks[0].cross_attention
        for head in range(2):
            _set(cross.w_q.weight, head, max(N, LENGTH), place, SHARP * torch.eye(LENGTH))
            _set(cross.w_k.weight, head, max(N, LENGTH), place, torch.eye(LENGTH))
        _set(cross.w_v.weight, 0, N, word, torch.eye(N))
        cross.w_o.weight[answer, :N] = torch.eye(N)
        model.head.w.weight[:, answer] = 10 * torch.eye(N)
    return model.eval()


def _set(weight: Tensor, head: int, width: int, columns: slice, block: Tensor) -> None:
    """One head's rows of a projection, for some columns of the stream."""
    weight[head * width : head * width + block.shape[0], columns] = block
