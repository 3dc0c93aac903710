"""Readable byte-pair encoding: exact both ways, and the twin of `tokenizers`."""

import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from glassformer.errors import UserError
from glassformer.ladder.bpe import BYTES, WORD, Bpe, train

UNITS = ["bytes", "characters"]


def real_text(seed: int, n: int = 3000) -> str:
    """Words from syllables, the frequent ones much more frequent, as in a language."""
    rng = random.Random(seed)
    syllables = ["ba", "ke", "lo", "mi", "tru", "sch", "an", "en", "er", "ung", "ß", "é", "日本", "the", "ing"]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(300)]
    frequencies = [1 / (i + 1) for i in range(len(words))]
    chosen = rng.choices(words, frequencies, k=n)
    return "".join(word + rng.choice([" ", " ", " ", "\n", ", ", "  ", "\t"]) for word in chosen)


TEXT = real_text(1)
TRAINED = {unit: train([TEXT], 600, unit) for unit in UNITS}


# How `tokenizers` writes each byte: the visible ones as themselves, the rest from U+0100 on.
N_HIDDEN = 68
SIGNS = {b: chr(b) if i < 256 - N_HIDDEN else chr(i + N_HIDDEN) for i, b in enumerate(BYTES)}


def written(bpe: Bpe, piece: str) -> str:
    return "".join(SIGNS[ord(c)] for c in piece) if bpe.unit == "bytes" else piece


def twin(bpe: Bpe) -> Tokenizer:
    vocab = {written(bpe, piece) if i >= 256 or bpe.unit == "bytes" else piece: i for i, piece in enumerate(bpe.pieces)}
    merges = [(written(bpe, left), written(bpe, right)) for left, right in bpe.merges]
    core = Tokenizer(models.BPE(vocab=vocab, merges=merges, byte_fallback=bpe.unit == "characters"))
    core.pre_tokenizer = splitter(bpe.unit)
    return core


def splitter(unit: str) -> pre_tokenizers.PreTokenizer:
    words = pre_tokenizers.Split(Regex(WORD.pattern), "isolated")
    if unit == "characters":
        return words
    return pre_tokenizers.Sequence([words, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


TWINS = {unit: twin(bpe) for unit, bpe in TRAINED.items()}
texts = st.one_of(
    st.text(),
    st.text(alphabet="abekloming \n\t日本ßé<0x41>"),
    st.lists(st.sampled_from(WORD.findall(TEXT))).map("".join),
)


@given(texts)
@pytest.mark.parametrize("unit", UNITS)
def test_what_goes_in_comes_out(unit: str, text: str) -> None:
    bpe = TRAINED[unit]
    assert bpe.decode(bpe.encode(text)) == text


@pytest.mark.parametrize("unit", UNITS)
def test_even_half_characters_come_back(unit: str) -> None:
    text = "a\ud800b\udc00 \ud83d\ude00"
    assert TRAINED[unit].decode(TRAINED[unit].encode(text)) == text


@given(texts)
@pytest.mark.parametrize("unit", UNITS)
def test_encodes_as_tokenizers_does(unit: str, text: str) -> None:
    assert TRAINED[unit].encode(text) == TWINS[unit].encode(text).ids


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=30), st.text(alphabet="abc", max_size=60))
def test_encodes_as_tokenizers_does_with_merges_that_no_text_taught(picks: list[tuple[int, int]], text: str) -> None:
    bpe = Bpe("characters", "abc")
    for left, right in picks:
        pieces = len(bpe) - 256
        bpe.join(256 + left % pieces, 256 + right % pieces)
    assert bpe.encode(text) == twin(bpe).encode(text).ids


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_learns_what_tokenizers_learns(unit: str, seed: int) -> None:
    text = real_text(seed)
    bpe = train([text], 700, unit)
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = splitter(unit)
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        min_frequency=2,
        show_progress=False,
        # The bytes in front, where our characters have them too: ids decide ties.
        special_tokens=[] if unit == "bytes" else bpe.pieces[:256],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if unit == "bytes" else [],
    )
    core.train_from_iterator([text], trainer)
    assert len(bpe.merges) > 100
    assert {written(bpe, p) if unit == "bytes" else p: i for i, p in enumerate(bpe.pieces)} == core.get_vocab()
    core.decoder = decoders.ByteLevel()
    sample = real_text(seed + 100, 200)
    if unit == "bytes":  # a trained core would take the special byte tokens of characters out of the text
        assert bpe.encode(sample) == core.encode(sample).ids


def test_joins_the_commonest_pair_each_time() -> None:
    text = "".join(filter(str.isascii, TEXT))[:1500]
    merges = train([text], 280).merges
    assert len(merges) == 24
    for n, merge in enumerate(merges):  # the slow way: everything counted anew before each merge
        before = Bpe(merges=merges[:n])
        counts = Counter(pair for word in WORD.findall(text) for pair in pairwise(before.tokens(word)))
        assert counts[merge] == max(counts.values())


def test_of_equals_the_smallest_ids_are_first() -> None:
    assert train(["cd cd ab ab"], 257, "bytes").merges == [("a", "b")]


def test_stops_when_no_pair_comes_often_enough() -> None:
    assert train(["abc"], 300).merges == []
    assert train(["abc"], 300, at_least=1).merges == [("a", "b"), ("ab", "c")]


def test_tokens_are_readable() -> None:
    bpe = train(["find my files find my files"], 300)
    assert "".join(bpe.tokens("find my files")) == "find my files"
    assert bpe.tokens(" my files") == [" my", " files"]
    assert bpe.tokens("dim") == ["d", "i", "m"]


def test_same_merges_make_the_same_coder() -> None:
    for unit, bpe in TRAINED.items():
        alphabet = {p for p in bpe.pieces[256:] if len(p) == 1}
        again = Bpe(bpe.unit, alphabet, bpe.merges)
        assert again.pieces == bpe.pieces
        assert again.encode(TEXT) == bpe.encode(TEXT), unit


def test_a_long_word_is_quick() -> None:
    word = "ba" * 50_000
    assert TRAINED["bytes"].decode(TRAINED["bytes"].encode(word)) == word


def test_broken_bytes_show_as_such() -> None:
    bpe = Bpe()
    assert bpe.decode(bpe.encode("é")[:1]) == "�"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: train(["a"], 255), "too small"),
        (lambda: Bpe("words"), "no unit 'words'"),
        (lambda: Bpe(merges=[("ab", "c")]), "not there yet"),
        (lambda: Bpe().decode([256]), "no token 256"),
    ],
)
def test_mistakes_are_named(call, says: str) -> None:
    with pytest.raises(UserError, match=says):
        call()
