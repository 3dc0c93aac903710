"""Drawing: the right frequencies, the same again with the same seed, a batch as its rows alone."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from glassformer.decode.filters import keep_min_p, keep_top_k, keep_top_p
from glassformer.decode.options import DecodeOptions, Hypothesis
from glassformer.decode.sample import sample_search
from tests.decode.tables import TableSteps, log_p

END, START = 0, 1
N_DRAWS = 3000
SCORES = torch.tensor([0.3, -1.0, 1.2, 0.0, 2.0, -2.5])
# What a sum of squares over 1 … 5 degrees of freedom exceeds once in a thousand times.
CHI_SQUARE = {1: 10.83, 2: 13.82, 3: 16.27, 4: 18.47, 5: 20.52}


class SameEveryTime:
    """Offers the same scores to every row."""

    def step(self, ids: Tensor) -> Tensor:
        return SCORES.expand(len(ids), -1)

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        raise AssertionError("drawing never moves rows")


def search(
    options: DecodeOptions, seeds: list[int], table: int = 0, first: int = 0, prefix: tuple[int, ...] = ()
) -> list[list[Hypothesis]]:
    n = len(seeds) // options.nbest
    steps = TableSteps(first + n, options.nbest, 6, table)
    steps.rows = steps.rows[first * options.nbest :]
    return sample_search(steps, torch.tensor([[START, *prefix]] * n), options, END, seeds)


@pytest.mark.parametrize(
    "options",
    [
        DecodeOptions(sample=True, max_len=1),
        DecodeOptions(sample=True, max_len=1, temperature=0.5),
        DecodeOptions(sample=True, max_len=1, temperature=3.0),
        DecodeOptions(sample=True, max_len=1, top_k=3),
        DecodeOptions(sample=True, max_len=1, top_p=0.8),
        DecodeOptions(sample=True, max_len=1, min_p=0.15, temperature=1.5),
        DecodeOptions(sample=True, max_len=1, top_k=4, top_p=0.9, min_p=0.05),
    ],
    ids=["plain", "cold", "hot", "top-k", "top-p", "min-p", "all"],
)
def test_words_come_as_often_as_they_should(options: DecodeOptions) -> None:
    starts = torch.full((N_DRAWS, 1), START)
    drawn = sample_search(SameEveryTime(), starts, options, END, list(range(N_DRAWS)))
    counts = Counter(answers[0].ids[0] if answers[0].ids else END for answers in drawn)
    narrowed = keep_top_k(SCORES[None] / options.temperature, options.top_k)
    expected = N_DRAWS * keep_min_p(keep_top_p(narrowed, options.top_p), options.min_p).softmax(dim=-1)[0].double()
    possible = [word for word in range(6) if expected[word] > 0]
    assert set(counts) <= set(possible)
    statistic = sum((counts[word] - float(expected[word])) ** 2 / float(expected[word]) for word in possible)
    assert statistic < CHI_SQUARE[len(possible) - 1]


def test_the_smallest_temperature_is_greedy() -> None:
    cold = search(DecodeOptions(sample=True, temperature=1e-4, max_len=8), list(range(20)))
    for sentence, (answer,) in enumerate(cold):
        words = [*answer.ids, END] if len(answer.ids) < 8 else answer.ids
        for i, word in enumerate(words):
            assert word == log_p(0, sentence, (START, *words[:i]), 6).argmax()


def test_the_same_seed_draws_the_same() -> None:
    options = DecodeOptions(sample=True, nbest=3, max_len=10)
    seeds = list(range(30))
    assert search(options, seeds) == search(options, seeds)
    assert search(options, seeds) != search(options, [seed + 1000 for seed in seeds])


def test_a_batch_draws_as_its_rows_alone() -> None:
    options = DecodeOptions(sample=True, nbest=2, max_len=10, no_repeat=2, temperature=1.3)
    seeds = [int(seed) for seed in np.random.default_rng(0).integers(0, 1 << 30, size=16)]
    alone = [search(options, seeds[2 * s : 2 * s + 2], first=s)[0] for s in range(8)]
    assert search(options, seeds) == alone


@given(seed=st.integers(0, 10_000), max_len=st.integers(1, 6), penalty=st.sampled_from([0.0, 1.0]))
def test_scores_are_the_models_own(seed: int, max_len: int, penalty: float) -> None:
    options = DecodeOptions(
        sample=True, nbest=2, max_len=max_len, length_penalty=penalty, temperature=0.7, top_k=3, seed=seed
    )
    for sentence, answers in enumerate(search(options, list(range(seed, seed + 6)), seed, prefix=(2,))):
        assert answers[0].score >= answers[1].score
        for h in answers:
            assert len(h.ids) <= max_len
            words = [*h.ids, END] if len(h.ids) < max_len else h.ids
            total = sum(log_p(seed, sentence, (START, 2, *words[:i]), 6)[w] for i, w in enumerate(words))
            assert h.score == pytest.approx(total / (1 + len(words)) ** penalty, abs=1e-4)


def test_no_repeat_holds_for_drawing_too() -> None:
    for answers in search(DecodeOptions(sample=True, no_repeat=1, max_len=12), list(range(40)), prefix=(3,)):
        assert len(set(answers[0].ids)) == len(answers[0].ids)
        assert 3 not in answers[0].ids
