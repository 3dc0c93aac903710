"""Every score equals scikit-learn's or scipy's on the same answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics

from glassformer.tasks.classify_scores import calibrate, confusion, intervals, measure, pearson, ranks, spearman


def one_hot(said: list[int], n: int) -> np.ndarray:
    return np.eye(n)[said]


labelled = st.integers(2, 5).flatmap(
    lambda c: st.tuples(
        st.just(c), st.lists(st.tuples(st.integers(0, c - 1), st.integers(0, c - 1)), min_size=2, max_size=60)
    )
)


@given(labelled)
def test_one_class(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    c, pairs = drawn
    true, said = (list(side) for side in zip(*pairs, strict=True))
    found = measure("class", one_hot(said, c), np.array(true))
    present = sorted({*true, *said})
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(true, said))
    assert found["f1"] == pytest.approx(metrics.f1_score(true, said, labels=present, average="macro", zero_division=0))
    if len(present) > 1:  # scikit-learn warns where all are the same
        assert found["matthews"] == pytest.approx(metrics.matthews_corrcoef(true, said))
    if c == 2:
        assert found["f1_binary"] == pytest.approx(metrics.f1_score(true, said, zero_division=0, labels=[0, 1]))
    theirs = metrics.confusion_matrix(true, said, labels=list(range(c)))
    assert confusion(np.array(true), np.array(said), c).tolist() == theirs.tolist()


def test_many_classes() -> None:
    random = np.random.default_rng(0)
    true, said = (random.random((200, 6)) < 0.3 for _ in range(2))
    found = measure("classes", said.astype(float), true.astype(np.float32))
    assert found["f1"] == pytest.approx(metrics.f1_score(true, said, average="macro", zero_division=0))
    assert found["f1_micro"] == pytest.approx(metrics.f1_score(true, said, average="micro"))
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(true, said))


@given(st.lists(st.tuples(st.integers(-5, 5), st.floats(-3, 3, width=16)), min_size=3, max_size=50))
def test_numbers(pairs: list[tuple[int, float]]) -> None:
    a, b = (np.array(side, dtype=np.float64) for side in zip(*pairs, strict=True))
    assert ranks(a).tolist() == stats.rankdata(a).tolist()
    if len(set(a)) > 1 and b.std() > 1e-2:
        assert pearson(a, b) == pytest.approx(stats.pearsonr(a, b).statistic, abs=1e-9)
        assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-9)
    assert measure("number", a, b)["mean_error"] == pytest.approx(metrics.mean_absolute_error(a, b))


def test_no_spread_is_no_correlation() -> None:
    assert measure("number", np.ones(4), np.arange(4.0))["pearson"] == 0.0
    assert measure("class", one_hot([0, 0, 0], 2), np.array([0, 1, 0]))["matthews"] == 0.0


def test_calibration_by_hand() -> None:
    """Two answers at 0.6 of which one is right, two at 0.95 that are both right: (2·0.1 + 2·0.05) / 4."""
    sure = np.array([[0.6, 0.4], [0.4, 0.6], [0.95, 0.05], [0.05, 0.95]])
    found = calibrate(sure, np.array([0, 0, 0, 1]))
    assert found.error == pytest.approx((2 * 0.1 + 2 * 0.05) / 4)
    assert [(b.n, b.accuracy) for b in found.bins] == [(2, 0.5), (2, 1.0)]


def test_intervals_have_the_width_that_theory_gives() -> None:
    """The 95 % interval of a share p of n is 1.96 √(p (1 - p) / n) wide on each side."""
    n, p = 1000, 0.8
    right = np.arange(n) < p * n
    half = intervals(lambda rows: {"share": float(right[rows].mean())}, n)["share"]
    assert half == pytest.approx(1.96 * np.sqrt(p * (1 - p) / n), rel=0.1)
