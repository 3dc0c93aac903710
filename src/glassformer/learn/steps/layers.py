"""What holds a deep model together: skip connections and layer norm."""

import torch
from torch import nn

from glassformer.learn.figures import Figure, Matrix, rows_of, write_number
from glassformer.learn.question import Question
from glassformer.learn.sentences import Sentences, Unfit
from glassformer.learn.step import Shown
from glassformer.learn.steps.standins import features, numbered, short_sentence, word_waves
from glassformer.model.layers import build_norm
from glassformer.model.settings import AttentionSettings, NormSettings, StackSettings
from glassformer.model.stack import Block


def silent_block(d: int) -> Block:
    """A whole block, all of whose weights are zero."""
    block = Block(StackSettings(d_model=d, attention=AttentionSettings(n_heads=2), dropout=0.0), None).double().eval()
    for parameter in block.parameters():
        nn.init.zeros_(parameter)
    return block


def make_skip_connections(sentences: Sentences) -> Shown:
    words = short_sentence(sentences)
    x = word_waves(words, sentences)
    block = silent_block(x.shape[1])
    with torch.no_grad():
        alone = block.self_attention(x[None])[0]
        through = block(x[None])[0]
    names = numbered(words)
    figures: list[Figure] = [
        Matrix(rows=names, columns=features(), values=rows_of(x), caption="What goes in."),
        Matrix(
            rows=names, columns=features(), values=rows_of(alone), caption="What attention says with all weights at 0."
        ),
        Matrix(
            rows=names, columns=features(), values=rows_of(through), caption="What leaves the block: x + attention(x)."
        ),
    ]
    question = Question(
        text="All weights of a block are 0. What comes out of the block?",
        answers=["the input"],
        choices=["zeros", "the input", "random numbers"],
        hint="Something is added to x. How much is it here?",
    )
    return Shown(figures, question)


def make_layer_norm(sentences: Sentences) -> Shown:
    words = list(sentences.first)
    lengths = torch.tensor([float(len(word)) for word in words], dtype=torch.float64)
    if len(words) < 2 or lengths.var(unbiased=False) == 0:
        raise Unfit("This step needs a first sentence with words of different lengths.")
    norm = build_norm(NormSettings(kind="layer"), len(words)).double()
    with torch.no_grad():
        out, again = norm(lengths), norm(lengths * 10)
    mean, variance = write_number(float(lengths.mean())), write_number(float(lengths.var(unbiased=False)))
    figures: list[Figure] = [
        Matrix(
            rows=["letters", "normed"],
            columns=words,
            values=rows_of(torch.stack([lengths, out])),
            caption=f"Mean {mean} and variance {variance} before the norm; 0 and 1 after it.",
        ),
        Matrix(
            rows=["letters × 10", "normed"],
            columns=words,
            values=rows_of(torch.stack([lengths * 10, again])),
            caption="Ten times as large, and the same after the norm: only the shape counts.",
        ),
    ]
    question = Question(
        text="What is the mean of the numbers before the norm?",
        answers=[float(lengths.mean())],
        hint="Add the letters up and divide by how many words there are.",
    )
    return Shown(figures, question)
