"""Counts agree with their nouns, and findings with their verbs."""

import pytest

from glassformer.data.counted import counted
from glassformer.data.findings import Finding, FirstLines, explain_findings, having_seen
from glassformer.errors import UserError


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (counted(0, "line"), "0 lines"),
        (counted(1, "line"), "1 line"),
        (counted(1200, "line"), "1,200 lines"),
        (counted(1, "class", "classes"), "1 class"),
        (counted(2, "class", "classes"), "2 classes"),
    ],
)
def test_a_count_agrees_with_its_noun(said: str, wanted: str) -> None:
    assert said == wanted


@pytest.mark.parametrize(
    ("finding", "wanted"),
    [
        (Finding("is empty", 1, (7,)), "1 line that is empty (7)"),
        (Finding("is empty", 2, (7, 8)), "2 lines that are empty (7, 8)"),
        (Finding("has 1 column", 3, (1, 2)), "3 lines that have 1 column (1, 2, …)"),
        (Finding("repeats a long line", 2, (1, 2)), "2 lines that repeat a long line (1, 2)"),
    ],
)
def test_a_finding_agrees_with_its_number(finding: Finding, wanted: str) -> None:
    assert str(finding) == wanted


def test_the_commonest_findings_are_named_and_the_rest_counted() -> None:
    lines: FirstLines[str] = FirstLines()
    for line in range(1, 12):
        lines.add(f"has fault {line}", line)
    said = explain_findings("Skipped", lines.findings())
    assert said[0] == "Skipped:"
    assert said[1] == "  1 line that has fault 1 (1)"
    assert said[-1] == "  3 lines with other faults"
    assert len(said) == 10
    assert explain_findings("Skipped", ()) == []


def test_an_error_carries_what_was_seen() -> None:
    with pytest.raises(UserError) as caught, having_seen(["first", "second"]):
        raise UserError("fatal")
    assert caught.value.__notes__ == ["first", "second"]
    assert str(caught.value) == "fatal"
