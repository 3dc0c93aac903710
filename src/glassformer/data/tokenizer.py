"""Text into ids and back, exactly: any string that goes in comes out again, as single bytes stay in the vocabulary.

`tokenizers` does the work; what is here chooses how: byte-pair encoding, words or characters, each with bytes to fall
back on.
"""

import contextlib
import functools
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers import Tokenizer as Core

from glassformer.data.tokenizer_json import core_from_json
from glassformer.errors import UserError, require

TokenizerKind = Literal["bpe", "word", "char", "byte"]
PAD, START, END = 0, 1, 2
SPECIALS = ["<pad>", "<s>", "</s>"]
MASK = "<mask>"  # only in the vocabularies of models that fill blanks, at its end
SMALLEST = 256 + len(SPECIALS)
CHARACTERS = 2**16  # more than any language has
BYTE = re.compile(r"<0x([0-9A-F]{2})>")
# GPT-2's pattern of words, numbers and marks, each with the space before it; but vowel signs and joiners, as Hindi,
# Tamil or Arabic write them, stay in their words.
WORDS = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}[\p{L}\p{M}\u200c\u200d]*| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_BYTES = decoders.ByteLevel()


@dataclass(frozen=True)
class Marks:
    """The ids that a model's texts begin and end with; one from elsewhere has its own, and may have a chat template."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    start: int | None = START
    ends: tuple[int, ...] = (END,)
    chat_template: str | None = None
    mask: int | None = None  # stands for a blank that is to be filled
    named_start: int | None = None  # what chat templates call bos_token, where texts do not begin with it by themselves

    @property
    def bos(self) -> int | None:
        return self.start if self.named_start is None else self.named_start


class Tokenizer:
    """A trained tokenizer; padding, start and end (ids 0, 1 and 2 in ours) never come out of a text."""

    def __init__(self, core: Core, marks: Marks | None = None) -> None:
        """`marks` belong to a tokenizer from elsewhere."""
        self.core, self.marks, self.is_ours = core, marks or Marks(mask=_mask_of(core)), marks is None
        self.core.encode_special_tokens = True  # a text that contains "</s>" is text
        added = {i for i, token in core.get_added_tokens_decoder().items() if token.special}
        self.special = frozenset(added if marks is not None else {*range(END + 1), *added})
        letter = core.token_to_id("<0x41>")  # SentencePiece spells what it does not know in bytes, written like this
        falls_back = letter is not None and self.tokens([letter]) == ["A"]
        self.letter: int | None = letter if falls_back else None

    @functools.cached_property
    def vocab_size(self) -> int:
        """Rows that a table needs: the largest number and one; a tokenizer from elsewhere may leave numbers out."""
        return max(self.core.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    def encode(self, text: str) -> list[int]:
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        with _only_text(texts):
            return [encoding.ids for encoding in self.core.encode_batch_fast(texts, add_special_tokens=False)]

    def encode_marked(self, text: str) -> list[int]:
        """A text in which marks such as <|im_start|> mean what they say; only for what our own code put together."""
        self.core.encode_special_tokens = False
        try:
            with _only_text([text]):
                return list(self.core.encode(text, add_special_tokens=False).ids)
        finally:
            self.core.encode_special_tokens = True

    def decode(self, ids: list[int]) -> str:
        """Text without padding, start and end."""
        return str(self.core.decode([i for i in ids if i not in self.special], skip_special_tokens=False))

    def tokens(self, ids: list[int]) -> list[str]:
        """Each id as a person would read it; bytes that are no whole character show as they can."""
        decode = self.core.decoder.decode if self.core.decoder else "".join
        return [self.piece(i) if i in self.special else decode([self.piece(i)]) for i in ids]

    def piece(self, i: int) -> str:
        """A token as the vocabulary writes it, byte by byte."""
        return str(self.core.id_to_token(i))

    def byte(self, i: int) -> int | None:
        """The byte that a token stands for where bytes are tokens of their own, written as <0x41>."""
        found = None if self.letter is None or i in self.special else BYTE.fullmatch(self.piece(i))
        return int(found[1], 16) if found else None

    def spell(self, piece: str) -> list[int]:
        """A piece of another vocabulary in the tokens of this one."""
        return [token.id for token in self.core.model.tokenize(piece)]

    def to_json(self) -> str:
        return str(self.core.to_str(pretty=False))


def load_tokenizer(path: Path, marks: Marks | None = None) -> Tokenizer:
    """A tokenizer.json made by `train_tokenizer`, or one from elsewhere with its marks."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"There is no tokenizer {path}.", "A model directory holds one as tokenizer.json.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not a tokenizer: {error}.") from None
    core = core_from_json(text, str(path))
    if marks is not None:
        return Tokenizer(core, marks)
    found = [core.id_to_token(i) for i in range(len(SPECIALS))]
    require(
        found == SPECIALS,
        f"{path} begins with the tokens {found}, but training needs {SPECIALS} there.",
        "Use a tokenizer trained by Glassformer, or let it train one (--tokenizer bpe).",
    )
    tokenizer, n_tokens = Tokenizer(core), len(core.get_vocab(with_added_tokens=True))
    require(
        tokenizer.vocab_size == n_tokens,
        f"{path} has {n_tokens:,} tokens, but numbers up to {tokenizer.vocab_size - 1:,}: some stand for nothing.",
        "Number them without a gap, or let Glassformer train a tokenizer (--tokenizer bpe).",
    )
    return tokenizer


def with_mask(tokenizer: Tokenizer) -> Tokenizer:
    """The same tokenizer, one of ours, with a mark for blanks."""
    core = Core.from_str(tokenizer.to_json())
    core.add_special_tokens([MASK])
    return Tokenizer(core)


def automatic_size(n_characters: int, kind: TokenizerKind = "bpe") -> int:
    """A vocabulary that grows with the text: 8,000 for Multi30k's four million characters; of characters, all."""
    if kind == "char":
        return CHARACTERS
    return min(32_000, max(512, 8 * round(math.sqrt(n_characters) / 2)))


def train_tokenizer(
    texts: Iterable[str], kind: TokenizerKind = "bpe", size: int = 8000, sentences: bool = True
) -> Tokenizer:
    """Learn a vocabulary of at most `size` from the texts: from `sentences`, or from text that goes on and on."""
    require(
        size >= SMALLEST,
        f"The vocabulary is to hold {size} tokens, but the single bytes alone need {SMALLEST}.",
        f"Ask for {SMALLEST} or more.",
    )
    core = _untrained(kind, sentences)
    if kind == "bpe":
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=SPECIALS,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
            min_frequency=2,
        )
        core.train_from_iterator(texts, trainer)
        return Tokenizer(core)
    counts: Counter[str] = Counter()
    for text in texts if kind != "byte" else ():
        counts.update(_pieces(core, text))
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    common = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    pieces = [piece for piece, n in common if len(piece) > 1 and (n > 1 or kind == "char")][: size - SMALLEST]
    # A piece is looked up whole; one that is not there falls apart into bytes.
    vocab = {token: i for i, token in enumerate(SPECIALS + alphabet + pieces)}
    core.model = models.BPE(vocab=vocab, merges=[], ignore_merges=True)
    core.add_special_tokens(SPECIALS)
    return Tokenizer(core)


def extend_tokenizer(tokenizer: Tokenizer, texts: Iterable[str], n_new: int) -> Tokenizer:
    """The same tokenizer with at most `n_new` more tokens for pieces that it now spells mostly byte by byte.

    Old ids keep their meaning, so that a trained model needs only new rows. What is spelled in larger parts stays so:
    the model knows it that way.
    """
    data = json.loads(tokenizer.to_json())
    if not _falls_apart_into_bytes(data):
        _refuse_unspelled(tokenizer, texts)
        return tokenizer
    model, vocab = data["model"], data["model"]["vocab"]
    counts = Counter(piece for text in texts for piece in _pieces(tokenizer.core, text))
    costly: dict[str, int] = {}
    for piece in (piece for piece, n in counts.items() if n > 1 and piece not in vocab):
        spelled = tokenizer.spell(piece)
        if not model["merges"] or _is_in_bytes(tokenizer, spelled):
            costly[piece] = counts[piece] * (len(spelled) - 1)
    best = sorted(((gain, piece) for piece, gain in costly.items() if gain > 1), key=lambda item: (-item[0], item[1]))
    if not best[:n_new]:
        return tokenizer
    # A token beside the vocabulary gets a new number when that grows, unless it is in it.
    vocab.update(tokenizer.core.get_vocab(with_added_tokens=True))
    vocab.update({piece: i for i, (_, piece) in enumerate(best[:n_new], start=tokenizer.vocab_size)})
    model["ignore_merges"] = True  # a piece that is in the vocabulary is taken whole
    return Tokenizer(Core.from_str(json.dumps(data)), None if tokenizer.is_ours else tokenizer.marks)


def _falls_apart_into_bytes(data: dict[str, Any]) -> bool:
    """Whether a tokenizer cuts texts into pieces of bytes, and knows all of these: such a one can take up more."""
    model, cutting = data["model"], data["pre_tokenizer"] or {}
    parts = cutting.get("pretokenizers", [cutting])
    return (
        model["type"] == "BPE"
        and not model["end_of_word_suffix"]
        and any(part.get("type") == "ByteLevel" for part in parts)
        and set(pre_tokenizers.ByteLevel.alphabet()) <= model["vocab"].keys()
    )


def _is_in_bytes(tokenizer: Tokenizer, spelled: list[int]) -> bool:
    """Whether half of the tokens or more are parts of a character, as is so where an alphabet is not known."""
    broken = [i for i in spelled if "\N{REPLACEMENT CHARACTER}" in _BYTES.decode([tokenizer.piece(i)])]
    return 2 * len(broken) >= len(spelled)


def _refuse_unspelled(tokenizer: Tokenizer, texts: Iterable[str]) -> None:
    """A tokenizer that cannot grow will do if it spells every word that comes again, and not mostly in bytes."""
    model = json.loads(tokenizer.to_json())["model"]
    unknown = (
        model.get("unk_id") if model["type"] == "Unigram" else tokenizer.core.token_to_id(model["unk_token"] or "")
    )
    counts = Counter(word for text in texts for word in text.split())
    for word in (word for word, n in counts.items() if n > 1):
        encoding = tokenizer.core.encode(word, add_special_tokens=False)
        read = {place for begin, end in encoding.offsets for place in range(begin, end)}
        n_bytes = sum(BYTE.fullmatch(piece) is not None for piece in encoding.tokens)
        require(
            unknown not in encoding.ids and len(read) == len(word) and 2 * n_bytes < max(1, len(encoding.ids)),
            f"The tokenizer cannot spell {word[:40]!r}, and its kind ({model['type']}) takes up no new words.",
            "Train a new model without --from, or start from one whose tokenizer Glassformer trained.",
        )


def _untrained(kind: TokenizerKind, sentences: bool) -> Core:
    core = Core(models.BPE())
    match kind:
        case "bpe" | "word" if sentences:  # a space before the first word too, so that it is the same token anywhere
            core.normalizer = normalizers.Prepend(" ")
            core.pre_tokenizer = _cut_at(WORDS)
            core.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
        case "bpe" | "word":
            core.pre_tokenizer = _cut_at(WORDS)
            core.decoder = decoders.ByteLevel()
        case "char" | "byte":
            core.pre_tokenizer = _cut_at(r"[\s\S]")
            core.decoder = decoders.ByteLevel()
        case _:
            raise UserError(f"There is no tokenizer {kind!r}.", "Choose bpe, word, char or byte, or a tokenizer.json.")
    return core


def _cut_at(pattern: str) -> pre_tokenizers.PreTokenizer:
    """Pieces that a pattern finds, as bytes."""
    in_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), in_bytes])


def _pieces(core: Core, text: str) -> Iterator[str]:
    normal = core.normalizer.normalize_str(text) if core.normalizer else text
    return (piece for piece, _ in core.pre_tokenizer.pre_tokenize_str(normal))


@contextlib.contextmanager
def _only_text(texts: list[str]) -> Iterator[None]:
    """A byte of the command line that is no UTF-8 comes as half a character, which has no tokens."""
    try:
        yield
    except TypeError:
        for text in texts:
            shown = text.encode(errors="replace").decode()
            require(
                shown == text,
                f"{shown[:60]!r} is not text: it holds bytes that are not UTF-8.",
                "Write it in UTF-8; iconv converts files.",
            )
        raise


def _mask_of(core: Core) -> int | None:
    return next((i for i, token in core.get_added_tokens_decoder().items() if token.content == MASK), None)
