"""Matrix products give the very votes of the skip rungs, for any data."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import UserError
from glassformer.ladder.onehot import OneHotAttention
from glassformer.ladder.skips import MaskedSkips, Skips

texts = st.lists(st.text(alphabet="abcde", max_size=10), min_size=1, max_size=6).filter(any)
PREFIX = ["check", "the", "battery", "log"]
SEQUENCES = [[*PREFIX, "ran"], ["check", "the", "program", "log", "failed"]]


@given(texts, st.text(alphabet="abcdef", max_size=7), st.booleans(), st.sampled_from([1, 30]))
def test_votes_are_those_of_the_skip_rungs(sequences: list[str], prefix: str, masked: bool, weight: int) -> None:
    weights = [weight + 0.5 * i for i in range(len(sequences))]
    dense = OneHotAttention(masked).fit(sequences, weights)
    sparse = (MaskedSkips() if masked else Skips()).fit(sequences, weights)
    np.testing.assert_allclose(dense.predict(prefix).scores, sparse.predict(prefix).scores, atol=1e-12)
    votes = {r.name: r.weight for r in sparse.explain(prefix).reasons if r.weight}
    assert {r.name: r.weight for r in dense.explain(prefix).reasons} == votes


def test_every_matrix_is_the_product_of_those_before() -> None:
    m = {name: matrix.values for name, matrix in OneHotAttention().fit(SEQUENCES).matrices(PREFIX).items()}
    n, n_words = len(PREFIX), 7
    assert m["one-hot"].shape == (n, n_words)
    assert (m["one-hot"].sum(axis=1) == 1).all()
    np.testing.assert_array_equal(m["query"], m["one-hot"][-1:])
    np.testing.assert_array_equal(m["mask"], m["query"] @ m["keys"].T)
    np.testing.assert_array_equal(m["attended"], m["mask"] * m["earlier words"])
    np.testing.assert_array_equal(m["inputs"][0], [*m["attended"][0], *m["query"][0], 1])
    np.testing.assert_array_equal(m["sums"], m["inputs"] @ m["pair weights"])
    np.testing.assert_array_equal(m["features"], np.maximum(0, m["sums"]))
    np.testing.assert_array_equal(m["votes"], m["features"] @ m["transitions"])
    assert m["votes"].sum() == 1


def test_every_matrix_has_a_name_for_each_row_and_column() -> None:
    for matrix in OneHotAttention().fit(SEQUENCES).matrices(PREFIX).values():
        assert matrix.values.shape == (len(matrix.rows), len(matrix.columns))


def test_the_mask_is_looked_up_by_name() -> None:
    rung = OneHotAttention().fit(SEQUENCES)
    assert rung.keys["battery", "log"] == 1
    assert rung.keys["the", "log"] == 0
    assert rung.matrices(PREFIX)["mask"]["log", "battery"] == 1


def test_too_many_words_for_full_matrices_are_named() -> None:
    with pytest.raises(UserError, match="up to 100 words, but the data has 101"):
        OneHotAttention().fit([[f"w{i}" for i in range(101)]])
