"""Labels tell what they are: one class, many, or a number; slips of the pen are named with their place."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.data.labels import Labels, describe_labels, find_labels, refuse_rare
from glassformer.errors import UserError


def where(i: int) -> str:
    return f"data.tsv line {i + 2}"


def test_classes_are_sorted_and_numbers_by_size() -> None:
    labels = find_labels(["10", "9", "10", "9"], where)
    assert labels == Labels("class", ("9", "10"))
    assert labels.encode(["10", "9"], where).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (["1", "2", "1", "3"], "class"),
        (["1.5", "2", "1", "3"], "number"),
        ([str(i) for i in range(30)], "number"),
        (["a|b", "a", "b", "a|b", "b|a"], "classes"),
        (["a,b", "a", "b", "b,a"], "classes"),
        (["pos", "neg", "neg;short", "pos;short"] * 9, "classes"),
        (["yes; maybe", "yes", "no"] * 9, "class"),
        ([f"{a};{b}" for a in "abc" for b in "xyz"], "class"),  # always two: one name in two halves
        (["pos", "neg"] * 20 + ["neg;pos"], "class"),  # a slip of the pen
        (["Paris, France", "Rome, Italy", "Paris, France"], "class"),
        (["nan", "1", "nan", "1"], "class"),
        ([("a",), ("a", "b"), ()], "classes"),
        ([str(i) for i in range(100)] * 4, "class"),
        ([str(i) for i in range(1, 78)] * 4, "class"),
        ([str(i) for i in range(100)] * 3, "number"),
        ([str(i) for i in range(2, 100)] * 9, "number"),
        ([str(i) for i in range(100) if i != 50] * 9, "number"),
        (["0,5", "1,5", "0,25", "5,0", "1,0"], "number"),
        (["1,200", "3,500", "1,200", "3,500"], "class"),
        (["1,2", "2,3", "1", "3", "1,2,3"], "classes"),
    ],
)
def test_kind_is_found(raw: list[str], kind: str) -> None:
    assert find_labels(raw, where).kind == kind


def test_decimal_commas_are_read_and_what_may_be_thousands_is_refused() -> None:
    numbers = ["0,5", "-1,25", "0,125", "10,0"]
    assert find_labels(numbers, where).encode(numbers, where).tolist() == [0.5, -1.25, 0.125, 10.0]
    with pytest.raises(UserError, match=r"line 3 has the label '1,200', which is no number.*nothing between thousands"):
        find_labels(["900", "1,200"], where, kind="number")
    assert find_labels(["1,2", "2,3"], where, kind="classes", separator=",").names == ("1", "2", "3")


def test_kind_can_be_said() -> None:
    assert find_labels(["1", "2", "5"], where, kind="number").encode(["5"], where).tolist() == [5.0]
    assert find_labels(["1.5", "2.5"], where, kind="class").names == ("1.5", "2.5")
    assert find_labels(["a+b", "c"], where, kind="classes", separator="+").names == ("a", "b", "c")


@given(
    st.lists(st.sets(st.sampled_from("abcd"), min_size=1), min_size=2).filter(
        lambda rows: len(set(map(frozenset, rows))) > 1
    )
)
def test_many_classes_as_zeros_and_ones(rows: list[set[str]]) -> None:
    raw = ["|".join(sorted(row)) for row in rows]
    labels = find_labels(raw, where, kind="classes", separator="|")
    table = labels.encode(raw, where)
    assert [{labels.names[i] for i in np.flatnonzero(row)} for row in table] == rows


def test_all_equal() -> None:
    with pytest.raises(UserError, match=r"All 3 labels are the same \('x'\), from data.tsv line 2 to data.tsv line 4"):
        find_labels(["x", "x", "x"], where)
    with pytest.raises(UserError, match="are the same"):
        find_labels(["1.5", "1.50"], where, kind="number")


def test_a_class_seen_once() -> None:
    raw = ["good", "bad", "good", "baad", "bad"]
    with pytest.raises(UserError, match=r"data.tsv line 5 has the label 'baad', which no other line has"):
        refuse_rare(find_labels(raw, where), raw, where)
    many = ["a|b", "a", "b|c", "a"]
    with pytest.raises(UserError, match="line 4 has the label 'c'"):
        refuse_rare(find_labels(many, where), many, where)
    texts = [f"text {i}" for i in range(9)]
    with pytest.raises(UserError, match="nearly every label is different"):
        refuse_rare(find_labels(texts, where), texts, where)


def test_unknown_and_no_number() -> None:
    with pytest.raises(UserError, match=r"data.tsv line 3 has the label 'c', but the model knows a, b"):
        Labels("class", ("a", "b")).encode(["a", "c"], where)
    with pytest.raises(UserError, match=r"data.tsv line 2 has the label 'many', which is no number"):
        Labels("number").encode(["many"], where)
    with pytest.raises(UserError, match="line 3 has a list of labels"):
        find_labels(["a", ("a", "b")], where, kind="class")


def test_described() -> None:
    raw = ["a", "b", "a", "a"]
    labels = find_labels(raw, where)
    assert describe_labels(labels, labels.encode(raw, where)) == "One label for each, of 2: a 75.0%, b 25.0%."
    many = [str(i) for i in range(30)] * 4
    classes = find_labels(many, where)
    assert describe_labels(classes, classes.encode(many, where)).endswith("(--kind number would make them numbers).")
    raw = ["pos", "neg;short", "neg", "pos;short"]
    parted = find_labels(raw, where)
    said = describe_labels(parted, parted.encode(raw, where))
    assert said.startswith("Any number of labels for each, of 3: neg 50.0%")
    assert said.endswith("(parted by ';'; --separator '' would take each as one).")
    assert find_labels(raw, where, separator="").kind == "class"
    numbers = Labels("number")
    assert "from 1 to 3, 2 in the mean" in describe_labels(numbers, numbers.encode(["1", "3"], where))
