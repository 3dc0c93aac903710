"""Answers as people type them."""

import pytest

from glassformer.learn.figures import write_number
from glassformer.learn.question import Question, read_number

# Also asked of the page's script, in test_browser.py.
NUMBERS = {
    "0.4": 0.4,
    ".4": 0.4,
    "0,4": 0.4,
    "0,333": 0.333,
    "−0,125": -0.125,
    "40%": 0.4,
    " 40 % ": 0.4,
    "2/5": 0.4,
    "-1": -1,
    "−1.5": -1.5,
    "25,600,000": 25_600_000,
    "25 600 000": 25_600_000,
    "2,500.5": 2500.5,
    "": None,
    "1/0": None,
    "x": None,
    "1e3": None,
    "nan": None,
    "0x10": None,
    "1.2.3": None,
    "½": None,
    "٣": None,
}


@pytest.mark.parametrize(("text", "number"), NUMBERS.items())
def test_numbers_are_read(text: str, number: float | None) -> None:
    assert read_number(text) == (None if number is None else pytest.approx(number))


NUMBER = Question(text="?", answers=[1 / 3], hint="!")
LARGE = Question(text="?", answers=[25_600_000.0], hint="!")
WORD = Question(text="?", answers=["down", "Up"], hint="!")
ROWS = Question(text="?", answers=["3 1"], hint="!")
MARK = Question(text="?", answers=[","], hint="!")
CHOICE = Question(text="?", answers=["the input"], choices=["zeros", "the input"], hint="!")
CASES = [
    (NUMBER, "0.33", True),
    (NUMBER, "1/3", True),
    (NUMBER, "0.3", False),
    (NUMBER, "down", False),
    (NUMBER, "", False),
    (LARGE, "25,600,000", True),
    (LARGE, "25.6", False),
    (WORD, "down", True),
    (WORD, " “DOWN” ", True),
    (WORD, "up", True),
    (WORD, "do wn", False),
    (WORD, "", False),
    (ROWS, "[3, 1]", True),
    (ROWS, "3;1", True),
    (ROWS, "1 3", False),
    (ROWS, "31", False),
    (MARK, ",", True),
    (MARK, "", False),
    (MARK, ";", False),
    (CHOICE, "2", True),
    (CHOICE, "The input", True),
    (CHOICE, "1", False),
    (CHOICE, "0", False),
    (CHOICE, "3", False),
]


@pytest.mark.parametrize(("question", "given", "right"), CASES)
def test_answers_are_judged(question: Question, given: str, right: bool) -> None:
    assert question.accepts(given) is right


# The page writes them too.
WRITTEN = [
    (None, "−∞"),
    (0.0, "0"),
    (-0.0, "0"),
    (1.0, "1"),
    (-3.0, "−3"),
    (0.3, "0.30"),
    (-0.001, "0.00"),
    (0.99996, "1.00"),
    (1e-12, "0"),
    (3 - 1e-12, "3"),
    (0.125, "0.12"),
    (0.375, "0.38"),
    (-4.125, "−4.12"),
    (2.675, "2.67"),
    (1234.5, "1,234.50"),
    (125e12, "125,000,000,000,000"),
    (-1234567.0, "−1,234,567"),
]


@pytest.mark.parametrize(("value", "text"), WRITTEN)
def test_numbers_are_written(value: float | None, text: str) -> None:
    assert write_number(value) == text
