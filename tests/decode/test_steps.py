"""Decoders that answer together: the mean of their probabilities, wherever rows go."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.decode.beam import beam_search
from glassformer.decode.options import DecodeOptions
from glassformer.decode.steps import TogetherSteps
from tests.decode.tables import TableSteps, log_p

N_WORDS, END, START = 4, 2, 1
SEEDS = (3, 8, 21)


def together(seeds: tuple[int, ...], n_sentences: int, width: int) -> TogetherSteps:
    return TogetherSteps([TableSteps(n_sentences, width, N_WORDS, seed) for seed in seeds])


def score(sentence: int, words: tuple[int, ...]) -> float:
    """The log-probability of an answer by plain means."""
    steps = [(START, *words[:i]) for i in range(len(words))]
    shares = [np.mean([np.exp(log_p(seed, sentence, fed, N_WORDS)) for seed in SEEDS], axis=0) for fed in steps]
    return float(sum(np.log(share[word]) for share, word in zip(shares, words, strict=True)))


def test_a_step_is_the_mean_of_the_probabilities() -> None:
    found = together(SEEDS, 2, 1).step(torch.tensor([[START], [START]]))
    for sentence in range(2):
        shares = [np.exp(log_p(seed, sentence, (START,), N_WORDS)) for seed in SEEDS]
        assert found[sentence].exp().tolist() == pytest.approx(np.mean(shares, axis=0), abs=1e-6)


def test_a_wide_beam_finds_the_answer_that_is_best_for_all_together() -> None:
    options = DecodeOptions(beam=N_WORDS**2, max_len=3, length_penalty=1.0)
    prefix = torch.full((3, 1), START)
    found = beam_search(together(SEEDS, 3, options.beam), prefix, options, END)
    others = [word for word in range(N_WORDS) if word != END]
    for sentence, best in enumerate(found):
        ended = [(*begin, END) for n in range(3) for begin in itertools.product(others, repeat=n)]
        cut_off = list(itertools.product(others, repeat=3))
        wanted = max([*ended, *cut_off], key=lambda words: score(sentence, words) / len(words))
        assert best[0].ids == [word for word in wanted if word != END]
        assert best[0].score == pytest.approx(score(sentence, wanted) / len(wanted), abs=1e-5)


@given(seed=st.integers(0, 1000), n_copies=st.integers(1, 4), beam=st.integers(1, 4))
def test_copies_of_one_answer_as_one_does(seed: int, n_copies: int, beam: int) -> None:
    options, prefix = DecodeOptions(beam=beam, nbest=beam, max_len=6), torch.full((2, 1), START)
    alone = beam_search(TableSteps(2, beam, N_WORDS, seed), prefix, options, END)
    found = beam_search(together((seed,) * n_copies, 2, beam), prefix, options, END)
    assert [[h.ids for h in each] for each in found] == [[h.ids for h in each] for each in alone]
