"""Whisper's tokenizer: byte pairs with their ranks (OpenAI's .tiktoken files) and the marks that follow them."""

import base64
import binascii
import itertools
from pathlib import Path

from tokenizers import AddedToken, decoders, pre_tokenizers
from tokenizers import Tokenizer as Core

from glassformer.data.tokenizer import Marks, Tokenizer
from glassformer.data.tokenizer_json import byte_pair_model, core_from_json
from glassformer.errors import UserError, require
from glassformer.tasks.whisper_marks import END, N_TIMES, NO_TIMES, START, mark_names

LARGEST = 1 << 25
MOST_SPARE = 128


def read_whisper_tokenizer(path: Path, n_rows: int) -> Tokenizer:
    """A .tiktoken file, or a tokenizer.json with the marks in it, for a model of so many rows."""
    try:
        require(path.stat().st_size <= LARGEST, f"{path} is too large for a tokenizer.", "Check the file.")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"There is no tokenizer {path}.", "Check --tokenizer FILE.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not a tokenizer: {error}.", "Give a .tiktoken file or a tokenizer.json.") from None
    if text.lstrip().startswith("{"):
        core = core_from_json(text, str(path))
        _check_marks(core, n_rows, path)
    else:
        core = _from_ranks(_read_ranks(path, text), n_rows, path)
    start, end = core.token_to_id(START), core.token_to_id(END)
    if start is None or end is None:
        raise UserError(f"{path} lacks Whisper's marks.", "Take Whisper's own tokenizer.")
    return Tokenizer(core, Marks(start, (end,)))


def _check_marks(core: Core, n_rows: int, path: Path) -> None:
    """The times are the last tokens, after whatever else there is; they need not be written into the file."""
    before = core.token_to_id(NO_TIMES)
    if before is None:
        raise UserError(f"{path} lacks Whisper's marks.", "Take Whisper's own tokenizer.")
    wanted = max(before + N_TIMES, *core.get_vocab(with_added_tokens=True).values()) + 1
    spare = n_rows - wanted  # some models are filled up to a round number
    require(
        spare == 0 or (0 < spare < MOST_SPARE and n_rows % 8 == 0),
        f"{path} is a tokenizer for {wanted:,} rows, which does not suit a model of {n_rows:,} rows.",
        "Take the tokenizer of the same model: those of English models (.en) and of the others differ.",
    )


def _read_ranks(path: Path, text: str) -> list[bytes]:
    """The tokens in the order of their ranks."""
    tokens: list[bytes] = []
    for number, line in enumerate(text.splitlines(), start=1):
        parts = line.split()
        try:
            sound = len(parts) == 2 and int(parts[1]) == len(tokens)
            # The last line of multilingual.tiktoken stands for a token of no bytes.
            tokens.append(b"" if parts[0] == "=" else base64.b64decode(parts[0], validate=True))
        except (ValueError, IndexError, binascii.Error):
            sound = False
        require(sound, f"Line {number} of {path} is not a token and its rank.", "Give one of OpenAI's .tiktoken files.")
    require(len(set(tokens)) == len(tokens) > 256, f"{path} is not a sound vocabulary.", "Copy it again.")
    return tokens


def _from_ranks(tokens: list[bytes], n_rows: int, path: Path) -> Core:
    letters = _byte_letters()
    ranks = {token: rank for rank, token in enumerate(tokens)}
    written = ["".join(letters[byte] for byte in token) for token in tokens]
    merges = []
    for rank, token in enumerate(tokens):
        if len(token) > 1 and len(pair := _parts(token, rank, ranks)) == 2:
            merges.append(tuple("".join(letters[byte] for byte in part) for part in pair))
    n_languages = n_rows - len(tokens) - len(mark_names(0))
    require(
        0 < n_languages <= 100,
        f"{path} has {len(tokens):,} tokens, which does not suit a model of {n_rows:,} rows.",
        "English models (.en) take gpt2.tiktoken, the others multilingual.tiktoken.",
    )
    core = Core(byte_pair_model(dict(zip(written, range(len(written)), strict=True)), merges, str(path)))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in mark_names(n_languages)])
    assert core.get_vocab_size() == len(tokens) + len(mark_names(n_languages))
    return core


def _parts(token: bytes, rank: int, ranks: dict[bytes, int]) -> list[bytes]:
    """The two tokens that this one was joined from: what the earlier ranks make of its bytes."""
    parts = [bytes([byte]) for byte in token]
    while len(parts) > 2:
        found = [ranks.get(a + b, rank) for a, b in itertools.pairwise(parts)]
        best = min(found)
        if best >= rank:
            break
        place = found.index(best)
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    return parts


def _byte_letters() -> dict[int, str]:
    """GPT-2 writes each byte as a letter: printable ones as they are, the others from 256 on."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + i) for i, byte in enumerate(others)}
