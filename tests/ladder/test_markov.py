"""Markov rungs of any order against plain dictionaries and against the sums that a distribution must give."""

import math
from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import UserError
from glassformer.ladder.markov import DISCOUNT, BackOff, Markov
from glassformer.ladder.rung import Rung

texts = st.lists(st.text(alphabet="abc", max_size=12), min_size=1, max_size=6).filter(any)
prefixes = st.text(alphabet="abcd", max_size=6)
orders = st.integers(0, 4)


@given(texts, prefixes, orders)
def test_markov_is_the_row_of_a_dictionary(sequences: list[str], prefix: str, order: int) -> None:
    rows: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sequence in sequences:
        for i, word in enumerate(sequence):
            rows[("^" + sequence)[max(0, i + 1 - order) : i + 1]][word] += 1
    row = rows[("^" + prefix)[max(0, len(prefix) + 1 - order) :]]
    rung = Markov(order).fit(sequences)
    expected = [row[word] / max(1, row.total()) for word in rung.vocabulary]
    np.testing.assert_allclose(rung.predict(prefix).scores, expected)


@given(texts, texts, orders, st.booleans(), st.lists(st.sampled_from([0.2, 1, 3]), min_size=6, max_size=6))
def test_all_at_once_is_word_by_word(
    sequences: list[str], tests: list[str], order: int, exact: bool, weights: list[float]
) -> None:
    rung = (Markov(order) if exact else BackOff(order, "abcde")).fit(sequences, weights[: len(sequences)])
    slow = []
    for test in [*tests, "abeé"]:
        expected = Rung.log_probabilities(rung, test)  # the face's own way, by predict
        np.testing.assert_allclose(rung.log_probabilities(test), expected, rtol=1e-9)
        slow.append(expected.sum())
    assert rung.log_probability([*tests, "abeé"]) == pytest.approx(sum(slow))


@given(texts, prefixes, orders, st.sampled_from([0.01, 1, 7]))
def test_back_off_is_a_distribution_that_gives_every_word_something(
    sequences: list[str], prefix: str, order: int, weight: float
) -> None:
    rung = BackOff(order, vocabulary="abcxyz").fit(sequences, [weight] * len(sequences))
    prediction = rung.predict(prefix)
    assert prediction.scores.sum() == pytest.approx(1)
    assert (prediction.scores > 0).all()
    assert prediction["x"] == pytest.approx(prediction["y"])


def test_back_off_by_hand() -> None:
    rung = BackOff(1).fit(["aab"])
    # "any words": after how many different contexts came a (start and a: 2) and b (a: 1), each less the discount
    lower_a = (2 - DISCOUNT) / 3 + 2 * DISCOUNT / 3 * (1 / 2)
    after_a = (1 - DISCOUNT) / 2 + 2 * DISCOUNT / 2 * lower_a
    assert rung.predict("a")["a"] == pytest.approx(after_a)
    assert rung.predict("b")["a"] == pytest.approx(lower_a)  # nothing ever followed b
    assert [reason.name for reason in rung.explain("a").reasons] == ["a", "any words", "every word alike"]
    assert rung.explain("").reasons[0].name == "(start)"


def test_the_start_counts_how_often() -> None:
    rung = BackOff(2).fit([["a"]] * 9 + [["b"]])
    any_words = 1 / 2  # each of the two came after one context only
    assert rung.predict([])["a"] == pytest.approx((9 - DISCOUNT) / 10 + 2 * DISCOUNT / 10 * any_words)


def test_a_word_that_follows_one_word_only_is_no_good_guess_elsewhere() -> None:
    rung = BackOff(1).fit([["san", "francisco"]] * 20 + [[w, "is"] for w in ("he", "she", "it", "all")])
    after_new = rung.predict(["francisco"])  # nothing ever came after it, so the shorter context decides
    assert after_new["is"] > after_new["francisco"]
    assert rung.predict(["san"])["francisco"] > 0.9


def test_longer_contexts_buy_something_where_they_matter() -> None:
    rng = np.random.default_rng(1)
    text = "".join(rng.choice(["the cat sat. ", "a dog ran. ", "the dog sat. ", "one cat ran. "], size=400))
    train, test = text[:4000], text[4000:]
    perplexities = [BackOff(order).fit([train]).perplexity([test]) for order in range(5)]
    assert all(lower > higher for lower, higher in pairwise(perplexities))


def test_exact_rows_are_certain_where_the_data_is() -> None:
    assert Markov(1).fit(["abcabcabc"]).perplexity(["bcab", "abc"]) == math.inf  # no sequence began with b
    assert Markov(1).fit(["abcabcabc"]).perplexity(["abcab", "abc"]) == pytest.approx(1)


def test_table_has_names_and_leaves_out_the_start() -> None:
    table = Markov(2).fit([["a", "b", "c"], ["a", "b", "d"]]).table()
    assert table.rows == ("a b",)
    assert table["a b", "d"] == 0.5
    first = Markov(1).fit([["a", "b"]]).table()
    assert first.rows == ("a", "b")
    assert first.row("b").tolist() == [0, 0]


def test_rows_of_the_start() -> None:
    rung = Markov(2).fit([["a", "b", "a"], ["b", "b"]])
    assert rung.predict([]).scores.tolist() == [0.5, 0.5]
    assert rung.predict(["a"])["b"] == 1
    assert rung.explain(["a"]).reasons[0].name == "(start) a"
    assert rung.explain(["a", "b"]).reasons[0].name == "a b"


def test_many_words_and_a_high_order_do_not_overflow() -> None:
    words = [f"w{i}" for i in range(20_000)]
    rung = BackOff(6).fit([words])
    assert rung.predict(words[:7])[words[7]] > 0.24
    assert rung.predict(words[:7])[words[8]] < 1e-3


def test_mistakes_are_named() -> None:
    with pytest.raises(UserError, match="order is -1"):
        Markov(-1)
    with pytest.raises(UserError, match="table would hold"):
        Markov(1).fit([[f"w{i}" for i in range(3000)]]).table()
