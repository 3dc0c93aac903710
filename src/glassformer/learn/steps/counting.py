"""Counting what follows what: first order, second order, skips, and the mask that makes skips sure."""

import numpy as np

from glassformer.ladder.markov import Markov
from glassformer.ladder.rung import Explanation, Scores
from glassformer.ladder.skips import MaskedSkips, Skips
from glassformer.learn.figures import Bars, Figure, Matrix, rows_of, write_number
from glassformer.learn.question import Question
from glassformer.learn.sentences import SHOWN, Sentences, Unfit
from glassformer.learn.step import Shown

Prefix = tuple[str, ...]


def fit_order(order: int, sentences: Sentences) -> Markov:
    return Markov(order).fit(sentences.words, sentences.weights)


def words_with_choice(sentences: Sentences) -> list[str]:
    """Words after which more than one word may come, the one with most such words first."""
    table = fit_order(1, sentences).table()
    kinds = (table.values > 0).sum(axis=1)
    order = sorted(range(len(kinds)), key=lambda i: (-kinds[i], i))
    return [table.rows[i] for i in order if kinds[i] > 1]


def places_of_choice(sentences: Sentences) -> list[Prefix]:
    """Up to two beginnings of sentences that end with the same word, after which more than one word may come."""
    open_words = words_with_choice(sentences)
    for words in sentences.words:
        for end in range(len(words) - 1, 1, -1):
            if words[end - 1] in open_words:
                return _alike(words[:end], sentences)
    longest = max(sentences.words, key=len)
    if len(longest) < 3:
        raise Unfit("This step needs a sentence of at least 3 words.")
    return [longest[:-1]]


def _alike(prefix: Prefix, sentences: Sentences) -> list[Prefix]:
    for words in sentences.words:
        for end in range(len(words) - 1, 1, -1):
            if words[end - 1] == prefix[-1] and words[:end] != prefix:
                return [prefix, words[:end]]
    return [prefix]


def make_first_order(sentences: Sentences) -> Shown:
    if max(len(words) for words in sentences.words) < 2:
        raise Unfit("This step needs a sentence of at least 2 words.")
    rung = fit_order(1, sentences)
    shown = sentences.shown()
    columns = [rung.vocabulary.index(word) for word in shown]
    table = rung.table()
    asked = (words_with_choice(sentences) or [words[0] for words in sentences.words if len(words) > 1])[0]
    row = rung.predict([asked])
    best = row.top(SHOWN)
    following = [(word, share) for word, share in best if share > 0]
    figures: list[Figure] = [
        Matrix(
            rows=shown,
            columns=shown,
            values=rows_of(np.array([table.row(word)[columns] for word in shown])),
            caption=f"Rows: the word that was read, of {sentences.which()}. Columns: what comes next, as a share of "
            "all that followed.",
            corner="next →",
        ),
        Bars(
            labels=[word for word, _ in following],
            values=[share for _, share in following],
            caption=f"The row of “{asked}”: what comes next, and how often.",
        ),
    ]
    word, share = following[-1]
    question = Question(
        text=f"After “{asked}”, how probable is “{word}”?",
        answers=[share],
        hint=f"Count how often “{word}” follows “{asked}”, out of all that follows it.",
    )
    return Shown(figures, question)


def make_second_order(sentences: Sentences) -> Shown:
    if max(len(words) for words in sentences.words) < 3:
        raise Unfit("This step needs a sentence of at least 3 words.")
    one, two = fit_order(1, sentences), fit_order(2, sentences)
    firsts = words_with_choice(sentences)[:SHOWN]
    pairs = two.table()
    kinds = (pairs.values > 0).sum(axis=1)
    # Pairs that still hesitate stand first, then those whose last word alone would hesitate.
    order = sorted(range(len(pairs.rows)), key=lambda i: (kinds[i] < 2, pairs.rows[i].split(" ")[1] not in firsts, i))[
        :SHOWN
    ]
    figures: list[Figure] = []
    if firsts:
        scores = np.array([one.predict([word]).scores for word in firsts])
        figures.append(_table(firsts, one.vocabulary, scores, "First order: one word before. These rows hesitate."))
    figures.append(
        _table([pairs.rows[i] for i in order], two.vocabulary, pairs.values[order], "Second order: two words before.")
    )
    n = len(two.vocabulary)
    question = Question(
        text=f"There are {n} words. How many rows would a full table of pairs have?",
        answers=[float(two.n_rows)],
        hint=f"Each of {n} words may stand before each of {n} words.",
    )
    return Shown(figures, question)


def _table(rows: list[str], vocabulary: tuple[str, ...], scores: Scores, caption: str) -> Matrix:
    """Only the columns that get something, the fullest if they are too many."""
    used = [i for i in np.argsort(-scores.sum(axis=0), kind="stable") if scores[:, i].any()][:SHOWN]
    columns = sorted(int(i) for i in used)
    return Matrix(
        rows=rows, columns=[vocabulary[i] for i in columns], values=rows_of(scores[:, columns]), caption=caption
    )


def votes_figure(told: Explanation, prefix: Prefix, caption: str) -> Matrix:
    """One row for each pair, what the mask says of it, and the sum of the votes that count."""
    rows = [*(reason.name for reason in told.reasons), "all votes"]
    scores = np.array([*(reason.scores for reason in told.reasons), told.prediction.scores])
    figure = _table(rows, told.prediction.vocabulary, scores, caption)
    mask = [reason.weight for reason in told.reasons]
    return Matrix(
        rows=rows,
        columns=["mask", *figure.columns],
        values=[[m, *votes] for m, votes in zip([*mask, sum(mask)], figure.values, strict=True)],
        caption=f"“{' '.join(prefix)} …” {caption}",
        highlight=[(len(mask), i + 1) for i in range(len(figure.columns))],
    )


def make_skips(sentences: Sentences) -> Shown:
    prefixes = places_of_choice(sentences)
    rung = Skips().fit(sentences.words, sentences.weights)
    told = [rung.explain(prefix) for prefix in prefixes]
    figures: list[Figure] = [
        votes_figure(t, prefix, "Each earlier word votes together with the last, and all count.")
        for t, prefix in zip(told, prefixes, strict=True)
    ]
    word, votes = told[0].prediction.top(1)[0]
    question = Question(
        text=f"How many votes does “{word}” get in the first figure, all together?",
        answers=[votes],
        hint=f"Add up the column of “{word}”.",
    )
    return Shown(figures, question)


def make_masking(sentences: Sentences) -> Shown:
    prefixes = places_of_choice(sentences)
    rung = MaskedSkips().fit(sentences.words, sentences.weights)
    figures: list[Figure] = []
    for prefix in prefixes:
        told = rung.explain(prefix)
        (best, most), *rest = told.prediction.top(2)
        margin = f"{write_number(most)} to {write_number(rest[0][1] if rest else 0.0)}"
        figures.append(votes_figure(told, prefix, f"Only rows with mask 1 count: “{best}” leads by {margin}."))
    scores = rung.predict(prefixes[-1]).scores
    question = Question(
        text=f"Which word comes after “{' '.join(prefixes[-1])}”?",
        answers=[word for word, score in zip(rung.vocabulary, scores, strict=True) if score == scores.max()],
        hint="See who has most votes in the last row.",
    )
    return Shown(figures, question)
