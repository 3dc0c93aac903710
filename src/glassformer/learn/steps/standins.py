"""Dense vectors without training: a word's waves stand in for its learned embedding.

Trained embeddings come out of a training; these come out of a formula, so that the page can compute them at once.
"""

import torch
from torch import Tensor

from glassformer.learn.sentences import Sentences, Unfit
from glassformer.model.positions import sinusoids

WIDTH = 4
SHORT = 8  # words of a sentence that a square figure shows


def short_sentence(sentences: Sentences, least: int = 2) -> list[str]:
    """The first words of the first sentence."""
    words = list(sentences.first[:SHORT])
    if len(words) < least:
        raise Unfit(f"This step needs a first sentence of at least {least} words.")
    return words


def word_waves(words: list[str], sentences: Sentences, d: int = WIDTH) -> Tensor:
    """The waves of each word's number in the vocabulary."""
    return sinusoids(torch.tensor([sentences.vocabulary.index(word) + 1 for word in words]), d)  # (n, d)


def place_waves(n: int, d: int = WIDTH) -> Tensor:
    return sinusoids(torch.arange(n), d)  # (n, d)


def features(d: int = WIDTH) -> list[str]:
    """Names for the columns of dense vectors."""
    return [str(i + 1) for i in range(d)]


def numbered(words: list[str] | tuple[str, ...]) -> list[str]:
    """Words with their places, since a word may come twice."""
    return [f"{i + 1} {word}" for i, word in enumerate(words)]
