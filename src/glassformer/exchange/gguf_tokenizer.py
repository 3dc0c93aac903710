"""The tokenizer that a GGUF file carries in its metadata: byte-level BPE (`gpt2`) or SentencePiece's BPE (`llama`)."""

from collections.abc import Callable
from typing import Any

from tokenizers import Regex, decoders, pre_tokenizers
from tokenizers import Tokenizer as Core

from glassformer.data.tokenizer import Marks, Tokenizer
from glassformer.data.tokenizer_json import byte_pair_model
from glassformer.errors import UserError, require
from glassformer.exchange.gguf_file import GgufFile
from glassformer.exchange.pieces import add_marks, scored_pieces_tokenizer, vocabulary

UNKNOWN, CONTROL, USER_DEFINED = 2, 3, 4  # kinds of tokens
OTHERWISE = "Give the model's tokenizer.json with --tokenizer."

# Llama 3 cuts a text into: an ending such as 's; letters with one sign before them; up to three digits; other signs
# with the line feeds after them; line feeds; spaces.
LLAMA_3 = "|".join(
    [
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
        r"[^\r\n\p{L}\p{N}]?\p{L}+",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)


def _like_gpt2() -> Any:
    return pre_tokenizers.ByteLevel(add_prefix_space=False)


def _digit_by_digit() -> Any:
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), _like_gpt2()])


def _like_llama3() -> Any:
    split = pre_tokenizers.Split(Regex(LLAMA_3), "isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


# What `tokenizer.ggml.pre` may say; files from before it was there are taken as GPT-2's.
CUTS: dict[str, Callable[[], Any]] = {
    **dict.fromkeys(("", "default", "gpt-2", "gpt2", "olmo", "mpt"), _like_gpt2),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r", "codeshell"), _digit_by_digit),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3"), _like_llama3),
}


def read_tokenizer(file: GgufFile) -> Tokenizer:
    kind = file.get("tokenizer.ggml.model", str, "")
    require(
        kind in ("gpt2", "llama"),
        f"{file.path} carries a tokenizer of the kind {kind[:60]!r}, which cannot be read.",
        OTHERWISE,
    )
    pieces = file.get("tokenizer.ggml.tokens", list, [])
    kinds = _numbers(file, "tokenizer.ggml.token_type", len(pieces), default=1)
    marks = read_marks(file, len(pieces))
    special = {i for i, k in enumerate(kinds) if k in (UNKNOWN, CONTROL)}
    # Some files call their marks plain tokens.
    special |= {*marks.ends} | (set() if marks.bos is None else {marks.bos})
    words = {i for i, k in enumerate(kinds) if k == USER_DEFINED} - special
    try:
        if kind == "gpt2":
            core = _byte_level(file, pieces, special, words, marks.start)
        else:
            scores = _numbers(file, "tokenizer.ggml.scores", len(pieces), default=0.0)
            core = scored_pieces_tokenizer(
                pieces,
                [float(score) for score in scores],
                special,
                words,
                file.get("tokenizer.ggml.unknown_token_id", int),
                marks.start,
                file.get("tokenizer.ggml.add_space_prefix", bool, True),
            )
    except UserError:
        raise
    except Exception as error:  # the library raises bare Exception
        raise UserError(f"{file.path} carries a tokenizer that cannot be used: {error}.", OTHERWISE) from None
    return Tokenizer(core, marks)


def read_marks(file: GgufFile, n_tokens: int | None = None) -> Marks:
    """What a text begins and ends with; all of them tokens."""

    def mark(name: str) -> int | None:
        found: int | None = file.get(f"tokenizer.ggml.{name}_token_id", int)
        require(
            found is None or n_tokens is None or 0 <= found < n_tokens,
            f"{file.path} is not a sound GGUF file: its {name} mark {found} is no token.",
            OTHERWISE,
        )
        return found

    # SentencePiece's models and Llama 3 begin with a mark unless they say no, others only if they say so.
    kind, cut = (file.get(f"tokenizer.ggml.{name}", str, "") for name in ("model", "pre"))
    begins = file.get("tokenizer.ggml.add_bos_token", bool, kind == "llama" or CUTS.get(cut) is _like_llama3)
    ends = dict.fromkeys(end for end in map(mark, ("eos", "eot", "eom")) if end is not None)
    start, bos = mark("bos") if begins else None, file.get("tokenizer.ggml.bos_token_id", int)
    if bos == start or (bos is not None and not 0 <= bos < (n_tokens or bos + 1)):  # a number that means none
        bos = None
    return Marks(start, tuple(ends), file.get("tokenizer.chat_template", str), named_start=bos)


def _byte_level(file: GgufFile, pieces: list[str], special: set[int], words: set[int], start: int | None) -> Core:
    cut = file.get("tokenizer.ggml.pre", str, "")
    require(cut in CUTS, f"{file.path} cuts texts in the way {cut[:60]!r}, which is not known here.", OTHERWISE)
    merges = file.get("tokenizer.ggml.merges", list, [])
    whole = CUTS[cut] is _like_llama3  # a word of the vocabulary is taken as it is
    core = Core(byte_pair_model(vocabulary(pieces), merges, str(file.path), ignore_merges=whole))
    core.pre_tokenizer, core.decoder = CUTS[cut](), decoders.ByteLevel()
    add_marks(core, pieces, special, words, start)
    return core


def _numbers(file: GgufFile, key: str, n: int, default: float) -> Any:
    found = file.metadata.get(key)
    if found is None:
        return [default] * n
    require(
        not isinstance(found, (str, int, float)) and len(found) == n,
        f"{file.path} is not a sound GGUF file: {key} is not a number for each of its {n:,} tokens.",
        OTHERWISE,
    )
    return found
