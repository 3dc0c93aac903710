"""Answers that must contain phrases: always complete, never worse than need be, and the plain beam without phrases."""

import itertools
from functools import reduce

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from glassformer.decode.beam import beam_search
from glassformer.decode.options import DecodeOptions
from glassformer.decode.phrases import Wanted, n_rows, phrase_search
from glassformer.errors import UserError

START, END, N = 0, 1, 6


class Chain:
    """A Markov chain as a model: what follows depends on the last token."""

    def __init__(self, seed: int, rows: int) -> None:
        self.log_p = torch.randn(N, N, generator=torch.Generator().manual_seed(seed)).mul(2).log_softmax(-1)
        self.last = torch.zeros(rows, dtype=torch.long)

    def step(self, ids: Tensor) -> Tensor:
        self.last = ids[:, -1]
        return self.log_p[self.last]

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        self.last = self.last[rows]

    def total(self, ids: tuple[int, ...]) -> float:
        whole = [START, *ids, END]
        return sum(float(self.log_p[a, b]) for a, b in itertools.pairwise(whole))


def contains(ids: list[int], phrase: tuple[int, ...]) -> bool:
    return any(tuple(ids[i : i + len(phrase)]) == phrase for i in range(len(ids)))


tokens = st.integers(2, N - 1)
phrases = st.lists(st.lists(tokens, min_size=1, max_size=3).map(tuple), min_size=1, max_size=2).map(tuple)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), wanted=phrases, beam=st.integers(1, 6))
def test_every_answer_contains_every_phrase(seed: int, wanted: tuple[tuple[int, ...], ...], beam: int) -> None:
    options = DecodeOptions(beam=beam, nbest=beam, max_len=20)
    found = phrase_search(Chain(seed, n_rows(wanted, options)), torch.tensor([[START]]), wanted, options, END)
    assert found
    assert all(contains(h.ids, phrase) for h in found for phrase in wanted)


@pytest.mark.parametrize("seed", range(10))
def test_a_wide_beam_finds_the_best_answer_with_the_phrase(seed: int) -> None:
    phrase, most = (2, 3), 4
    options = DecodeOptions(beam=400, max_len=most + 1, length_penalty=0.0)
    chain = Chain(seed, n_rows((phrase,), options))
    every = [ids for n in range(most + 1) for ids in itertools.product(range(2, N), repeat=n)]
    best = max((chain.total(ids), ids) for ids in every if contains(list(ids), phrase))
    found = phrase_search(chain, torch.tensor([[START]]), (phrase,), options, END)
    short = [h for h in found if len(h.ids) <= most and START not in h.ids]
    assert found[0].score >= best[0] - 1e-4
    assert not short or short[0].score == pytest.approx(best[0], abs=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_without_phrases_it_is_the_plain_beam(seed: int) -> None:
    options = DecodeOptions(beam=4, nbest=4, max_len=12)
    plain = beam_search(Chain(seed, 4), torch.tensor([[START]]), options, END)[0]
    found = phrase_search(Chain(seed, 4), torch.tensor([[START]]), (), options, END)
    assert [h.ids for h in found] == [h.ids for h in plain]
    assert [h.score for h in found] == pytest.approx([h.score for h in plain], abs=1e-5)


def test_a_phrase_that_is_broken_off_must_be_said_anew() -> None:
    wanted = Wanted.of([(5, 6, 7)]).after(5).after(6)
    assert wanted.n_missing == 1
    assert wanted.after(9).n_missing == 3
    assert wanted.after(5).n_missing == 2
    assert wanted.after(7).n_missing == 0


def test_a_phrase_that_begins_anew_in_itself_goes_on_from_there() -> None:
    assert Wanted.of([(5, 5, 6)]).after(5).after(5).after(5).after(6).n_missing == 0


def test_phrases_may_overlap_and_one_may_hold_another() -> None:
    overlapping = Wanted.of([(5, 6), (6, 7), (6,), (6,)])
    assert overlapping.n_missing == 5
    assert overlapping.after(5).after(6).after(7).n_missing == 0


@given(wanted=phrases, said=st.lists(tokens, max_size=12))
def test_what_is_missing_is_enough_and_nothing_is_missing_once_all_is_said(
    wanted: tuple[tuple[int, ...], ...], said: list[int]
) -> None:
    state = reduce(Wanted.after, said, Wanted.of(wanted))
    assert bool(state.left) is not all(contains(said, phrase) for phrase in wanted)
    for _ in range(state.n_missing):  # whoever says what is furthest comes to the end in time
        if state.left:
            state = min((state.after(token) for token in state.next_ids()), key=lambda after: after.n_missing)
    assert not state.left


@pytest.mark.parametrize("seed", range(5))
def test_a_prefix_counts_as_in_the_plain_beam(seed: int) -> None:
    options = DecodeOptions(beam=4, nbest=4, max_len=12, no_repeat=3)
    prefix = torch.tensor([[START, 3, 4]])
    plain = beam_search(Chain(seed, 4), prefix, options, END)[0]
    for given_phrases in ((), ((3, 4),)):  # what the prefix says is not asked for again
        found = phrase_search(Chain(seed, n_rows(given_phrases, options)), prefix, given_phrases, options, END)
        assert [h.ids for h in found] == [h.ids for h in plain]
        assert [h.score for h in found] == pytest.approx([h.score for h in plain], abs=1e-5)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), wanted=phrases, beam=st.integers(1, 4), more=st.integers(0, 2))
def test_no_answer_is_longer_than_allowed(seed: int, wanted: tuple[tuple[int, ...], ...], beam: int, more: int) -> None:
    options = DecodeOptions(beam=beam, nbest=beam, max_len=Wanted.of(wanted).n_missing + more)
    found = phrase_search(Chain(seed, n_rows(wanted, options)), torch.tensor([[START]]), wanted, options, END)
    assert found
    assert all(len(h.ids) <= options.max_len and contains(h.ids, phrase) for h in found for phrase in wanted)


def test_what_cannot_be_said_is_refused() -> None:
    chain, start = Chain(0, 100), torch.tensor([[START]])
    with pytest.raises(UserError, match="have 3 tokens, but the answer may have no more than 2"):
        phrase_search(chain, start, ((2, 3, 4),), DecodeOptions(max_len=2), END)
    with pytest.raises(UserError, match="No answer was found"):
        phrase_search(chain, start, ((2, 2),), DecodeOptions(max_len=9, no_repeat=1), END)
