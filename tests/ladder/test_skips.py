"""Votes of pairs against plain dictionaries, and a mask that finds the pairs that matter in data with noise."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import UserError
from glassformer.ladder import skips
from glassformer.ladder.skips import MaskedSkips, Skips

texts = st.lists(st.text(alphabet="abcd", max_size=10), min_size=1, max_size=6).filter(any)
NOISE = [f"n{i}" for i in range(40)]


def noisy(n: int, seed: int) -> list[list[str]]:
    """After "then" comes up if "plus" came earlier, down if "minus" did; all other words are chance."""
    rng = np.random.default_rng(seed)
    sequences = []
    for _ in range(n):
        key = str(rng.choice(["plus", "minus"]))
        words = [*rng.choice(NOISE, size=10), key, *rng.choice(NOISE, size=10)]
        sequences.append([*map(str, words), "then", "up" if key == "plus" else "down"])
    return sequences


@given(texts, st.text(alphabet="abcde", max_size=6))
def test_votes_are_those_of_dictionaries(sequences: list[str], prefix: str) -> None:
    pairs: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    alone: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sequence in sequences:
        for i in range(1, len(sequence)):
            alone[sequence[i - 1]][sequence[i]] += 1
            for earlier in set(sequence[: i - 1]):
                pairs[earlier, sequence[i - 1]][sequence[i]] += 1
    rows = [pairs[earlier, prefix[-1]] for earlier in set(prefix[:-1])]
    rows = [row for row in rows if row] or ([alone[prefix[-1]]] if prefix else [])
    rung = Skips().fit(sequences)
    expected = [sum(row[word] / max(1, row.total()) for row in rows) for word in rung.vocabulary]
    np.testing.assert_allclose(rung.predict(prefix).scores, expected, atol=1e-12)


def test_a_word_that_came_twice_makes_one_pair() -> None:
    rung = Skips().fit(["xxay", "zaw"])
    assert [reason.name for reason in rung.explain("xxxa").reasons] == ["x … a"]
    assert rung.predict("xxa")["y"] == 1


def test_rows_by_name() -> None:
    rung = Skips().fit([["a", "b", "c"], ["a", "b", "d"], ["x", "b", "c"]])
    assert rung.row("a", "b").tolist() == [0, 0, 0.5, 0.5, 0]
    assert rung.row("b", "a").tolist() == [0] * 5
    assert rung.row("a", "unheard").tolist() == [0] * 5
    table = rung.table("b")
    assert table.rows == ("a … b", "x … b")
    assert table["x … b", "c"] == 1
    assert rung.table().rows == table.rows
    assert rung.table("c").rows == ()


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_mask_keeps_what_matters_and_drops_what_is_chance(seed: int) -> None:
    sequences = noisy(150, seed)
    assert len(Skips().fit(sequences).table("then").rows) == len(NOISE) + 2
    assert MaskedSkips().fit(sequences).table("then").rows == ("minus … then", "plus … then")


def test_mask_makes_the_votes_right_on_new_data() -> None:
    train, test = noisy(150, 1), noisy(200, 2)

    def share_right(rung: Skips) -> float:
        rung.fit(train)
        return float(np.mean([rung.predict(s[:-1]).top(1)[0][0] == s[-1] for s in test]))

    assert share_right(MaskedSkips()) == 1
    assert share_right(Skips()) < 0.98


def test_reasons_show_the_masked_pairs_with_weight_zero() -> None:
    rung = MaskedSkips().fit(noisy(150, 1))
    reasons = rung.explain(["n1", "plus", "n2", "then"]).reasons
    assert [(reason.name, reason.weight) for reason in reasons] == [
        ("n1 … then", 0),
        ("plus … then", 1),
        ("n2 … then", 0),
    ]


def test_where_no_pair_helps_the_last_word_speaks() -> None:
    rung = MaskedSkips().fit(noisy(150, 1))
    shares = rung.predict(["n1", "n2", "then"])
    assert shares["up"] + shares["down"] == pytest.approx(1)
    assert rung.explain(["n1", "n2", "then"]).reasons[-1].name == "then"
    assert MaskedSkips().fit(["ab"]).predict("").scores.tolist() == [0, 0]


@given(texts)
def test_gains_are_those_of_leaving_each_case_out(sequences: list[str]) -> None:
    cases = [(s[: i - 1], s[i - 1], s[i]) for s in sequences for i in range(1, len(s))]
    rung = MaskedSkips().fit(sequences)
    gains = rung.gains()
    for row, key in enumerate(rung.pairs.keys):
        last, earlier = (rung.vocabulary[i] for i in divmod(int(key), len(rung.vocabulary)))
        alone = [(before, word) for before, at, word in cases if at == last]
        mine = [word for before, word in alone if earlier in before]
        expected = 0.0
        for word in mine:
            others = [w for _, w in alone]
            others.remove(word)
            if word not in mine[: mine.index(word)] + mine[mine.index(word) + 1 :]:
                better = len(set(mine)) / (len(mine) - 1 + len(set(mine)))  # the share alone cancels out
            else:
                share = others.count(word) / len(others)
                pair = (mine.count(word) - 1 + len(set(mine)) * share) / (len(mine) - 1 + len(set(mine)))
                better = pair / share
            expected += np.log(better)
        assert gains[row] == pytest.approx(expected, abs=1e-9)


def test_a_higher_price_keeps_fewer_pairs() -> None:
    kept = [int(MaskedSkips(price=price).fit(noisy(150, 1)).kept.sum()) for price in (-1000, 0, 2, 1000)]
    assert kept == sorted(kept, reverse=True)
    assert kept[0] > kept[1] > kept[2] > kept[3] == 0


def test_few_cases_are_taken_at_their_word() -> None:
    sequences = [["x", "a", "b"], ["y", "a", "c"]]
    assert MaskedSkips().fit(sequences).table("a").rows == ("x … a", "y … a")
    assert MaskedSkips(enough=0).fit(sequences).table("a").rows == ()  # one case each proves nothing
    assert MaskedSkips(enough=0).fit(sequences, [9, 9]).table("a").rows == ("x … a", "y … a")


def test_mask_as_a_matrix() -> None:
    mask = MaskedSkips().fit(noisy(150, 1)).mask()
    assert mask["then", "plus"] == 1
    assert mask["then", "n1"] == 0
    assert mask["plus", "then"] == 0


def test_mistakes_are_named(monkeypatch) -> None:
    monkeypatch.setattr(skips, "MOST_PAIRS", 20)
    with pytest.raises(UserError, match=r"hold 21 pairs"):
        Skips().fit(["abcdefgh"])
    with pytest.raises(UserError, match="5 rows and columns"):
        Skips().fit(["abcde"]).mask()
    with pytest.raises(UserError, match="would have 6 rows"):
        Skips().fit(["abcde"]).table()
