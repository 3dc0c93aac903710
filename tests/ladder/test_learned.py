"""What all rungs with weights promise, whatever their network is."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import UserError
from glassformer.ladder import LSTM, EmbeddedAttention, FullTransformer, OneLayerTransformer, Recurrent
from glassformer.ladder.fitting import Progress
from glassformer.ladder.learned import LearnedRung, overlapping

TEXT = "the cat sat on the mat and the rat sat on the cat"
KINDS = [
    lambda **o: EmbeddedAttention(8, **o),
    lambda **o: Recurrent(8, **o),
    lambda **o: LSTM(8, **o),
    lambda **o: OneLayerTransformer(8, **o),
    lambda **o: FullTransformer(**o),
]


def fitted(kind: int, steps: int = 2, **options: object) -> LearnedRung:
    rung: LearnedRung = KINDS[kind](steps=steps, context=12, **options)  # type: ignore[no-untyped-call]
    return rung.fit([TEXT])


@pytest.fixture(scope="module", params=range(len(KINDS)), ids=lambda i: KINDS[i]().name)  # type: ignore[no-untyped-call]
def rung(request: pytest.FixtureRequest) -> LearnedRung:
    return fitted(request.param)


@pytest.mark.parametrize("prefix", ["", "t", "the cat sat on the ma"])
def test_predictions_are_probabilities(rung: LearnedRung, prefix: str) -> None:
    prediction = rung.predict(prefix)
    assert prediction.kind == "probabilities"
    assert prediction.vocabulary == tuple(sorted(set(TEXT)))
    assert prediction.scores.sum() == pytest.approx(1)
    assert (prediction.scores > 0).all()


def test_what_is_measured_is_what_is_predicted(rung: LearnedRung) -> None:
    word = "the cat on"
    one_by_one = [np.log(rung.predict(word[:i])[c]) for i, c in enumerate(word)]
    assert rung.log_probabilities(word) == pytest.approx(one_by_one, abs=1e-5)


def test_a_long_text_is_measured_with_half_a_context_or_more(rung: LearnedRung) -> None:
    text = TEXT[:27]  # windows of 12: 0-12, 6-18, 12-24, 18-27
    found = rung.log_probabilities(text)
    assert found[:12] == pytest.approx(rung.log_probabilities(text[:12]), abs=1e-5)
    assert found[12:18] == pytest.approx(rung.log_probabilities(text[6:18])[6:], abs=1e-5)
    assert found[24:] == pytest.approx(rung.log_probabilities(text[18:])[6:], abs=1e-5)


def test_the_context_is_the_end_of_the_prefix(rung: LearnedRung) -> None:
    assert np.array_equal(rung.predict(TEXT).scores, rung.predict(TEXT[-11:]).scores)
    assert not np.array_equal(rung.predict(TEXT).scores, rung.predict(TEXT[-3:]).scores)


def test_no_word_sees_a_later_one(rung: LearnedRung) -> None:
    pieces = [np.concatenate(list(rung.predict_along(text))) for text in ("the cat", "the mat")]
    assert pieces[0][:5] == pytest.approx(pieces[1][:5], abs=1e-6)
    assert pieces[0][5] != pytest.approx(pieces[1][5], abs=1e-6)


def test_explanations_name_every_word_that_was_read(rung: LearnedRung) -> None:
    explanation = rung.explain("the c")
    assert not explanation.adds_up
    assert np.array_equal(explanation.prediction.scores, rung.predict("the c").scores)
    assert [r.name[:1] for r in explanation.reasons][:5] == ["(", "t", "h", "e", " "]
    assert all(rung.how in reason.name for reason in explanation.reasons)
    assert all(len(reason.scores) == len(rung.vocabulary) for reason in explanation.reasons)
    if rung.how == "attention":
        assert sum(reason.weight for reason in explanation.reasons) == pytest.approx(1)


def test_a_reason_is_the_change_that_its_word_makes() -> None:
    rung = fitted(1)
    start = len(rung.vocabulary)
    ids = rung.window("sat")
    ids[2] = start
    with torch.no_grad():
        without = rung.network(ids[None])[0, -1, :start].softmax(-1).numpy()
    assert rung.explain("sat").reasons[2].scores == pytest.approx(rung.predict("sat").scores - without, abs=1e-6)


def test_completion_goes_on_with_words_of_the_vocabulary(rung: LearnedRung) -> None:
    greedy = rung.complete("the", 3)
    assert greedy[:3] == list("the")
    assert greedy[3] == rung.predict("the").top(1)[0][0]
    assert len(rung.complete("the", 15, sample=True)) == 18


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_the_seed_decides_everything_and_the_callers_random_numbers_stay(kind: int) -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    one = fitted(kind, seed=5)
    assert torch.equal(torch.rand(1), expected)
    again, other = fitted(kind, seed=5), fitted(kind, seed=6)
    assert np.array_equal(one.predict("the").scores, again.predict("the").scores)
    assert np.array_equal(one.fit([TEXT]).predict("the").scores, again.predict("the").scores)  # fit begins anew
    assert not np.array_equal(one.predict("the").scores, other.predict("the").scores)


def test_weights_say_how_often_a_sequence_stands_for() -> None:
    rung = EmbeddedAttention(8, steps=150).fit(["ab", "ac"], weights=[1, 3])
    assert rung.predict("a")["c"] == pytest.approx(0.75, abs=0.02)


def test_progress_is_reported_at_every_step_and_the_error_falls() -> None:
    told: list[Progress] = []
    Recurrent(16, steps=60, report=told.append).fit([TEXT])
    assert [p.step for p in told] == list(range(1, 61))
    assert told[-1].share == 1
    assert told[-1].loss < 0.7 * told[0].loss


def test_seconds_end_the_fit() -> None:
    ticks = iter(range(1000))
    told: list[Progress] = []
    Recurrent(4, steps=None, seconds=20, clock=lambda: float(next(ticks)), report=told.append).fit([TEXT])
    assert told[-1].seconds == pytest.approx(20, abs=2)
    assert told[-1].share == 1


@given(st.integers(0, 200), st.integers(2, 30))
def test_overlapping_windows_cover_each_word_once(length: int, context: int) -> None:
    plan = list(overlapping(length, context))
    assert [i for _, new, end in plan for i in range(new, end)] == list(range(length))
    assert all(end - begin <= context for begin, _, end in plan)
    assert all(new - begin >= min(new, context / 2) for begin, new, _ in plan)


def test_an_unknown_word_is_named(rung: LearnedRung) -> None:
    with pytest.raises(UserError, match=r"word 'z' is not among the 12 words"):
        rung.predict("the z")
    with pytest.raises(UserError, match="'z'"):
        rung.log_probabilities("zoo")


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_a_rung_that_was_not_fitted_says_so(kind: int) -> None:
    rung = KINDS[kind]()  # type: ignore[no-untyped-call]
    for use in (lambda: rung.predict("a"), lambda: rung.explain("a"), lambda: rung.n_parameters):
        with pytest.raises(UserError, match="has not been fitted"):
            use()


@pytest.mark.parametrize("option", [{"context": 1}, {"batch": 0}, {"lr": 0.0}, {"width": 0}, {"steps": None}])
def test_options_without_sense_are_refused(option: dict[str, float]) -> None:
    with pytest.raises(UserError, match=next(iter(option))):
        LSTM(**option)  # type: ignore[arg-type]
    if "width" in option:
        with pytest.raises(UserError, match="width"):
            EmbeddedAttention(0)
