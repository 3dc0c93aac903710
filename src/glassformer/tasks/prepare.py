"""From pairs to tokens on disk: learn the vocabulary, encode."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from glassformer.data.pairs import Pair, PairFiles, read_pairs
from glassformer.data.store import TokenStore, write_store
from glassformer.data.tokenizer import Tokenizer, TokenizerKind, automatic_size, load_tokenizer, train_tokenizer
from glassformer.errors import require
from glassformer.tasks.translate import PairData, Side, TokenizerSettings

CHUNK = 10_000  # pairs encoded at a time


@dataclass(frozen=True)
class Tokenizers:
    """One for each side, or the same for both."""

    source: Tokenizer
    target: Tokenizer

    @property
    def joint(self) -> bool:
        return self.source is self.target


Pairs = Callable[[], Iterator[Pair]]  # pairs may be read several times, and never all at once


def usable_pairs(files: PairFiles) -> Pairs:
    return lambda: (pair for pair in read_pairs(files) if isinstance(pair, Pair))


def make_tokenizers(pairs: Pairs, settings: TokenizerSettings) -> Tokenizers:
    """Learn the vocabulary from the pairs, or take the one that the settings name."""
    if settings.kind not in ("bpe", "word", "char"):
        tokenizer = load_tokenizer(Path(settings.kind))
        return Tokenizers(tokenizer, tokenizer)
    kind: TokenizerKind = settings.kind  # type: ignore[assignment]

    def learn(texts: Callable[[], Iterator[str]]) -> Tokenizer:
        size = settings.size or automatic_size(sum(len(text) for text in texts()), kind)
        return train_tokenizer(texts(), kind, size)

    if settings.joint:
        both = learn(lambda: (text for pair in pairs() for text in (pair.source, pair.target)))
        return Tokenizers(both, both)
    return Tokenizers(learn(lambda: (p.source for p in pairs())), learn(lambda: (p.target for p in pairs())))


def encode_pairs(pairs: Pairs, tokenizers: Tokenizers, path: Path, max_tokens: int) -> tuple[PairData, int]:
    """The pairs as tokens on disk, and how many were left out because a side is too long."""
    n_left_out = 0

    def encoded() -> Iterator[tuple[list[int], list[int]]]:
        nonlocal n_left_out
        stream = pairs()
        while chunk := list(islice(stream, CHUNK)):
            sources = tokenizers.source.encode_batch([pair.source for pair in chunk])
            targets = tokenizers.target.encode_batch([pair.target for pair in chunk])
            for source, target in zip(sources, targets, strict=True):
                if max(len(source), len(target)) <= max_tokens:
                    yield source, target
                else:
                    n_left_out += 1

    size = max(tokenizers.source.vocab_size, tokenizers.target.vocab_size)
    write_store(path, (ids for pair in encoded() for ids in pair), size)
    return load_pairs(path, tokenizers), n_left_out


def load_pairs(path: Path, tokenizers: Tokenizers) -> PairData:
    """What `encode_pairs` wrote: source and target in turn."""
    store = TokenStore(path)
    require(len(store) > 0, "No pair is left to use: all are too long.", "Raise max_tokens, or cut the lines.")
    return PairData(Side(store.every(2, 0), tokenizers.source), Side(store.every(2, 1), tokenizers.target))
