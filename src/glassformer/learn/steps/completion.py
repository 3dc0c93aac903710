"""Writing on: one word at a time, each the best or a drawn one."""

import numpy as np

from glassformer.ladder.rung import Scores
from glassformer.learn.figures import Figure, Matrix, Pieces, rows_of
from glassformer.learn.question import Question
from glassformer.learn.sentences import SHOWN, Sentences, Unfit
from glassformer.learn.step import Shown
from glassformer.learn.steps.counting import fit_order

MOST = 10  # words that are added
TEMPERATURES = (0.5, 1.0, 2.0)


def make_completion(sentences: Sentences) -> Shown:
    if len(sentences.first) < 3:
        raise Unfit("This step needs a first sentence of at least 3 words.")
    rung = fit_order(2, sentences)
    prompt = list(sentences.first[:2])
    whole = rung.complete(prompt, MOST)
    steps = [whole[:end] for end in range(2, len(whole) + 1)]
    rows = np.array([rung.predict(words).scores for words in steps])
    unsure = int((rows > 0).sum(axis=1).argmax())
    columns = sorted(i for i in np.argsort(-rows.sum(axis=0), kind="stable")[:SHOWN].tolist() if rows[:, i].any())
    heated = np.array([heat(rows[unsure], temperature) for temperature in TEMPERATURES])
    open_columns = [i for i in range(len(rung.vocabulary)) if rows[unsure, i] > 0][:SHOWN]
    figures: list[Figure] = [
        Pieces(
            rows=[f"step {i}" for i in range(len(steps))],
            tokens=steps,
            caption=f"“{' '.join(prompt)}” is the prompt; each step adds the most probable word.",
        ),
        Matrix(
            rows=[" ".join(words[-2:]) for words in steps],
            columns=[rung.vocabulary[i] for i in columns],
            values=rows_of(rows[:, columns]),
            caption="What each step chose from (second order). An empty last row ends it.",
        ),
        Matrix(
            rows=[f"temperature {t:g}" for t in TEMPERATURES],
            columns=[rung.vocabulary[i] for i in open_columns],
            values=rows_of(heated[:, open_columns]),
            caption=f"Drawing after “{' '.join(steps[unsure][-2:])}”: low temperatures prefer the best.",
        ),
    ]
    asked = steps[unsure]
    question = Question(
        text=f"Which word does the greedy choice add after “{' '.join(asked)}”?",
        answers=[whole[len(asked)]] if len(asked) < len(whole) else [rung.vocabulary[int(rows[unsure].argmax())]],
        hint="Greedy means: the word with the highest probability.",
    )
    return Shown(figures, question)


def heat(shares: Scores, temperature: float) -> Scores:
    """The softmax of log p / temperature."""
    powers: Scores = shares ** (1 / temperature)
    return powers / max(float(powers.sum()), 1e-300)
