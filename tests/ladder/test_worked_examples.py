"""Every figure of the teaching examples from counting to attention, out of fitted rungs and real matrices."""

from collections import Counter

import numpy as np
import pytest
import torch

from glassformer.ladder.markov import Markov
from glassformer.ladder.onehot import OneHotAttention
from glassformer.ladder.skips import MaskedSkips, Skips
from glassformer.model import DecoderOnly
from glassformer.model.settings import DecoderOnlySettings, TokensSettings
from tests.builders import stack

SHOW = [f"show me my {what} please".split() for what in ("directories", "files", "photos")]
SHARES = [0.2, 0.3, 0.5]
CHECK = [
    ["check", "whether", "the", "battery", "ran", "down", "please"],
    ["check", "whether", "the", "program", "ran", "please"],
]
PROGRAM = ["check", "the", "program", "log", "and", "find", "out", "whether", "it", "ran", "please"]
BATTERY = ["check", "the", "battery", "log", "and", "find", "out", "whether", "it", "ran", "down", "please"]
UNTIL_RAN = {"program": PROGRAM[:10], "battery": BATTERY[:10]}


def with_scores(rung_row: np.ndarray, vocabulary: tuple[str, ...]) -> dict[str, float]:
    """The words of a row that have a score."""
    return {word: pytest.approx(float(s)) for word, s in zip(vocabulary, rung_row, strict=True) if s}


# 1. One-hot


def test_words_are_one_hot_rows() -> None:
    rung = OneHotAttention().fit([["find", "my", "files"]])
    one_hot = rung.matrices(["find", "my", "files"])["one-hot"]
    assert one_hot.columns == ("files", "find", "my")
    assert (one_hot.values.argmax(axis=1) + 1).tolist() == [2, 3, 1]
    assert one_hot.values.tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]


def test_dot_products_of_one_hots() -> None:
    find, my, files = (
        OneHotAttention().fit([["find", "my", "files"]]).matrices(["find", "my", "files"])["one-hot"].values
    )
    for word in (find, my, files):
        assert word @ word == 1
    assert find @ my == my @ files == files @ find == 0
    mix = 0.2 * find + 0.7 * my + 0.1 * files
    assert [mix @ find, mix @ my, mix @ files] == pytest.approx([0.2, 0.7, 0.1])


def test_one_hots_times_a_matrix_pull_rows_out() -> None:
    rung = OneHotAttention().fit([["a", "b", "c", "d"]])
    pick = rung.matrices(["a", "d", "c"])["one-hot"].values  # ones in columns 1, 4, 3
    matrix = np.arange(20.0).reshape(4, 5)
    np.testing.assert_array_equal(pick @ matrix, matrix[[0, 3, 2]])


# 2. First order


def test_first_order() -> None:
    rung = Markov(1).fit(SHOW, SHARES)
    table = rung.table()
    assert with_scores(table.row("my"), rung.vocabulary) == {"directories": 0.2, "files": 0.3, "photos": 0.5}
    assert not table.row("please").any()
    for word in set(rung.vocabulary) - {"my", "please"}:
        assert sorted(table.row(word)) == [0] * 6 + [1]
    assert table.values.shape == (7, 7)


# 3. First against second order


def test_first_order_forgets_what_ran() -> None:
    rung = Markov(1).fit(CHECK, [0.4, 0.6])
    table = rung.table()
    assert with_scores(table.row("ran"), rung.vocabulary) == {"down": 0.4, "please": 0.6}
    assert with_scores(table.row("the"), rung.vocabulary) == {"battery": 0.4, "program": 0.6}


def test_second_order_remembers() -> None:
    rung = Markov(2).fit(CHECK, [0.4, 0.6])
    table = rung.table()
    assert with_scores(table.row("battery ran"), rung.vocabulary) == {"down": 1}
    assert with_scores(table.row("program ran"), rung.vocabulary) == {"please": 1}
    assert with_scores(table.row("whether the"), rung.vocabulary) == {"battery": 0.4, "program": 0.6}
    fractions = [name for name in table.rows if ((table.row(name) > 0) & (table.row(name) < 1)).any()]
    assert fractions == ["whether the"]
    assert rung.n_rows == len(rung.vocabulary) ** 2 == 64


# 4. Second order with skips


def test_skips_vote() -> None:
    rung = Skips().fit([PROGRAM, BATTERY])
    assert len(rung.vocabulary) == 13
    assert rung.kind == "votes"
    rows = rung.table("ran")
    assert len(rows.rows) == 10
    for name in rows.rows:
        expected = {"battery … ran": (1, 0), "program … ran": (0, 1)}.get(name, (0.5, 0.5))
        assert (rows[name, "down"], rows[name, "please"]) == expected
    program, battery = rung.predict(UNTIL_RAN["program"]), rung.predict(UNTIL_RAN["battery"])
    assert (program["down"], program["please"]) == (4, 5)
    assert (battery["down"], battery["please"]) == (5, 4)
    assert len(rung.explain(UNTIL_RAN["program"]).reasons) == 9


# 5. Masking


@pytest.mark.parametrize("weights", [None, [0.5, 0.5], [100, 100]])
def test_the_mask_that_is_found_keeps_two_pairs(weights: list[float] | None) -> None:
    rung = MaskedSkips().fit([PROGRAM, BATTERY], weights)
    assert rung.table("ran").rows == ("battery … ran", "program … ran")
    program, battery = rung.predict(UNTIL_RAN["program"]), rung.predict(UNTIL_RAN["battery"])
    assert (program["down"], program["please"]) == (0, 1)
    assert (battery["down"], battery["please"]) == (1, 0)


# 6. Attention as a lookup


@pytest.mark.parametrize("what", ["program", "battery"])
def test_a_one_hot_query_pulls_out_its_mask(what: str) -> None:
    rung = OneHotAttention().fit([PROGRAM, BATTERY])
    m = rung.matrices(UNTIL_RAN[what])
    assert with_scores(m["query"].values[0], rung.vocabulary) == {"ran": 1}
    looked_up = m["query"].values @ m["keys"].values.T
    np.testing.assert_array_equal(looked_up[0], rung.skips.mask().row("ran"))
    assert with_scores(looked_up[0], rung.vocabulary) == {"battery": 1, "program": 1}
    assert with_scores(m["attended"].values[0], rung.vocabulary) == {what: 1}


# 7. Pairs by a feed-forward layer


@pytest.mark.parametrize(
    ("what", "other", "follows"), [("battery", "program", "down"), ("program", "battery", "please")]
)
def test_pairs_by_a_feed_forward_layer(what: str, other: str, follows: str) -> None:
    rung = OneHotAttention().fit([PROGRAM, BATTERY])
    m = rung.matrices(UNTIL_RAN[what])
    this_pair, other_pair = f"{what} … ran", f"{other} … ran"
    assert (m["sums"]["sums", this_pair], m["sums"]["sums", other_pair]) == (1, -1)
    assert (m["features"]["features", this_pair], m["features"]["features", other_pair]) == (1, 0)

    # The same with the four inputs alone: battery, program, ran and the bias.
    inputs = ["battery …", "program …", "… ran", "bias"]
    weights = np.array([[m["pair weights"][row, pair] for pair in (this_pair, other_pair)] for row in inputs])
    given = np.array([what == "battery", what == "program", 1, 1], dtype=float)
    assert (given @ weights).tolist() == [1, -1]
    features = np.maximum(0, given @ weights)
    votes = features @ np.array([m["transitions"].row(pair) for pair in (this_pair, other_pair)])
    assert with_scores(votes, rung.vocabulary) == {follows: 1}
    assert with_scores(rung.predict(UNTIL_RAN[what]).scores, rung.vocabulary) == {follows: 1}


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("sentence", [PROGRAM, BATTERY])
def test_matrices_give_the_numbers_of_the_skip_rungs(masked: bool, sentence: list[str]) -> None:
    dense = OneHotAttention(masked).fit([PROGRAM, BATTERY])
    sparse = (MaskedSkips() if masked else Skips()).fit([PROGRAM, BATTERY])
    for n in range(len(sentence) + 1):
        np.testing.assert_array_equal(dense.predict(sentence[:n]).scores, sparse.predict(sentence[:n]).scores)


# 8. Completion


@pytest.mark.parametrize("rung", [MaskedSkips(), OneHotAttention()], ids=["skips", "matrices"])
def test_completion_takes_the_highest_value_again_and_again(rung: MaskedSkips | OneHotAttention) -> None:
    rung.fit([PROGRAM, BATTERY])
    assert rung.complete(["check", "the", "program"], 20) == PROGRAM
    assert rung.complete(["check", "the", "battery"], 20) == BATTERY
    assert rung.complete(["check", "the", "battery"], 2) == BATTERY[:5]


def test_completion_draws_by_softmax() -> None:
    rung = Markov(1).fit(SHOW, SHARES)
    assert rung.complete(["show"], 9) == ["show", "me", "my", "photos", "please"]
    drawn = Counter(rung.complete(["show", "me", "my"], 1, sample=True, seed=seed)[-1] for seed in range(1000))
    for what, share in zip(("directories", "files", "photos"), SHARES, strict=True):
        assert drawn[what] / 1000 == pytest.approx(share, abs=0.05)


# 9. Why embeddings


def test_pairs_of_a_large_vocabulary_do_not_fit_anywhere() -> None:
    rung = Markov(2).fit([[f"word {i}" for i in range(50_000)]])
    assert rung.n_rows == 2_500_000_000
    assert rung.n_elements > 100 * 10**12
    with torch.device("meta"):  # shapes without the memory
        model = DecoderOnly(DecoderOnlySettings(decoder=stack(d_model=512), source=TokensSettings(vocab_size=50_000)))
    assert model.source.embedding.weight.shape == (50_000, 512)
    assert model.head.w.weight.T.shape == (512, 50_000)
    assert rung.n_elements / model.source.embedding.weight.numel() > 1_000_000


def test_de_embedding_gives_dense_scores_and_may_share_its_weights() -> None:
    torch.manual_seed(1)
    n_words, ids = 13, torch.tensor([[3, 1, 4, 12]])
    model = DecoderOnly(DecoderOnlySettings(decoder=stack(), source=TokensSettings(vocab_size=n_words))).eval()
    table = model.source.embedding.weight
    assert model.head.w.weight is table  # tied
    one_hot = torch.nn.functional.one_hot(ids, n_words).float()
    torch.testing.assert_close(one_hot @ table, model.source.embedding(ids))  # n × N times N × d_model
    scores = model(ids)
    assert scores.shape == (1, 4, n_words)
    assert (scores != 0).all()
    torch.testing.assert_close(scores.softmax(-1).sum(-1), torch.ones(1, 4))
    assert torch.equal(scores.argmax(-1), scores.softmax(-1).argmax(-1))
