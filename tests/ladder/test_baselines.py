"""What counting alone gets: bits per byte, the commonest label, a bag of words."""

import math
import os
from pathlib import Path

import numpy as np
import pytest

from glassformer.errors import UserError
from glassformer.ladder.baselines import BagOfWords, Majority, language_rungs
from glassformer.ladder.markov import BackOff

TEXTS = ["a good film", "good fun", "a bad film", "bad, bad fun", "very good!"]
LABELS = ["yes", "yes", "no", "no", "yes"]


def language(n: int, seed: int) -> str:
    words = ["the", "cat", "öl", "dog", "sat", "ran", "on", "under", "table", "moon"]
    return " ".join(np.random.default_rng(seed).choice(words, size=n))


def test_every_rung_buys_something_on_a_language() -> None:
    rows = language_rungs(language(5000, 1), language(500, 2))
    assert [row.name for row in rows] == [
        "uniform",
        "unigram",
        "first order",
        "second order",
        "order 3",
        "order 4",
        "order 5",
    ]
    assert rows[0].bits_per_byte == pytest.approx(8)
    bits = [row.bits_per_byte for row in rows]
    assert bits[:4] == sorted(bits[:4], reverse=True)
    assert all(math.isfinite(b) for b in bits)
    entropy = math.log2(10) / np.mean([len(word.encode()) + 1 for word in set(language(5000, 1).split())])
    assert entropy < min(bits) < entropy * 1.1  # what the words' choice cannot tell anyone


def test_bytes_that_never_came_are_possible() -> None:
    rows = language_rungs(b"aaaa", bytes(range(256)), highest=1)
    assert all(math.isfinite(row.bits_per_byte) for row in rows)


def test_text_is_measured_in_bytes() -> None:
    train, test = "Öl und Bär. " * 50, "Bär und Öl."
    assert [r.bits_per_byte for r in language_rungs(train, test)] == [
        r.bits_per_byte for r in language_rungs(train.encode(), test.encode())
    ]
    assert language_rungs(train, test)[0].n_train_bytes == len(train.encode())


def test_rows_are_perplexity_in_bits() -> None:
    train, test = language(300, 1), language(50, 2)
    rung = BackOff(2, map(chr, range(256))).fit([train.encode().decode("latin-1")])
    expected = math.log2(rung.perplexity([test.encode().decode("latin-1")]))
    assert language_rungs(train, test)[3].bits_per_byte == pytest.approx(expected)


def test_majority() -> None:
    assert Majority().fit(TEXTS, LABELS).predict(["x", "y"]) == ["yes", "yes"]
    assert Majority().fit(["a", "b"], ["z", "y"]).predict(["x"]) == ["y"]


def test_bag_of_words_by_hand() -> None:
    bag = BagOfWords().fit(TEXTS, LABELS)
    assert bag.labels == ("no", "yes")
    # 8 different words; no: a bad film bad , bad fun (7 in all, bad 3); yes: a good film good fun very good ! (8)
    no, yes = math.log(2 / 5) + math.log(4 / 15), math.log(3 / 5) + math.log(1 / 16)
    assert bag.scores("BAD unheard").tolist() == pytest.approx([no, yes])
    assert bag.predict(["bad", "good", "Bad film?"]) == ["no", "yes", "no"]
    assert bag.predict(["", "unheard of"]) == ["yes", "yes"]  # only the labels' shares speak
    assert bag.predict([]) == []


def test_bag_of_words_learns_a_topic() -> None:
    rng = np.random.default_rng(1)
    topics = {"sea": ["ship", "wave", "fish", "a", "the"], "wood": ["tree", "leaf", "deer", "a", "the"]}
    labels = [str(label) for label in rng.choice(list(topics), size=300)]
    texts = [" ".join(rng.choice(topics[label], size=12)) for label in labels]
    predicted = BagOfWords().fit(texts[:200], labels[:200]).predict(texts[200:])
    assert np.mean([p == label for p, label in zip(predicted, labels[200:], strict=True)]) > 0.97


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: language_rungs("", "a"), "no text to learn from"),
        (lambda: language_rungs("a", b""), "no text to measure on"),
        (lambda: Majority().fit([], []), "no text to learn from"),
        (lambda: BagOfWords().fit(["a"], []), "0 labels for 1 texts"),
        (lambda: BagOfWords().predict(["a"]), "has not been fitted"),
        (lambda: Majority().predict(["a"]), "has not been fitted"),
    ],
)
def test_mistakes_are_named(call, says: str) -> None:
    with pytest.raises(UserError, match=says):
        call()


@pytest.mark.slow
def test_each_order_buys_something_on_shakespeare() -> None:
    folder = os.environ.get("GLASSFORMER_DATA")
    if not folder:
        pytest.skip("GLASSFORMER_DATA names no folder")
    text = (Path(folder) / "lm" / "tinyshakespeare.txt").read_bytes()
    cut = len(text) * 9 // 10
    bits = [row.bits_per_byte for row in language_rungs(text[:cut], text[cut:])]
    assert bits == sorted(bits, reverse=True)
    assert bits[-1] < 2.3
