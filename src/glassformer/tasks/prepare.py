"""From pairs to tokens on disk: learn the vocabulary, encode."""

import random
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from glassformer.data.pairs import Pair, PairFiles, read_pairs
from glassformer.data.store import TokenStore, write_store
from glassformer.data.tokenizer import Tokenizer, TokenizerKind, automatic_size, load_tokenizer, train_tokenizer
from glassformer.errors import require
from glassformer.tasks.translate import KINDS, PairData, Side, TokenizerSettings

CHUNK, CHUNK_CHARACTERS = 10_000, 2_000_000  # pairs encoded at a time, and characters, about
LEARNED_FROM = 20_000_000  # characters that a vocabulary is learned from, about
UNPARTED, LONG_WORD = 10, 12  # a character costs so much in words of more than so many
SPELLED = 2000  # pairs that a tokenizer from elsewhere is tried on


@dataclass(frozen=True)
class Tokenizers:
    """One for each side, or the same for both."""

    source: Tokenizer
    target: Tokenizer

    @property
    def joint(self) -> bool:
        return self.source is self.target


Pairs = Callable[[], Iterator[Pair]]  # pairs may be read several times, and never all at once
Say = Callable[[str], None]


def usable_pairs(files: PairFiles) -> Pairs:
    return lambda: (pair for pair in read_pairs(files) if isinstance(pair, Pair))


def make_tokenizers(pairs: Pairs, settings: TokenizerSettings, say: Say | None = None) -> Tokenizers:
    """Learn the vocabulary from the pairs, or take the one that the settings name.

    `say` is told where that one cannot spell all pairs.
    """
    if settings.file is not None:
        tokenizer = load_tokenizer(settings.file)
        given = Tokenizers(tokenizer, tokenizer)
        warning = _check_spelling(pairs, given, settings.file)
        if warning and say is not None:
            say(warning)
        return given
    if settings.joint:
        both = _learn(pairs, ("source", "target"), settings)
        return Tokenizers(both, both)
    return Tokenizers(_learn(pairs, ("source",), settings), _learn(pairs, ("target",), settings))


def _learn(pairs: Pairs, sides: tuple[str, ...], settings: TokenizerSettings) -> Tokenizer:
    """A vocabulary of these sides, from a sample where they are much: from everywhere, the same each time.

    What learning holds in memory is each word once, which is little where spaces part them. Where none do, as in
    Chinese, a word is a clause that hardly comes twice, and learning would hold the text, in 350 bytes a character.
    """
    kind: TokenizerKind = settings.kind  # type: ignore[assignment]

    def texts(share: float) -> Iterator[str]:
        chance = random.Random(1)
        some = (pair for pair in pairs() if share >= 1 or chance.random() < share)
        return (getattr(pair, side) for pair in some for side in sides)

    n = cost = 0
    for text in texts(1.0):
        n += len(text)
        cost += _cost(text)
    # Of characters all are counted, also the rarest; there are never many different ones.
    share = 1.0 if kind == "char" else LEARNED_FROM / max(1, cost)
    return train_tokenizer(texts(share), kind, settings.size or automatic_size(n, kind))


def _cost(text: str) -> int:
    """Characters, but more where hardly a space parts them."""
    return len(text) * (UNPARTED if len(text) > LONG_WORD * (1 + text.count(" ")) else 1)


def _check_spelling(pairs: Pairs, tokenizers: Tokenizers, file: Path) -> str:
    """What to say of pairs whose tokens do not give them back, nothing if all do; a UserError if most do not.

    References are made from tokens too: where unknown words equal unknown words, a useless model has the best scores.
    """
    sample = _spread_sample(pairs(), SPELLED)
    lost = [pair for pair in sample if not _spells(tokenizers, pair)]
    if not lost:
        return ""
    share = f"{len(lost) / len(sample):.1%} of the pairs, such as line {lost[0].line}"
    require(
        2 * len(lost) <= len(sample),
        f"The tokenizer {file} cannot spell {share}.",
        f"Take one that knows all characters or spells them in bytes, or let one be learned ({', '.join(KINDS)}).",
    )
    return f"Warning: the tokenizer {file} cannot spell {share}; what it does not know is lost."


def _spread_sample(pairs: Iterator[Pair], most: int) -> list[Pair]:
    """At most so many, evenly spread: each time the list is full, every other one goes."""
    kept: list[Pair] = []
    step = 1
    for i, pair in enumerate(pairs):
        if i % step == 0:
            kept.append(pair)
        if len(kept) > most:
            kept, step = kept[::2], 2 * step
    return kept


def _spells(tokenizers: Tokenizers, pair: Pair) -> bool:
    sides = ((tokenizers.source, pair.source), (tokenizers.target, pair.target))
    return all(_plain(tokenizer.decode(tokenizer.encode(text))) == _plain(text) for tokenizer, text in sides)


def _plain(text: str) -> str:
    """Without case, accents and spaces, which a tokenizer may leave out on purpose."""
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in apart if not (c.isspace() or unicodedata.combining(c)))


def encode_pairs(pairs: Pairs, tokenizers: Tokenizers, path: Path, max_tokens: int) -> tuple[PairData, int]:
    """The pairs as tokens on disk, and how many were left out because a side is too long."""
    n_left_out = 0

    def encoded() -> Iterator[tuple[list[int], list[int]]]:
        nonlocal n_left_out
        for chunk in _chunks(pairs()):
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


def _chunks(pairs: Iterator[Pair]) -> Iterator[list[Pair]]:
    """What is encoded at a time: many short pairs, or few long ones, as much memory as either takes."""
    chunk: list[Pair] = []
    size = 0
    for pair in pairs:
        chunk.append(pair)
        size += len(pair.source) + len(pair.target)
        if len(chunk) == CHUNK or size >= CHUNK_CHARACTERS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def load_pairs(path: Path, tokenizers: Tokenizers) -> PairData:
    """What `encode_pairs` wrote: source and target in turn."""
    store = TokenStore(path)
    require(len(store) > 0, "No pair is left to use: all are too long.", "Raise max_tokens, or cut the lines.")
    return PairData(Side(store.every(2, 0), tokenizers.source), Side(store.every(2, 1), tokenizers.target))
