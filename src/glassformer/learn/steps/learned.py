"""What training finds: embeddings, the way back to words, and what each of many layers adds."""

import torch
from torch import Tensor, nn

from glassformer.ladder.transformer import FullTransformer, OneLayerTransformer
from glassformer.learn.figures import Bars, Figure, Matrix, Points, numbers_of, rows_of
from glassformer.learn.question import Question
from glassformer.learn.sentences import SHOWN, Sentences, Unfit
from glassformer.learn.step import Shown
from glassformer.learn.steps.counting import Prefix, places_of_choice
from glassformer.learn.steps.standins import numbered
from glassformer.model import DecoderOnly
from glassformer.model.settings import (
    AttentionSettings,
    DecoderOnlySettings,
    FeedForwardSettings,
    StackSettings,
    TokensSettings,
)

LARGE, WIDE = 50_000, 512  # words of a real vocabulary, width of the paper's model
WIDTH, LAYERS = 8, 4


def small_decoder(d_model: int, n_layers: int, n_heads: int, init_std: float | None) -> DecoderOnlySettings:
    return DecoderOnlySettings(
        source=TokensSettings(dropout=0.0),
        decoder=StackSettings(
            d_model=d_model,
            n_layers=n_layers,
            attention=AttentionSettings(n_heads=n_heads),
            feed_forward=FeedForwardSettings(d_ff=4 * d_model),
            dropout=0.0,
        ),
        init_std=init_std,
    )


def flatten(table: Tensor) -> Tensor:
    """The plane in which the rows differ most; each axis so turned that its longest arrow points up."""
    centred = table - table.mean(dim=0)
    axes = torch.linalg.svd(centred, full_matrices=False).Vh[:2]  # (2, d)
    plane = centred @ axes.T
    longest = plane.gather(0, plane.abs().argmax(dim=0, keepdim=True))
    turned: Tensor = plane * torch.where(longest < 0, -1.0, 1.0)
    return turned  # (N, 2)


def gather_near(labels: list[str], plane: Tensor) -> tuple[list[str], Tensor]:
    """Points that would print over each other become one with all their names."""
    reach = float((plane.amax(dim=0) - plane.amin(dim=0)).max()) * 0.06
    groups: list[list[int]] = []
    for i in range(len(labels)):
        near = next((g for g in groups if float((plane[g[0]] - plane[i]).norm()) < reach), None)
        near.append(i) if near is not None else groups.append([i])
    return [", ".join(labels[i] for i in group) for group in groups], plane[[group[0] for group in groups]]


def make_embeddings(sentences: Sentences) -> Shown:
    n = len(sentences.vocabulary)
    if n < 4:
        raise Unfit("This step needs at least 4 different words.")
    # Small first weights: whatever sets two words apart has been learned.
    rung = FullTransformer(small_decoder(WIDTH, 1, 1, 0.02), steps=100, lr=0.01).fit(sentences.words, sentences.weights)
    network = rung.network
    assert isinstance(network, DecoderOnly)
    shown = sentences.shown()
    table = network.source.embedding.weight.detach()[[rung.vocabulary.index(word) for word in shown]].double()
    distances = torch.cdist(table, table).fill_diagonal_(torch.inf)
    asked, nearest = divmod(int(distances.argmin()), len(shown))
    labels, places = gather_near(shown, flatten(table))
    figures: list[Figure] = [
        Matrix(
            rows=[f"pairs of {n} words", f"pairs of {LARGE:,} words", f"{LARGE:,} embeddings"],
            columns=["rows", "columns", "numbers"],
            values=[[float(r), float(c), float(r * c)] for r, c in ((n**2, n), (LARGE**2, LARGE), (LARGE, WIDE))],
            caption="Why one-hot rows do not scale: a table of all pairs, against a table of dense vectors.",
        ),
        Points(
            labels=labels,
            x=numbers_of(places[:, 0]),
            y=numbers_of(places[:, 1]),
            caption=f"Embeddings of {WIDTH} numbers, learned from these sentences and laid flat: words that are used "
            "alike lie together.",
        ),
    ]
    question = Question(
        text=f"Which word lies nearest to “{shown[asked]}”?",
        answers=[shown[nearest]],
        hint="It is used in the same places: look for the shortest distance in the picture.",
    )
    return Shown(figures, question)


def ids_of(words: Prefix, vocabulary: tuple[str, ...]) -> Tensor:
    """The start token and the words, as a learned rung reads them."""
    return torch.tensor([[len(vocabulary), *(vocabulary.index(word) for word in words)]])


def make_de_embedding(sentences: Sentences) -> Shown:
    prefix = places_of_choice(sentences)[0]
    rung = OneLayerTransformer(WIDTH, steps=250, lr=0.01).fit(sentences.words, sentences.weights)
    network = rung.network
    assert isinstance(network, DecoderOnly)
    shown = sentences.shown()
    columns = [rung.vocabulary.index(word) for word in shown]
    with torch.no_grad():
        state = network.states(ids_of(prefix, rung.vocabulary))[0, -1:]  # (1, d)
        scores = network.head(state)[0, : len(rung.vocabulary)].double()
    shares = scores.softmax(dim=0)
    likely = shares.argsort(descending=True)[: min(6, len(shares))].tolist()
    figures: list[Figure] = [
        Matrix(
            rows=["state"],
            columns=[str(i + 1) for i in range(WIDTH)],
            values=rows_of(state),
            caption=f"What the model holds after “{' '.join(prefix)}”: {WIDTH} numbers, none of them a word.",
        ),
        Matrix(
            rows=["scores", "softmax"],
            columns=shown,
            values=rows_of(torch.stack([scores[columns], shares[columns]])),
            caption=f"The state times the de-embedding [{WIDTH} × {len(rung.vocabulary)}] is one score for each word; "
            "the softmax makes probabilities of them.",
        ),
        Bars(
            labels=[rung.vocabulary[i] for i in likely],
            values=[float(shares[i]) for i in likely],
            caption="The likeliest words.",
        ),
    ]
    question = Question(
        text="Which word would argmax choose?",
        answers=[rung.vocabulary[likely[0]]],
        hint="Argmax takes the place with the highest score; the softmax does not change the order.",
    )
    return Shown(figures, question)


@torch.no_grad()
def read_layers(network: DecoderOnly, ids: Tensor, n_words: int) -> Tensor:
    """What the head would say of the last position after the embedding and after each layer: (l + 1, N)."""
    streams: list[Tensor] = [network.source(ids)[0]]

    def see(_: nn.Module, __: object, out: Tensor) -> None:
        streams.append(out)

    hooks = [block.register_forward_hook(see) for block in network.decoder.blocks]
    try:
        network(ids)
    finally:
        for hook in hooks:
            hook.remove()
    norm = network.decoder.norm
    assert norm is not None
    said = [network.head(norm(stream[:, -1:]))[0, 0, :n_words] for stream in streams]
    return torch.stack(said).double().softmax(dim=-1)


def make_many_layers(sentences: Sentences) -> Shown:
    prefix = places_of_choice(sentences)[0]
    rung = FullTransformer(small_decoder(16, LAYERS, 2, None), steps=150, lr=0.005)
    rung.fit(sentences.words, sentences.weights)
    network = rung.network
    assert isinstance(network, DecoderOnly)
    said = read_layers(network, ids_of(prefix, rung.vocabulary), len(rung.vocabulary))
    best = said.argmax(dim=1).tolist()
    most = said.amax(dim=0).argsort(descending=True)[: min(6, SHOWN, said.shape[1])].tolist()
    columns = sorted(most)
    looks = rung.attention_weights(rung.window(prefix)).mean(dim=1)  # (l, n)
    layers = [f"layer {i + 1}" for i in range(LAYERS)]
    figures: list[Figure] = [
        Matrix(
            rows=["embedding", *layers],
            columns=[rung.vocabulary[i] for i in columns],
            values=rows_of(said[:, columns]),
            caption=f"After “{' '.join(prefix)}”: what the head would say if the model ended there.",
        ),
        Matrix(
            rows=layers,
            columns=numbered(("(start)", *prefix)),
            values=rows_of(looks),
            caption="Where the last word looks in each layer (mean of its heads).",
        ),
    ]
    first = next(i for i in range(len(best)) if all(b == best[-1] for b in best[i:]))
    question = Question(
        text=f"From which layer on is “{rung.vocabulary[best[-1]]}” the best guess? (0 is the embedding)",
        answers=[float(first)],
        hint="Go up the first figure from its last row, as long as that word has the highest number.",
    )
    return Shown(figures, question)
