"""Answers that must contain phrases: always complete, never worse than need be, and the plain beam without phrases."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from glassformer.decode.beam import beam_search
from glassformer.decode.options import DecodeOptions
from glassformer.decode.phrases import Wanted, phrase_search

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
    found = phrase_search(Chain(seed, beam), torch.tensor([[START]]), wanted, options, END)
    assert found
    assert all(contains(h.ids, phrase) for h in found for phrase in wanted)


@pytest.mark.parametrize("seed", range(10))
def test_a_wide_beam_finds_the_best_answer_with_the_phrase(seed: int) -> None:
    phrase, most = (2, 3), 4
    options = DecodeOptions(beam=400, max_len=most + 1, length_penalty=0.0)
    chain = Chain(seed, 400)
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
    wanted = Wanted(((5, 6, 7),)).after(5).after(6)
    assert wanted.n_missing == 1
    assert wanted.after(9).n_missing == 3
    assert wanted.after(5).n_missing == 2
    assert wanted.after(7).n_missing == 0
