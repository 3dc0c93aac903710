"""Words as rows of zeros and a one: one-hot, the dot product, and the matrix product as a lookup."""

import torch
import torch.nn.functional as F
from torch import Tensor

from glassformer.learn.figures import Bars, Figure, Matrix, numbers_of, rows_of
from glassformer.learn.question import Question
from glassformer.learn.sentences import Sentences, Unfit
from glassformer.learn.step import Shown


def number_words(words: list[str] | tuple[str, ...], vocabulary: list[str]) -> list[int]:
    """Places in the sorted vocabulary, from 1 as people count."""
    return [vocabulary.index(word) + 1 for word in words]


def one_hot(words: list[str] | tuple[str, ...], vocabulary: list[str]) -> Tensor:
    """One row a word, with its one in that word's column."""
    ids = torch.tensor(number_words(words, vocabulary)) - 1
    return F.one_hot(ids, len(vocabulary)).double()  # (n, N)


def words_of_first(sentences: Sentences) -> tuple[list[str], list[str]]:
    """The words of the first sentence that a figure has columns for, and these columns."""
    shown = sentences.shown()
    return [word for word in sentences.first if word in shown], shown


def make_one_hot(sentences: Sentences) -> Shown:
    words, shown = words_of_first(sentences)
    if not words:
        raise Unfit("This step needs a first sentence of common words.")
    numbers = number_words(words, shown)
    listed = ", ".join(str(n) for n in numbers)
    figure = Matrix(
        rows=words,
        columns=shown,
        values=rows_of(one_hot(words, shown)),
        caption=f"“{' '.join(words)}” is [{listed}]: one row a word, one column for each of {sentences.which()}.",
        highlight=[(i, n - 1) for i, n in enumerate(numbers)],
    )
    question = Question(
        text=f"In which column does the row of “{words[-1]}” have its one?",
        answers=[float(numbers[-1])],
        hint="Count the columns from the left, beginning with 1.",
    )
    return Shown([figure], question)


def make_dot_product(sentences: Sentences) -> Shown:
    shown = sentences.shown()
    table = one_hot(shown, shown)
    counts = sentences.counts()
    times = torch.tensor([counts[word] for word in shown], dtype=torch.float64)
    mix = times / times.sum()
    itself = Matrix(
        rows=shown,
        columns=shown,
        values=rows_of(table @ table.T),
        caption=f"Each of {sentences.which()} times each other: 1 for the same word, 0 for another.",
    )
    mixed = Matrix(
        rows=["mix"],
        columns=shown,
        values=rows_of(mix[None]),
        caption="A mix of all words, each weighted by how often it comes.",
    )
    products = Bars(
        labels=[f"mix · {word}" for word in shown],
        values=numbers_of(table @ mix),
        caption="The mix times each word's row: that word's weight comes out.",
    )
    asked = int(torch.argmax(mix))
    question = Question(
        text=f"What is the dot product of the mix and “{shown[asked]}”?",
        answers=numbers_of(mix[asked : asked + 1]),
        hint="Everything but that word's column is multiplied by 0.",
    )
    return Shown([itself, mixed, products], question)


def make_lookup(sentences: Sentences) -> Shown:
    words, shown = words_of_first(sentences)
    if not words:
        raise Unfit("This step needs a first sentence of common words.")
    counts = sentences.counts()
    facts = ["letters", "times"]
    table = torch.tensor([[len(word), counts[word]] for word in shown], dtype=torch.float64)
    stack = one_hot(words, shown)
    numbers = number_words(words, shown)
    listed = ", ".join(str(n) for n in numbers)
    numbered = [f"{i + 1} {word}" for i, word in enumerate(shown)]
    figures: list[Figure] = [
        Matrix(rows=words, columns=numbered, values=rows_of(stack), caption=f"Ones in the columns {listed} …"),
        Matrix(
            rows=numbered,
            columns=facts,
            values=rows_of(table),
            caption="… times a table with one row for each word (its letters, and how often it comes) …",
        ),
        Matrix(
            rows=[f"row {n}" for n in numbers],
            columns=facts,
            values=rows_of(stack @ table),
            caption=f"… is the rows {listed} of the table, in this order.",
        ),
    ]
    question = Question(
        text=f"“{words[-1]} {words[0]}” is a stack of two rows. Which rows of the table does it pull out?",
        answers=[f"{numbers[-1]} {numbers[0]}"],
        hint="Give the two numbers in front of these words, in the order of the words.",
    )
    return Shown(figures, question)
