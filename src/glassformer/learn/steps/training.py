"""Pre-training and fine-tuning: what was learned once need not be learned again."""

import copy
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from glassformer.ladder.counts import Codes
from glassformer.ladder.fitting import Budget, Progress, Windows, learn
from glassformer.learn.figures import Bars, Figure, Lines, Pieces
from glassformer.learn.question import Question
from glassformer.learn.sentences import MOST_SENTENCES, MOST_WORDS, Sentences, Unfit
from glassformer.learn.step import Shown
from glassformer.learn.steps.learned import small_decoder
from glassformer.model import build

BEFORE, AFTER = 120, 40  # steps of pre-training and of fine-tuning


def new_model(n_words: int) -> nn.Module:
    settings = small_decoder(16, 2, 2, None)
    settings = replace(settings, source=replace(settings.source, vocab_size=n_words + 1))  # and the start token
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return build(settings)


def losses_of(model: nn.Module, texts: list[tuple[str, ...]], vocabulary: list[str], steps: int) -> list[float]:
    """Train on the texts; the loss of each step, in nats a word."""
    found: list[float] = []

    def note(progress: Progress) -> None:
        found.append(progress.loss)

    codes = Codes(vocabulary)
    windows = Windows([codes.encode(words) for words in texts], np.ones(len(texts)), MOST_WORDS, MOST_SENTENCES)
    learn(model, windows, len(vocabulary), Budget(steps=steps, seconds=None), 0.01, "constant", 1, note)
    return found


def make_fine_tuning(sentences: Sentences) -> Shown:
    *many, few = sentences.words
    if not many:
        raise Unfit("This step needs at least 2 sentences: some to learn from first, and a new one.")
    vocabulary = sentences.vocabulary
    fresh = new_model(len(vocabulary))
    trained = copy.deepcopy(fresh)
    losses_of(trained, many, vocabulary, BEFORE)
    names = ["from nothing", "pre-trained"]
    curves = [losses_of(model, [few], vocabulary, AFTER) for model in (fresh, trained)]
    goal = 0.5
    needed = [float(next((i for i, loss in enumerate(curve) if loss < goal), AFTER)) for curve in curves]
    figures: list[Figure] = [
        Pieces(
            rows=["learned before", "new"],
            tokens=[[" ".join(words) for words in many], [" ".join(few)]],
            caption="A model learns the first sentences. Then it meets the new one.",
        ),
        Lines(
            labels=names,
            values=curves,
            across=f"step 1 to {AFTER}",
            caption="The loss on the new sentence while learning it.",
        ),
        Bars(labels=names, values=needed, caption=f"Steps until the loss is below {goal} nats a word."),
    ]
    saved = needed[0] - needed[1]
    question = Question(
        text=f"How many steps does pre-training save on the way to a loss of {goal}?",
        answers=[saved],
        hint="Take the shorter bar from the longer one."
        if saved >= 0
        else "Here pre-training costs steps, so it saves fewer than none: take the longer bar from the shorter one.",
    )
    return Shown(figures, question)
