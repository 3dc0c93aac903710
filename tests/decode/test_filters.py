"""Each filter against its definition, in numpy."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.decode.filters import forbid_repeats, keep_min_p, keep_top_k, keep_top_p

ROWS = st.integers(0, 10_000).map(lambda seed: np.random.default_rng(seed).normal(size=(3, 7)).astype(np.float32) * 2)


def kept(scores: torch.Tensor) -> np.ndarray:
    return ~scores.isneginf().numpy()


def softmax(row: np.ndarray) -> np.ndarray:
    e = np.exp(row.astype(np.float64) - row.max())
    return e / e.sum()


@given(rows=ROWS, k=st.integers(0, 9))
def test_top_k(rows: np.ndarray, k: int) -> None:
    after = keep_top_k(torch.tensor(rows), k)
    for row, keep in zip(rows, kept(after), strict=True):
        assert set(np.flatnonzero(keep)) == set(np.argsort(-row)[: k or 7])
    assert torch.equal(after[torch.tensor(kept(after))], torch.tensor(rows)[torch.tensor(kept(after))])


@given(rows=ROWS, p=st.floats(0.01, 1.0))
def test_top_p(rows: np.ndarray, p: float) -> None:
    for row, keep in zip(rows, kept(keep_top_p(torch.tensor(rows), p)), strict=True):
        order, chosen, mass = np.argsort(-row), [], 0.0
        for word in order:
            chosen.append(word)
            mass += softmax(row)[word]
            if mass >= p - 1e-6:
                break
        # Where the mass reaches p but for rounding, one word more is as right.
        assert set(np.flatnonzero(keep)) - set(chosen) <= set(order[len(chosen) : len(chosen) + (mass < p + 1e-6)])
        assert set(chosen) <= set(np.flatnonzero(keep))


@given(rows=ROWS, p=st.floats(0.0, 0.99))
def test_min_p(rows: np.ndarray, p: float) -> None:
    for row, keep in zip(rows, kept(keep_min_p(torch.tensor(rows), p)), strict=True):
        share = softmax(row) / softmax(row).max()
        sure = np.abs(share - p) > 1e-6
        assert (keep == (share >= p))[sure].all()
        assert keep[row.argmax()]


def test_a_filter_never_takes_all() -> None:
    flat = torch.zeros(2, 4)
    for after in (keep_top_k(flat, 1), keep_top_p(flat, 1e-9), keep_min_p(flat, 0.999)):
        assert kept(after).any(axis=1).all()


@given(st.integers(0, 10_000), st.integers(0, 4), st.integers(0, 8))
def test_forbid_repeats(seed: int, n: int, length: int) -> None:
    random = np.random.default_rng(seed)
    history = random.integers(0, 3, size=(4, length))
    after = kept(forbid_repeats(torch.zeros(4, 3), torch.tensor(history), n))
    for past, keep in zip(history.tolist(), after, strict=True):
        for word in range(3):
            gram = tuple([*past, word][-n:]) if n else ()
            seen = {tuple(past[i : i + n]) for i in range(length - n + 1)} if n else set()
            assert keep[word] == (n == 0 or len(past) + 1 < n or gram not in seen)
