"""Words as numbers, counts as sorted arrays, and the two rungs that do not look back."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import UserError
from glassformer.ladder.counts import Codes, Counts, Uniform, Unigram

small = st.integers(0, 6)


@given(st.lists(st.tuples(small, small, st.integers(1, 4)), max_size=40), st.booleans())
def test_counts_are_those_of_a_dictionary(triples: list[tuple[int, int, int]], equal: bool) -> None:
    keys, words, times = (np.array([t[i] for t in triples], dtype=np.int64) for i in range(3))
    weights = np.full(len(triples), 2.0) if equal else times.astype(float)
    expected: Counter[tuple[int, int]] = Counter()
    for key, word, weight in zip(keys.tolist(), words.tolist(), weights.tolist(), strict=True):
        expected[key, word] += weight
    counts = Counts.count(keys, words, weights, 7)
    rows = counts.find(np.arange(7))
    for key in range(7):
        row = int(rows[key])
        assert counts.row(row).tolist() == [expected[key, word] for word in range(7)]
        looked_up = counts.at(np.full(7, row), np.arange(7))
        assert looked_up.tolist() == counts.row(row).tolist()
        if row >= 0:
            assert counts.totals[row] == counts.row(row).sum()
            assert counts.kinds[row] == np.count_nonzero(counts.row(row))
            assert counts.shares(row).sum() == pytest.approx(1)
    assert counts.at(np.array([0]), np.array([-1])).tolist() == [0]
    assert counts.shares(-1).tolist() == [0] * 7


@given(st.text(), st.text())
def test_characters_are_coded_alike_as_text_and_as_a_list(known: str, text: str) -> None:
    codes = Codes([*known, "longer"])
    ids = codes.encode(text)
    assert ids.tolist() == codes.encode(list(text)).tolist()
    assert [codes.vocabulary[i] for i in ids if i >= 0] == [c for c in text if c in known]


def test_uniform_and_unigram() -> None:
    sequences = [["a", "b", "a"], ["a"]]
    assert Uniform().fit(sequences).predict([]).scores.tolist() == [0.5, 0.5]
    assert Unigram().fit(sequences).predict(["b"]).scores.tolist() == [0.75, 0.25]
    assert Unigram().fit(sequences, [1, 5]).predict([])["a"] == 7 / 8
    assert Uniform().fit(sequences).perplexity(sequences) == pytest.approx(2)


def test_a_given_vocabulary_holds_words_that_never_came() -> None:
    assert Uniform("abcd").fit(["aab"]).predict("")["d"] == 0.25
    assert Unigram("abcd").fit(["aab"]).predict("").scores.tolist() == pytest.approx([2 / 3, 1 / 3, 0, 0])
    with pytest.raises(UserError, match="1 words that the given vocabulary lacks, such as 'e'"):
        Unigram("abcd").fit(["ae"])


def test_more_words_than_numbers_can_tell_apart_are_named() -> None:
    with pytest.raises(UserError, match="too many to count"):
        Counts.count(np.array([2**40]), np.array([0]), np.ones(1), 2**30)
