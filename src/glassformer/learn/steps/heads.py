"""Attention on dense vectors: one head step by step, and many heads side by side."""

import torch
from torch import Tensor, nn

from glassformer.learn.figures import Figure, Matrix, rows_of
from glassformer.learn.question import Question
from glassformer.learn.sentences import Sentences
from glassformer.learn.step import Shown
from glassformer.learn.steps.standins import WIDTH, features, numbered, place_waves, short_sentence, word_waves
from glassformer.model.attention import MultiHeadAttention, attention
from glassformer.model.masks import look_ahead_mask
from glassformer.model.settings import AttentionSettings, StackSettings

SHARP = 6.0  # queries this much longer make a clear choice


def two_heads(x: Tensor) -> Tensor:
    """The weights of a layer whose first head sees the left half of x and whose second head the right half."""
    d = x.shape[1]
    settings = StackSettings(d_model=d, attention=AttentionSettings(n_heads=2, bias=""))
    layer = MultiHeadAttention(settings).double().eval()
    with torch.no_grad():
        for name, scale in (("w_q", SHARP), ("w_k", 1.0), ("w_v", 1.0), ("w_o", 1.0)):
            linear = getattr(layer, name)
            assert isinstance(linear, nn.Linear)
            linear.weight.copy_(torch.eye(d, dtype=torch.float64) * scale)
    seen: list[Tensor] = []
    layer.core.register_forward_hook(lambda _, given, __: seen.extend(given[:2]))
    with torch.no_grad():
        layer(x[None])
    q, k = seen
    return attention(q, k, k)[1][0]  # (h, n, n)


def make_many_heads(sentences: Sentences) -> Shown:
    words = short_sentence(sentences)
    x = torch.cat([word_waves(words, sentences), place_waves(len(words))], dim=1)  # (n, 2 · WIDTH)
    weights = two_heads(x)
    names = numbered(words)
    about = [
        "Head 1 sees what the words are: equal words look at each other.",
        "Head 2 sees where they stand (its waves come round after six words).",
    ]
    figures: list[Figure] = [
        Matrix(rows=names, columns=names, values=rows_of(weights[i]), caption=f"{about[i]} Rows ask, columns answer.")
        for i in range(2)
    ]
    question = Question(
        text=f"The model is {2 * WIDTH} numbers wide and has 2 heads. How wide is one head?",
        answers=[float(2 * WIDTH // 2)],
        hint="The heads share the width equally: d_k = d_model / h.",
    )
    return Shown(figures, question)


def make_one_head(sentences: Sentences) -> Shown:
    words = short_sentence(sentences)[:6]
    x = word_waves(words, sentences)
    names = numbered(words)
    q = x * SHARP
    z, weights, scores = attention(q, x, x, look_ahead_mask(len(words)))
    figures: list[Figure] = [
        Matrix(
            rows=names,
            columns=features(),
            values=rows_of(x),
            caption="x: keys and values. Queries are 6 times as long.",
        ),
        Matrix(
            rows=names,
            columns=names,
            values=rows_of(scores),
            caption="QKᵀ/√d_k, with −∞ where a word would look ahead.",
        ),
        Matrix(
            rows=names,
            columns=names,
            values=rows_of(weights),
            caption="The softmax of each row: weights that add up to 1.",
        ),
        Matrix(
            rows=names,
            columns=features(),
            values=rows_of(z),
            caption="Weights times V: each row is a mix of the rows of x.",
        ),
    ]
    question = Question(
        text=f"How much weight does “{words[-1]}” give to the words before it, all together?",
        answers=[float(weights[-1, :-1].sum())],
        hint="All weights of a row add up to 1: take away what the word gives to itself.",
    )
    return Shown(figures, question)
