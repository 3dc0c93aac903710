"""Blanks: how many, of what kind, whole words together, and the same again from the same draw."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.data.masking import Masking, join_words, make_masking
from glassformer.data.tokenizer import Tokenizer, train_tokenizer, with_mask
from glassformer.errors import UserError

TEXT = "the quick brown fox jumps over the lazy dog; unbelievable, isn't it? " * 20


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return with_mask(train_tokenizer([TEXT], "bpe", 300, sentences=False))


def rows_of(tokenizer: Tokenizer, b: int, n: int) -> np.ndarray:
    ids = np.array(tokenizer.encode(TEXT))
    return np.stack([np.roll(ids, -i)[:n] for i in range(b)])


def test_shares_are_those_of_bert(tokenizer: Tokenizer) -> None:
    masking, random = make_masking(tokenizer, 0.15), np.random.default_rng(0)
    ids = rows_of(tokenizer, 400, 100)
    chosen = masking.choose(ids, random)
    seen = masking.hide(ids, chosen, random)
    assert chosen.mean() == pytest.approx(0.15, abs=0.01)
    hidden, same = seen == masking.mark, seen == ids
    assert not (hidden & ~chosen).any()
    assert same[~chosen].all()
    assert hidden[chosen].mean() == pytest.approx(0.8, abs=0.02)
    assert (~hidden & ~same)[chosen].mean() == pytest.approx(0.1, abs=0.02)


def test_marks_are_never_chosen_nor_drawn(tokenizer: Tokenizer) -> None:
    masking, random = make_masking(tokenizer, 0.9), np.random.default_rng(0)
    ids = rows_of(tokenizer, 50, 30)
    ids[:, 0], ids[:, -1] = 1, 2
    chosen = masking.choose(ids, random)
    assert not chosen[:, [0, -1]].any()
    drawn = masking.hide(ids, chosen, random)[chosen]
    assert not np.isin(drawn[drawn != masking.mark], list(tokenizer.special)).any()


def test_whole_words_are_chosen_together(tokenizer: Tokenizer) -> None:
    masking, random = make_masking(tokenizer, 0.3, whole_words=True), np.random.default_rng(0)
    ids = rows_of(tokenizer, 100, 60)
    chosen = masking.choose(ids, random)
    goes_on = join_words(tokenizer).places(ids)
    assert goes_on.any()
    assert (chosen[:, 1:] == chosen[:, :-1])[goes_on[:, 1:]].all()
    pieces = [tokenizer.tokens([int(i)])[0] for i in ids[0]]
    words = "".join(("" if on else "|") + piece for piece, on in zip(pieces, goes_on[0], strict=True)).split("|")
    assert " unbelievable" in "".join(words)
    assert all(sum(c == " " for c in word) <= 1 for word in words)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(2, 12))
def test_one_blank_at_least_and_the_same_draw_twice(seed: int, b: int, n: int) -> None:
    masking = Masking(9, np.arange(3, 9), 0.01)
    ids = np.random.default_rng(seed).integers(3, 9, size=(b, n))
    first, second = (masking.choose(ids, np.random.default_rng(seed)) for _ in range(2))
    assert first.any()
    assert (first == second).all()


def test_a_vocabulary_without_blanks_is_refused() -> None:
    with pytest.raises(UserError, match="no mark for blanks"):
        make_masking(train_tokenizer([TEXT], "bpe", 300))
