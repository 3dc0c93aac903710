"""A search bound to a tree finds the best of its sentences, and nothing else."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.decode.beam import beam_search
from glassformer.decode.options import DecodeOptions
from glassformer.decode.tree import TreeSteps, build_tree
from tests.decode import tables

END, N = 2, 6
SENTENCES = st.lists(st.lists(st.sampled_from([1, 3, 4, 5]), max_size=3), min_size=1, max_size=6)


@given(SENTENCES, st.integers(0, 50))
def test_the_best_sentence_of_the_tree(sentences: list[list[int]], seed: int) -> None:
    steps = TreeSteps(tables.TableSteps(1, 8, N, seed), build_tree(sentences, END), 8)
    options = DecodeOptions(beam=8, nbest=8, length_penalty=0.0, max_len=4)
    found = beam_search(steps, torch.tensor([[1]]), options, END, normalise=False)[0]

    def score(ids: list[int]) -> float:
        path = (1, *ids, END)
        return sum(float(tables.log_p(seed, 0, path[:i], N)[path[i]]) for i in range(1, len(path)))

    assert found[0].score == pytest.approx(max(map(score, sentences)), abs=1e-4)
    allowed = {tuple(ids) for ids in sentences}
    assert {tuple(h.ids) for h in found} <= allowed
    assert len({tuple(h.ids) for h in found}) == len(found)


def test_equal_beginnings_share_a_branch() -> None:
    tree = build_tree([[3, 4], [3, 5], [3]], END)
    assert list(tree.branches) == [3]
    assert sorted(tree.branches[3].branches) == sorted([4, 5, END])
