"""Counting by matrix products: the mask looked up by QKᵀ, and pairs made by a feed-forward layer."""

import numpy as np

from glassformer.ladder.onehot import BIAS, LARGEST, OneHotAttention
from glassformer.ladder.skips import pair_name
from glassformer.learn.figures import Figure, Matrix, rows_of
from glassformer.learn.question import Question
from glassformer.learn.sentences import SHOWN, Sentences, Unfit
from glassformer.learn.step import Shown
from glassformer.learn.steps.counting import Prefix, places_of_choice

MOST_PAIRS = 5  # that a figure shows


def fit_attention(sentences: Sentences) -> tuple[OneHotAttention, list[Prefix]]:
    if len(sentences.vocabulary) > LARGEST:
        raise Unfit(f"This step has room for {LARGEST} different words at most.")
    prefixes = places_of_choice(sentences)
    return OneHotAttention().fit(sentences.words, sentences.weights), prefixes


def columns_around(prefix: Prefix, rung: OneHotAttention, sentences: Sentences) -> list[int]:
    """The words that matter most here: the last one, those in its mask, those before it, then any."""
    masked = [word for word in rung.vocabulary if rung.keys[word, prefix[-1]] > 0]
    order = dict.fromkeys([prefix[-1], *masked, *prefix, *sentences.shown(), *rung.vocabulary])
    return sorted(rung.vocabulary.index(word) for word in list(order)[:SHOWN])


def make_attention(sentences: Sentences) -> Shown:
    rung, prefixes = fit_attention(sentences)
    prefix = prefixes[0]
    found = rung.matrices(prefix)
    columns = columns_around(prefix, rung, sentences)
    words = [rung.vocabulary[i] for i in columns]
    names = ["query", "mask", "earlier words", "attended"]
    rows = np.array([found[name].values[0, columns] for name in names])
    last = words.index(prefix[-1])
    figures: list[Figure] = [
        Matrix(
            rows=words,
            columns=words,
            values=rows_of(rung.keys.values.T[np.ix_(columns, columns)]),
            caption="All masks, one row for each last word: 1 where an earlier word may vote with it.",
            corner="earlier →",
            highlight=[(last, i) for i in range(len(words))],
        ),
        Matrix(
            rows=["query Q", "mask QKᵀ", "words so far", "attended"],
            columns=words,
            values=rows_of(rows),
            caption=f"“{' '.join(prefix)}”: the last word asks, its mask comes out, and is laid over the words so far.",
        ),
    ]
    attended = [word for word, value in zip(rung.vocabulary, found["attended"].values[0], strict=True) if value > 0]
    question = Question(
        text=f"How many of the earlier words does “{prefix[-1]}” attend to here?",
        answers=[float(len(attended))],
        hint="Count the ones in the row “attended”.",
    )
    return Shown(figures, question)


def partners(prefix: Prefix, rung: OneHotAttention) -> list[str]:
    """Earlier words that the mask of the last word lets through; the first of this sentence if it knows none."""
    last, names = prefix[-1], rung.pair_weights.columns
    kept = [word for word in rung.vocabulary if rung.keys[word, last] > 0]
    return (kept or [word for word in dict.fromkeys(prefix[:-1]) if pair_name(word, last) in names])[:MOST_PAIRS]


def make_pairs(sentences: Sentences) -> Shown:
    rung, prefixes = fit_attention(sentences)
    last, n = prefixes[0][-1], len(rung.vocabulary)
    earlier = partners(prefixes[0], rung)
    weights = rung.pair_weights
    features = [*(pair_name(word, last) for word in earlier), last]
    columns = [weights.columns.index(name) for name in features]
    inputs = [*(f"{word} …" for word in earlier), f"… {last}", BIAS]
    rows = [*(rung.vocabulary.index(word) for word in earlier), n + rung.vocabulary.index(last), 2 * n]
    found = [rung.matrices(prefix) for prefix in prefixes]
    given = np.array([m["inputs"].values[0, rows] for m in found])
    sums, fired = (np.array([m[name].values[0, columns] for m in found]) for name in ("sums", "features"))
    votes = rung.transitions.values[columns]
    shown = [i for i in range(n) if votes[:, i].any()][:SHOWN]
    said = np.array([m["votes"].values[0, shown] for m in found])
    words = [rung.vocabulary[i] for i in shown]
    sentence = [f"sentence {i + 1}" for i in range(len(prefixes))]
    read = "; ".join(f"{name}: “{' '.join(prefix)}”" for name, prefix in zip(sentence, prefixes, strict=True))
    figures: list[Figure] = [
        Matrix(rows=sentence, columns=inputs, values=rows_of(given), caption=f"What attention lets through. {read}."),
        Matrix(
            rows=inputs,
            columns=features,
            values=rows_of(weights.values[np.ix_(rows, columns)]),
            caption="Weights made by hand: 2 for each word of a pair, −3 as a bias.",
        ),
        Matrix(
            rows=sentence,
            columns=features,
            values=rows_of(sums),
            caption="Their product: 1 only if both words are there.",
        ),
        Matrix(rows=sentence, columns=features, values=rows_of(fired), caption="ReLU turns what is below 0 into 0."),
        Matrix(rows=features, columns=words, values=rows_of(votes[:, shown]), caption="The votes of each feature …"),
        Matrix(rows=sentence, columns=words, values=rows_of(said), caption="… and the product: what comes next."),
    ]
    question = Question(
        text=f"In sentence 1, what is the sum of “{features[0]}” before the ReLU?",
        answers=[float(sums[0, 0])],
        hint="Add the weights of those inputs that are 1 in sentence 1, the bias among them.",
    )
    return Shown(figures, question)
