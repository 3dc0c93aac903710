"""Rows of one text or two, marked as BERT marks them: compared with Hugging Face's tokenizer."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import BertTokenizerFast

from glassformer.data.framing import Framing
from glassformer.data.labelled_batch import in_order, plan_examples, text_inputs
from glassformer.data.tokenizer import Marks

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"]
BERT = Marks(start=2, ends=(3,))


@pytest.fixture(scope="module")
def bert() -> BertTokenizerFast:
    return BertTokenizerFast(vocab={word: i for i, word in enumerate(WORDS)})


def ids_of(text: str) -> np.ndarray:
    return np.array([WORDS.index(word) for word in text.split()], dtype=np.int64)


@pytest.mark.parametrize("texts", [["a b c"], ["a b", "c"], ["a", "b c d e"], ["a b c d e f g", "h a b c d e f g"]])
@pytest.mark.parametrize("longest", [6, 7, 9, 30])
def test_as_bert_does(bert: BertTokenizerFast, texts: list[str], longest: int) -> None:
    theirs = bert(*texts, truncation="longest_first", max_length=longest)
    ids, types = Framing(BERT, longest).frame([ids_of(text) for text in texts])
    assert ids.tolist() == theirs["input_ids"]
    assert types.tolist() == theirs["token_type_ids"]


@given(
    st.lists(st.lists(st.integers(5, 12), max_size=12), min_size=1, max_size=2),
    st.integers(4, 30),
    st.booleans(),
)
def test_lengths_are_known_before(texts: list[list[int]], longest: int, has_start: bool) -> None:
    framing = Framing(BERT if has_start else Marks(None, (3,)), longest)
    rows = [np.array(ids, dtype=np.int64) for ids in texts]
    ids, types = framing.frame(rows)
    assert len(ids) == len(types) == framing.lengths([np.array([len(row)]) for row in rows])[0] <= longest
    assert (ids == 3).sum() == len(texts)
    assert ids[-1] == 3
    assert (types == 1).any() == (len(texts) == 2)


def test_rows_are_padded_and_padding_is_marked() -> None:
    inputs = text_inputs([[ids_of("a b"), ids_of("c")], [ids_of("a"), ids_of("b")]], Framing(BERT, 20), with_types=True)
    assert inputs.source.tolist() == [[2, 5, 6, 3, 7, 3], [2, 5, 3, 6, 3, 0]]
    assert inputs.keep is not None
    assert inputs.keep.sum(dim=1).tolist() == [6, 5]
    assert inputs.types is not None
    assert inputs.types.tolist() == [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0]]
    even = text_inputs([[ids_of("a")], [ids_of("b")]], Framing(BERT, 20), with_types=False)
    assert even.keep is None
    assert even.types is None


@given(st.lists(st.integers(1, 40), min_size=1, max_size=300), st.integers(1, 40), st.integers(40, 200))
def test_every_example_once_and_within_bounds(lengths: list[int], n_rows: int, budget: int) -> None:
    widths = np.array(lengths)
    batches = plan_examples(widths, n_rows, budget, seed=1, epoch=3)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) <= n_rows
        assert len(batch) == 1 or widths[batch].max() * len(batch) <= budget
    again = plan_examples(widths, n_rows, budget, seed=1, epoch=3)
    assert all(a.tolist() == b.tolist() for a, b in zip(batches, again, strict=True))


def test_in_order_keeps_the_order() -> None:
    rows = np.array([4, 2, 0, 1, 3])
    assert np.concatenate(in_order(rows, np.array([1, 2, 3, 4, 5]), 2, 100)).tolist() == rows.tolist()
