"""Where a word stands: waves to add."""

import torch

from glassformer.learn.figures import Figure, Lines, Matrix, numbers_of, rows_of
from glassformer.learn.question import Question
from glassformer.learn.sentences import Sentences
from glassformer.learn.step import Shown
from glassformer.learn.steps.standins import numbered
from glassformer.model.positions import sinusoids

D = 5  # an odd width works too, and shows three different waves


def make_positions(sentences: Sentences) -> Shown:
    words = list(sentences.first)
    n = len(words)
    table = sinusoids(torch.arange(n), D)  # (n, d)
    names = ["sin 1", "cos 1", "sin 2", "cos 2", "sin 3"]
    long = sinusoids(torch.arange(40), D)
    figures: list[Figure] = [
        Matrix(
            rows=[f"{i} {word}" for i, word in enumerate(words)],
            columns=names,
            values=rows_of(table),
            caption="What is added to each word's vector. The first word stands at position 0.",
        ),
        Lines(
            labels=names,
            values=[numbers_of(row) for row in long.T],
            across="position 0 to 39",
            caption="The same columns over forty positions: quick waves first, slow ones last.",
        ),
        Matrix(
            rows=numbered(words[:8]),
            columns=numbered(words[:8]),
            values=rows_of((table @ table.T)[:8, :8]),
            caption="Dot products of positions: nearly the same number wherever the distance is the same.",
        ),
    ]
    last = n - 1
    question = Question(
        text=f"What is added to the second number of the vector of the word at position {last}?",
        answers=numbers_of(table[last, 1:2]),
        hint="Find the row of that position, and read the column cos 1.",
    )
    return Shown(figures, question)
