"""Beam search against trying everything, against a plain loop of best words, and against its own promises."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.decode.beam import beam_search
from glassformer.decode.options import DecodeOptions, Hypothesis
from tests.decode.tables import TableSteps, log_p

END, START = 0, 1
SEEDS = st.integers(0, 10_000)


def search(
    options: DecodeOptions, n_words: int, seed: int, n_sentences: int = 1, prefix: tuple[int, ...] = ()
) -> list[list[Hypothesis]]:
    start = torch.tensor([[START, *prefix]] * n_sentences)
    return beam_search(TableSteps(n_sentences, options.beam, n_words, seed), start, options, END)


def total(seed: int, sentence: int, ids: list[int], n_words: int, ends: bool, prefix: tuple[int, ...] = ()) -> float:
    """The log-probability of an answer, with its end or without."""
    words = [*ids, END] if ends else ids
    fed = (START, *prefix)
    return sum(float(log_p(seed, sentence, (*fed, *words[:i]), n_words)[w]) for i, w in enumerate(words))


def try_everything(seed: int, n_words: int, max_len: int, penalty: float) -> list[tuple[list[int], float]]:
    """All answers there are, best first."""
    answers = []
    for n in range(max_len + 1):
        for ids in itertools.product(range(1, n_words), repeat=n):
            ends = n < max_len
            score = total(seed, 0, list(ids), n_words, ends) / (n + ends) ** penalty
            answers.append((list(ids), score))
    return sorted(answers, key=lambda answer: -answer[1])


@given(seed=SEEDS, n_words=st.integers(2, 4), max_len=st.integers(1, 4), penalty=st.sampled_from([0.5, 1.0, 1.3]))
def test_a_wide_beam_finds_everything(seed: int, n_words: int, max_len: int, penalty: float) -> None:
    expected = try_everything(seed, n_words, max_len, penalty)
    width = len(expected) + 1
    found = search(DecodeOptions(beam=width, nbest=width, length_penalty=penalty, max_len=max_len), n_words, seed)[0]
    assert [h.ids for h in found] == [ids for ids, _ in expected]
    assert [h.score for h in found] == pytest.approx([score for _, score in expected], abs=1e-4)


@given(seed=SEEDS, n_words=st.integers(2, 4), max_len=st.integers(1, 4))
def test_without_penalty_a_wide_beam_finds_the_likeliest(seed: int, n_words: int, max_len: int) -> None:
    best, score = try_everything(seed, n_words, max_len, 0.0)[0]
    found = search(DecodeOptions(beam=128, length_penalty=0.0, max_len=max_len), n_words, seed)[0][0]
    assert found.ids == best
    assert found.score == pytest.approx(score, abs=1e-4)


@given(seed=SEEDS, n_words=st.integers(2, 6), n_sentences=st.integers(1, 4), max_len=st.integers(1, 9))
def test_a_beam_of_one_takes_the_best_word_each_time(seed: int, n_words: int, n_sentences: int, max_len: int) -> None:
    found = search(DecodeOptions(beam=1, max_len=max_len), n_words, seed, n_sentences)
    for sentence, (answer,) in enumerate(found):
        ids: list[int] = []
        while len(ids) < max_len:
            word = int(log_p(seed, sentence, (START, *ids), n_words).argmax())
            if word == END:
                break
            ids.append(word)
        assert answer.ids == ids
        ends = len(ids) < max_len
        expected = total(seed, sentence, ids, n_words, ends) / (len(ids) + ends)
        assert answer.score == pytest.approx(expected, abs=1e-4)


@given(
    seed=SEEDS,
    n_words=st.integers(2, 8),
    beam=st.integers(1, 6),
    penalty=st.sampled_from([0.0, 0.6, 1.0]),
    prefix=st.lists(st.integers(1, 1), max_size=2).map(tuple),
    max_len=st.integers(1, 8),
)
def test_promises(seed: int, n_words: int, beam: int, penalty: float, prefix: tuple[int, ...], max_len: int) -> None:
    """Sorted, distinct, no longer than asked, scores as defined, a batch as its sentences alone."""
    options = DecodeOptions(beam=beam, nbest=beam, length_penalty=penalty, max_len=max_len)
    found = search(options, n_words, seed, 3, prefix)
    for sentence, answers in enumerate(found):
        assert 1 <= len(answers) <= beam
        assert [h.score for h in answers] == sorted((h.score for h in answers), reverse=True)
        assert all(len(h.ids) <= max_len and END not in h.ids for h in answers)
        for h in answers:
            ends = len(h.ids) < max_len
            expected = total(seed, sentence, h.ids, n_words, ends, prefix)
            assert h.score == pytest.approx(expected / (len(prefix) + len(h.ids) + ends) ** penalty, abs=1e-4)
        assert len({tuple(h.ids) for h in answers}) == len(answers)
    assert found[0] == search(options, n_words, seed, 1, prefix)[0]


@given(seed=SEEDS, n=st.integers(1, 3), beam=st.integers(1, 4), prefix=st.sampled_from([(), (2,), (2, 3, 2)]))
def test_no_repeat_forbids_repeats(seed: int, n: int, beam: int, prefix: tuple[int, ...]) -> None:
    options = DecodeOptions(beam=beam, nbest=beam, no_repeat=n, max_len=9)
    for answers in search(options, 5, seed, 2, prefix):
        for h in answers:
            ids = [*prefix, *h.ids]
            grams = [tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)]
            fresh = grams[: max(0, len(prefix) - n + 1)]  # a prefix may repeat itself: it is given
            for gram in grams[len(fresh) :]:
                assert gram not in fresh
                fresh.append(gram)


def test_where_everything_is_forbidden_there_is_no_answer() -> None:
    assert search(DecodeOptions(beam=2, no_repeat=1, max_len=3), 3, seed=1, prefix=(END, 1, 2)) == [[]]


def test_sentences_end_at_different_times() -> None:
    found = search(DecodeOptions(beam=2, max_len=30), 5, seed=3, n_sentences=12)
    assert len({len(answers[0].ids) for answers in found}) > 3


def test_after_a_prefix_an_answer_ends_at_once_only_if_that_is_best() -> None:
    options, n_at_once = DecodeOptions(beam=3, nbest=3, length_penalty=0.0, max_len=6), 0
    for seed in range(60):
        best = int(log_p(seed, 0, (START, 2), 5).argmax())
        at_once = any(h.ids == [] for h in search(options, 5, seed, prefix=(2,))[0])
        assert at_once == (best == END)
        n_at_once += at_once
    assert 0 < n_at_once < 60
