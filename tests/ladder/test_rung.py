"""The one face: prediction, completion, perplexity, and the same words for the same mistakes on every rung."""

import math

import numpy as np
import pytest

from glassformer.errors import UserError
from glassformer.ladder.counts import Uniform, Unigram
from glassformer.ladder.markov import BackOff, Markov
from glassformer.ladder.onehot import OneHotAttention
from glassformer.ladder.rung import Matrix, Prediction, Rung, check_sequences, sorted_vocabulary
from glassformer.ladder.skips import MaskedSkips, Skips

MAKERS = [
    Uniform,
    Unigram,
    lambda: Markov(1),
    lambda: Markov(2),
    lambda: BackOff(0),
    lambda: BackOff(3),
    Skips,
    MaskedSkips,
    OneHotAttention,
    lambda: OneHotAttention(masked=False),
]
IDS = ["uniform", "unigram", "first", "second", "back-off 0", "back-off 3", "skips", "masked", "one-hot", "one-hot all"]
SENTENCES = ["show me my files please", "show me my photos please", "find my photos"]
SEQUENCES = [sentence.split() for sentence in SENTENCES]
every_rung = pytest.mark.parametrize("make", MAKERS, ids=IDS)


@every_rung
def test_vocabulary_is_sorted_and_scores_have_one_place_for_each_word(make) -> None:
    rung = make().fit(SEQUENCES)
    assert rung.vocabulary == ("files", "find", "me", "my", "photos", "please", "show")
    prediction = rung.predict(["show", "me"])
    assert prediction.scores.shape == (7,)
    assert (prediction.scores >= 0).all()
    assert prediction.kind == rung.kind


@every_rung
@pytest.mark.parametrize("prefix", [[], ["my"], ["show", "me", "my"], ["find", "nothing", "my"], ["nothing"]])
def test_reasons_add_up_to_the_prediction(make, prefix: list[str]) -> None:
    explanation = make().fit(SEQUENCES, [1, 2.5, 1]).explain(prefix)
    assert explanation.adds_up
    total = sum((r.weight * r.scores for r in explanation.reasons), np.zeros(7))
    np.testing.assert_allclose(total, explanation.prediction.scores, atol=1e-12)


@every_rung
def test_completes_with_the_best_word_each_time(make) -> None:
    rung = make().fit(SEQUENCES)
    words = rung.complete(["show", "me"], 4)
    assert words[:2] == ["show", "me"]
    for i in range(2, len(words)):
        assert words[i] == rung.predict(words[:i]).top(1)[0][0]


@every_rung
def test_draws_only_what_has_a_score_and_the_same_with_the_same_seed(make) -> None:
    rung = make().fit(SEQUENCES)
    for seed in range(5):
        words = rung.complete(["show"], 6, sample=True, seed=seed)
        assert words == rung.complete(["show"], 6, sample=True, seed=seed)
        for i in range(1, len(words)):
            assert rung.predict(words[:i])[words[i]] > 0


@every_rung
def test_a_weight_says_how_often(make) -> None:
    weighted = make().fit(SEQUENCES, [1, 2, 3])
    repeated = make().fit([s for s, n in zip(SEQUENCES, [1, 2, 3], strict=True) for _ in range(n)])
    for prefix in (["my"], ["show", "me", "my"], ["find", "my"]):
        np.testing.assert_allclose(weighted.predict(prefix).scores, repeated.predict(prefix).scores)


@every_rung
def test_perplexity_is_of_probabilities_only(make) -> None:
    rung = make().fit(SEQUENCES)
    if rung.kind == "votes":
        with pytest.raises(UserError, match="votes, not probabilities"):
            rung.perplexity(SEQUENCES)
        return
    logs = [math.log(rung.predict(s[:i])[word]) for s in SEQUENCES for i, word in enumerate(s)]
    assert rung.perplexity(iter(SEQUENCES)) == pytest.approx(math.exp(-sum(logs) / len(logs)))
    assert rung.perplexity([["show", "unheard"]]) == math.inf
    with pytest.raises(UserError, match="not a word to measure"):
        rung.perplexity([[]])


@every_rung
@pytest.mark.parametrize(
    ("sequences", "weights", "says"),
    [
        ("show me", None, "One text is given"),
        ([], None, "not a word to learn from"),
        ([[], []], None, "not a word to learn from"),
        ([b"show"], None, "sequence of bytes"),
        ([["a"]], [1, 2], "2 weights for 1 sequences"),
        ([["a"], ["b"]], [1, 0], "not a positive number"),
        ([["a"], ["b"]], [1, math.nan], "not a positive number"),
    ],
)
def test_what_cannot_be_learned_from_is_named(make, sequences, weights, says: str) -> None:
    with pytest.raises(UserError, match=says):
        make().fit(sequences, weights)


@every_rung
def test_asking_before_fitting_is_named(make) -> None:
    with pytest.raises(UserError, match="has not been fitted"):
        make().predict(["show"])


@every_rung
def test_one_word_is_enough_to_fit(make) -> None:
    rung: Rung = make().fit([["a"], []])
    assert rung.vocabulary == ("a",)
    assert rung.predict(["a"]).scores.shape == (1,)


def test_sharper_and_flatter_draws() -> None:
    rung = Unigram().fit([["a"] * 9 + ["b"]])
    cold = rung.complete([], 300, sample=True, temperature=0.1)
    warm = rung.complete([], 300, sample=True, temperature=1.0)
    hot = rung.complete([], 300, sample=True, temperature=100.0)
    assert cold.count("b") == 0
    assert 10 < warm.count("b") < 60
    assert 100 < hot.count("b") < 200
    with pytest.raises(UserError, match="temperature is 0"):
        rung.complete([], 1, sample=True, temperature=0)
    with pytest.raises(UserError, match="-1 words more"):
        rung.complete([], -1)


def test_top_takes_the_first_of_equals() -> None:
    prediction = Prediction(("a", "b", "c"), np.array([0.25, 0.5, 0.25]), "probabilities")
    assert prediction.top(2) == [("b", 0.5), ("a", 0.25)]
    assert prediction["c"] == 0.25
    with pytest.raises(UserError, match="'d' is not in the vocabulary"):
        prediction["d"]


def test_matrix_is_read_by_names() -> None:
    matrix = Matrix(("x", "y"), ("a", "b"), np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert matrix["y", "a"] == 3
    assert matrix.row("x").tolist() == [1, 2]
    with pytest.raises(UserError, match="no row 'z'"):
        matrix.row("z")
    with pytest.raises(UserError, match="no column 'z'"):
        matrix["x", "z"]


def test_helpers() -> None:
    assert sorted_vocabulary([["b", "a"], "cb"]) == ("a", "b", "c")
    listed, weights = check_sequences(iter(["ab", "c"]))
    assert listed == ["ab", "c"]
    assert weights.tolist() == [1, 1]
