"""A tokenizer.json that nobody vouches for, checked before `tokenizers` gets it.

The library believes that each merge makes a token of the vocabulary; where that is not so, it may end the process.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from tokenizers import Tokenizer as Core
from tokenizers import models

from glassformer.errors import UserError, require

KINDS = ("BPE", "Unigram", "WordLevel", "WordPiece")
MOST_TOKENS = 1 << 24
LONGEST_WORD = 1000  # characters; WordPiece looks at every part of a word
COPY = "Copy it again from where it came, or give a tokenizer.json with --tokenizer."


def byte_pair_model(vocab: dict[str, int], merges: Sequence[Sequence[str]], where: str, **options: Any) -> models.BPE:
    """The library's model of a sound vocabulary and merges."""
    pairs = check_byte_pairs(vocab, merges, where)
    return models.BPE(vocab=vocab, merges=pairs, **options)


def check_byte_pairs(vocab: Any, merges: Iterable[Any], where: str) -> list[tuple[str, str]]:
    """The merges as pairs, each of two tokens that make a third."""
    check_vocabulary(vocab, where)
    pairs = []
    for merge in merges:
        parts = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(parts, (list, tuple)) or len(parts) != 2 or not all(isinstance(p, str) for p in parts):
            raise UserError(f"{where} has a merge that does not join two tokens: {str(merge)[:60]!r}.", COPY)
        left, right = parts
        if left not in vocab or right not in vocab or left + right not in vocab:
            raise UserError(f"{where} joins {left[:40]!r} and {right[:40]!r}, which make no token of it.", COPY)
        pairs.append((left, right))
    return pairs


def check_vocabulary(vocab: Any, where: str) -> None:
    sound = isinstance(vocab, dict) and all(type(i) is int and 0 <= i < MOST_TOKENS for i in vocab.values())
    require(
        sound and len(set(vocab.values())) == len(vocab),
        f"{where} does not give each of its tokens a number of its own.",
        COPY,
    )


def check_word_pieces(model: dict[str, Any], where: str) -> None:
    """BERT's kind: what it cannot spell becomes one mark, which must be there; words have a sensible end."""
    vocab, unknown, longest = model.get("vocab"), model.get("unk_token"), model.get("max_input_chars_per_word")
    check_vocabulary(vocab, where)
    assert isinstance(vocab, dict)
    require(
        isinstance(unknown, str) and unknown in vocab,
        f"{where} has no token for what it cannot spell: {str(unknown)[:40]!r} is not in it.",
        COPY,
    )
    require(
        type(longest) is int and 0 < longest <= LONGEST_WORD,
        f"{where} has max_input_chars_per_word = {str(longest)[:40]}, but 1 to {LONGEST_WORD:,} is read here.",
        COPY,
    )


def core_from_json(text: str, where: str) -> Core:
    """A whole tokenizer.json, neither cutting nor padding texts."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where} is not a tokenizer: {str(error)[:200]}.", COPY) from None
    model = data.get("model") if isinstance(data, dict) else None
    require(isinstance(model, dict), f"{where} is not a tokenizer: it has no model.", COPY)
    assert isinstance(model, dict)
    kind = model.get("type", "BPE" if "merges" in model else None)
    require(kind in KINDS, f"{where} holds a tokenizer of the kind {str(kind)[:40]!r}.", f"Give {' or '.join(KINDS)}.")
    if kind == "BPE":
        merges = model.get("merges")
        require(
            isinstance(merges, list) and not model.get("continuing_subword_prefix"),
            f"{where} holds a byte-pair model without merges, or with marked parts of words.",
            COPY,
        )
        check_byte_pairs(model.get("vocab"), merges or [], where)
    elif kind == "WordLevel":
        check_vocabulary(model.get("vocab"), where)
    elif kind == "WordPiece":
        check_word_pieces(model, where)
    try:
        # What was checked, not the text: the library might read that in another way.
        core = Core.from_str(json.dumps(data))
        core.no_truncation()
        core.no_padding()
        core.encode("A word.", add_special_tokens=True)  # some parts are only looked at here
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # the library raises bare Exception, and for the worst files what is none
        raise UserError(f"{where} is not a tokenizer: {str(error)[:200]}.", COPY) from None
    return core
