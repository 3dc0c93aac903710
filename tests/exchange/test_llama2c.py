"""llama2.c's files: the same logits as Hugging Face's Llama, and tokens by its own rule."""

import struct
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import UserError
from glassformer.exchange.importing import import_model
from glassformer.exchange.llama2c import read_llama2c, read_tokenizer
from glassformer.exchange.pieces import scored_pieces_tokenizer
from glassformer.tasks.model_dir import load_model
from tests.exchange.foreign_models import (
    SENTENCES,
    llama,
    logits_equal,
    scored_pieces,
    write_llama2c,
    write_tokenizer_bin,
)

PIECES, SCORES = scored_pieces()
SIZES = {"vocab_size": len(PIECES), "rms_norm_eps": 1e-5}


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("tied", [True, False])
def test_logits_equal_those_of_hugging_face(version: int, tied: bool, tmp_path: Path) -> None:
    theirs = llama(**SIZES, tie_word_embeddings=tied)
    import_model(write_llama2c(tmp_path / "m.bin", theirs, version), tmp_path / "ours")
    loaded = load_model(tmp_path / "ours")
    logits_equal(loaded.model, theirs)
    assert loaded.about["context"] == 64
    assert (loaded.tokenizer.marks.start, loaded.tokenizer.marks.ends) == (1, (2,))
    assert loaded.tokenizer.piece(1) == "<s>"


def by_hand(text: str) -> list[int]:
    """The rule in its own words: letters or bytes first, then the best of all neighbours again and again."""
    ids = {piece: i for i, piece in enumerate(PIECES)}
    found: list[int] = []
    for letter in f" {text}".replace(" ", "▁") if text else "":
        found += [ids[letter]] if letter in ids else [3 + byte for byte in letter.encode()]
    while True:
        pairs = [(SCORES[j], -k) for k in range(len(found) - 1) if (j := _joined(ids, found[k], found[k + 1]))]
        if not pairs:
            return found
        k = -max(pairs)[1]
        found[k : k + 2] = [ids[PIECES[found[k]] + PIECES[found[k + 1]]]]


def _joined(ids: dict[str, int], left: int, right: int) -> int:
    whole = left >= 259 and right >= 259  # neither marks nor bytes join
    return ids.get(PIECES[left] + PIECES[right], 0) if whole else 0


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    path = write_tokenizer_bin(tmp_path_factory.mktemp("words") / "tokenizer.bin", PIECES, SCORES)
    return read_tokenizer(path, len(PIECES))


@given(st.text(st.sampled_from("aeoptlhsnd ,.ié\n日"), max_size=40))
@example("")
@example("<s> </s> <0x0A>")
@example(SENTENCES[3])
def test_tokens_follow_the_rule(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.encode(text) == by_hand(text)
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_neighbours_that_could_join_either_way_join_on_the_left() -> None:
    """Three equal letters: the first two join, though the score of both pairs is the same."""
    core = scored_pieces_tokenizer(["<unk>", "a", "aa", "b"], [0.0, -2.0, -1.0, -3.0], {0}, prefix_space=False)
    assert core.encode("aaa").tokens == ["aa", "a"]


def refused(path: Path, message: str, **options: Path) -> None:
    with pytest.raises(UserError, match=message) as caught:
        import_model(path, path.parent / "ours", **options)
    assert caught.value.hint.endswith(".")
    assert not (path.parent / "ours").exists()


@pytest.mark.parametrize("where", range(7))
@pytest.mark.parametrize("value", [0, -1, 1, 3, 2**31 - 1, -(2**31)])
def test_absurd_headers(where: int, value: int, tmp_path: Path) -> None:
    path = write_llama2c(tmp_path / "m.bin", llama(**SIZES, tie_word_embeddings=True))
    data = bytearray(path.read_bytes())
    data[4 * where : 4 * where + 4] = struct.pack("<i", value)
    path.write_bytes(data)
    refused(path, "not a sound llama2.c|bytes more than a llama2.c file|the weights are not so many")


def test_files_that_are_too_short_or_too_long(tmp_path: Path) -> None:
    path = write_llama2c(tmp_path / "m.bin", llama(**SIZES))
    good = path.read_bytes()
    for cut in (0, 3, 27, 28, 1000, len(good) - 4, len(good) - 1):
        path.write_bytes(good[:cut])
        refused(path, "not a sound llama2.c file")
    path.write_bytes(good + b"\0" * 4)
    refused(path, "4 bytes more")
    path.write_bytes(struct.pack("<Ii", 0x616B3432, 2) + good)
    refused(path, "of version 2")


@pytest.mark.parametrize("width", [640, 896, 1152])
def test_a_width_that_begins_like_a_pickle(width: int, tmp_path: Path) -> None:
    path = tmp_path / "m.bin"
    path.write_bytes(struct.pack("<7i", width, 64, 1, 4, 4, 512, 64))
    refused(path, "not a sound llama2.c file")


def test_tokenizers_that_do_not_fit(tmp_path: Path) -> None:
    path = write_llama2c(tmp_path / "m.bin", llama(**SIZES))
    words = tmp_path / "tokenizer.bin"
    good = words.read_bytes()
    write_tokenizer_bin(words, [*PIECES, "more"], [*SCORES, 0.0])
    refused(path, "does not fit the weights: it holds more")
    write_tokenizer_bin(words, PIECES[:-1], SCORES[:-1])
    refused(path, "not a sound llama2.c tokenizer file")
    write_tokenizer_bin(words, [*PIECES[:-1], PIECES[-2]], SCORES)
    refused(path, "twice")
    write_tokenizer_bin(words, PIECES, [*SCORES[:-1], float("nan")])
    refused(path, "a score that is no number")
    write_tokenizer_bin(words, [*PIECES[:-1], "x" * 5000], SCORES)
    refused(path, "far too long")
    words.write_bytes(good[:-1] + b"\xff")
    refused(path, "is not UTF-8")
    words.unlink()
    refused(path, f"no tokenizer tok{len(PIECES)}.bin or tokenizer.bin beside")
    (tmp_path / f"tok{len(PIECES)}.bin").write_bytes(good)
    import_model(path, tmp_path / "ours")


def test_any_file_is_read_or_refused(tmp_path: Path) -> None:
    path = write_llama2c(tmp_path / "m.bin", llama(**SIZES, num_hidden_layers=1))
    words = tmp_path / "tokenizer.bin"
    good, good_words = path.read_bytes(), words.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(100):
        header, pieces = bytearray(good[:28]), bytearray(good_words)
        for data in (header, pieces):
            if rng.random() < 0.5:
                data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(header + good[28:])
        words.write_bytes(pieces[: int(rng.integers(len(pieces)))] if rng.random() < 0.3 else pieces)
        with suppress(UserError):
            read_llama2c(path)
