"""The stacks: the decoder, which must not look ahead; a trained encoder; and the bridge between them."""

import functools

import torch
from torch import Tensor, nn

from glassformer.data.tokenizer import END, START, Tokenizer
from glassformer.learn.figures import Bars, Figure, Matrix, Pieces, numbers_of, rows_of
from glassformer.learn.question import Question
from glassformer.learn.sentences import Sentences, Unfit
from glassformer.learn.step import Shown
from glassformer.learn.steps.heads import SHARP
from glassformer.learn.steps.standins import numbered, short_sentence, word_waves
from glassformer.model import EncoderDecoder, attention
from glassformer.model.masks import look_ahead_mask
from glassformer.tasks.alignment import cross_weights
from glassformer.tasks.built_in import find_model
from glassformer.tasks.model_dir import load_model

MOST_PIECES = 12  # of an answer


def make_decoder_stack(sentences: Sentences) -> Shown:
    words = short_sentence(sentences, least=3)
    x = word_waves(words, sentences)
    n, names = len(words), numbered(words)
    _, weights, scores = attention(x * SHARP, x, x, look_ahead_mask(n))
    figures: list[Figure] = [
        Pieces(
            rows=["reads", "must say"],
            tokens=[words[:-1], words[1:]],
            caption="In training the decoder gets the true words, one place to the right, whatever it would have said.",
        ),
        Matrix(rows=names, columns=names, values=rows_of(scores), caption="Scores: −∞ above the diagonal."),
        Matrix(rows=names, columns=names, values=rows_of(weights), caption="After the softmax the future weighs 0."),
    ]
    question = Question(
        text=f"How many of the {n * n} fields does the look-ahead mask forbid?",
        answers=[float((~look_ahead_mask(n)).sum())],
        hint="Count the −∞: none in the last row, one in the row above, and so on.",
    )
    return Shown(figures, question)


@functools.cache
def translator() -> tuple[EncoderDecoder, Tokenizer]:
    """The built-in model from English to German."""
    loaded = load_model(find_model("en-de"))
    assert isinstance(loaded.model, EncoderDecoder)
    return loaded.model, loaded.tokenizer


def words_into_pieces(words: list[str], tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """The ids of all words, and for each id the place of its word."""
    spelled = [tokenizer.encode(word) for word in words]
    return [i for ids in spelled for i in ids], [place for place, ids in enumerate(spelled) for _ in ids]


@torch.inference_mode()
def encode_watched(words: list[str]) -> tuple[Tensor, Tensor]:
    """States of the trained encoder (words, d), and where each word looks in each head of each layer (l, h, n, n).

    A word that is cut into pieces asks with its last piece, and gets what all its pieces get.
    """
    model, tokenizer = translator()
    ids, places = words_into_pieces(words, tokenizer)
    seen: list[Tensor] = []

    def see(_: nn.Module, given: tuple[Tensor, ...], __: Tensor) -> None:
        q, k, v = given[:3]
        seen.append(attention(q, k, v)[1][0])  # (h, pieces, pieces)

    hooks = [block.self_attention.core.register_forward_hook(see) for block in model.encoder.blocks]  # type: ignore[union-attr]
    try:
        states = model.encode(torch.tensor([[*ids, END]])).x[0]
    finally:
        for hook in hooks:
            hook.remove()
    weights = torch.stack(seen)[..., : len(ids), : len(ids)].double()  # the end token answers too, but is no word
    last = [len(places) - 1 - places[::-1].index(place) for place in range(len(words))]
    gathered = torch.zeros(*weights.shape[:3], len(words), dtype=torch.float64)
    gathered.index_add_(3, torch.tensor(places), weights)
    return states[last].double(), gathered[:, :, last]


def make_encoder_stack(sentences: Sentences) -> Shown:
    words = list(sentences.first)
    others = [
        list(s)
        for s in sentences.words
        if len(s) == len(words) and s[:-1] == sentences.first[:-1] and s != sentences.first
    ]
    if len(words) < 3:
        raise Unfit("This step needs a first sentence of at least 3 words.")
    new = next((word for word in (*words, *sentences.vocabulary) if word != words[-1]), None)
    if new is None:
        raise Unfit("This step needs at least 2 different words.")
    other = others[0] if others else [*words[:-1], new]
    asked = words.index("it") if "it" in words else len(words) - 2
    states, weights = encode_watched(words)
    changed, other_weights = encode_watched(other)
    layer = weights.shape[0]
    n_heads = weights.shape[1]
    moved = (changed - states).norm(dim=1) / states.norm(dim=1)
    figures: list[Figure] = [
        Matrix(
            rows=[f"head {i + 1}" for i in range(n_heads)],
            columns=numbered(words),
            values=rows_of(weights[-1, :, asked]),
            caption=f"Where “{words[asked]}” looks in layer {layer} of the trained encoder en-de.",
        ),
        Matrix(
            rows=[f"head {i + 1}" for i in range(n_heads)],
            columns=numbered(other),
            values=rows_of(other_weights[-1, :, asked]),
            caption=f"The same when the last word is “{other[-1]}”.",
        ),
        Bars(
            labels=numbered(words),
            values=numbers_of(moved),
            caption=f"How far each word's state moves when “{words[-1]}” becomes “{other[-1]}”.",
        ),
    ]
    question = Question(
        text=f"Does the state of the first word, “{words[0]}”, change when the last word does?",
        answers=["yes" if bool(moved[0] > 1e-6) else "no"],
        choices=["yes", "no"],
        hint="An encoder looks in both directions. See the first bar.",
    )
    return Shown(figures, question)


@torch.inference_mode()
def translate_greedily(ids: list[int]) -> list[int]:
    """One piece after the other, always the best one."""
    model, _ = translator()
    memory = model.encode(torch.tensor([[*ids, END]]))
    said = [START]
    while len(said) <= MOST_PIECES:
        best = int(model.head(model.decode(torch.tensor([said]), memory))[0, -1].argmax())
        if best == END:
            break
        said.append(best)
    return said[1:]


def make_cross_attention(sentences: Sentences) -> Shown:
    _, tokenizer = translator()
    source = tokenizer.encode(" ".join(sentences.first[:10]))[:16]
    target = translate_greedily(source)
    if not target:
        raise Unfit("The built-in translator has no words for the first sentence.")
    weights = cross_weights(translator()[0], source, target)
    columns = numbered([*(token.strip() or "␣" for token in tokenizer.tokens(source)), "<end>"])
    rows = numbered([token.strip() or "␣" for token in tokenizer.tokens(target)])
    figure = Matrix(
        rows=rows,
        columns=columns,
        values=rows_of(weights),
        caption=f"“{tokenizer.decode(target)}”: where each piece of the answer looks in the English one (mean of "
        "all layers and heads).",
    )
    asked = int(weights[:, :-1].max(dim=1).values.argmax())
    best = int(weights[asked].argmax())
    question = Question(
        text=f"Which number has the English piece that piece {rows[asked]} looks at most?",
        answers=[float(best + 1)],
        hint="Find the deepest colour in that row, and read the number above it.",
    )
    return Shown([figure], question)
