"""A trained model learns new words: its vocabulary grows, and all it knew stays as it was."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from glassformer.data.tokenizer import Tokenizer, extend_tokenizer
from glassformer.model import EncoderDecoder, build
from glassformer.model.settings import TokensSettings
from glassformer.tasks.prepare import Pairs, Tokenizers

MOST_NEW = 4000  # tokens that new data may add


def extend_tokenizers(tokenizers: Tokenizers, pairs: Pairs) -> Tokenizers:
    """The same tokenizers with tokens for what they now spell byte by byte; old ids keep their meaning."""

    def texts(side: str) -> Iterator[str]:
        return (getattr(pair, side) for pair in pairs())

    if tokenizers.joint:
        both = extend_tokenizer(tokenizers.target, (t for side in ("source", "target") for t in texts(side)), MOST_NEW)
        return Tokenizers(both, both)
    source = extend_tokenizer(tokenizers.source, texts("source"), MOST_NEW)
    return Tokenizers(source, extend_tokenizer(tokenizers.target, texts("target"), MOST_NEW))


@torch.no_grad()
def grow_vocabulary(model: EncoderDecoder, old: Tokenizers, new: Tokenizers) -> EncoderDecoder:
    """A model with a row for every new token: the mean of the rows of the tokens that spelled it before."""
    settings = model.settings
    assert isinstance(settings.source, TokensSettings)
    grown = build(
        replace(
            settings,
            source=replace(settings.source, vocab_size=new.source.vocab_size),
            target=replace(settings.target, vocab_size=new.target.vocab_size),
        )
    )
    assert isinstance(grown, EncoderDecoder)
    before = dict(model.named_parameters())
    for name, parameter in grown.named_parameters():
        known = before[name]
        if known.shape == parameter.shape:
            parameter.copy_(known)
        else:
            side = "source" if name.startswith("source.") else "target"
            parameter.copy_(_with_rows(known, getattr(old, side), getattr(new, side)))
    return grown


def _with_rows(table: Tensor, old: Tokenizer, new: Tokenizer) -> Tensor:
    rows = [table]
    for i in range(old.vocab_size, new.vocab_size):
        spelled = old.spell(new.piece(i))
        rows.append(table[spelled].mean(dim=0, keepdim=True))
    return torch.cat(rows)
