"""What must hold for every input, tried on many."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.model import attention
from glassformer.model.masks import look_ahead_mask
from glassformer.model.positions import Rotary, RotaryAngles, sinusoids
from glassformer.model.settings import (
    AttentionSettings,
    EmbeddingHeadSettings,
    NormSettings,
    RotarySettings,
    VectorsSettings,
)
from glassformer.model.stack import Block
from tests.builders import (
    POSITIONS,
    VOCABULARY,
    close,
    decoder_only,
    encoder_decoder,
    encoder_only,
    random_ids,
    rough,
    stack,
)

DECODERS = {name: decoder_only(name) for name in POSITIONS}
PAIRS = {name: encoder_decoder(name) for name in POSITIONS}
SET_ENCODER = encoder_only(
    source=VectorsSettings(n_features=6, positions=None, dropout=0.0), head=EmbeddingHeadSettings(pooling="mean")
)

ids_lists = st.lists(st.integers(0, VOCABULARY - 1), min_size=2, max_size=10)
seeds = st.integers(0, 10**6)


@given(ids=ids_lists, data=st.data(), positions=st.sampled_from(list(POSITIONS)))
def test_a_causal_position_does_not_change_when_the_future_does(
    ids: list[int], data: st.DataObject, positions: str
) -> None:
    cut = data.draw(st.integers(1, len(ids) - 1))
    future = data.draw(st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=10))
    first, second = torch.tensor([ids]), torch.tensor([ids[:cut] + future])
    close(DECODERS[positions](first)[:, :cut], DECODERS[positions](second)[:, :cut])
    source, model = random_ids(1, 5), PAIRS[positions]
    close(model(source, first)[:, :cut], model(source, second)[:, :cut])


@given(ids=ids_lists, word=st.integers(0, VOCABULARY - 1), positions=st.sampled_from(list(POSITIONS)))
def test_a_causal_position_does_change_when_the_past_does(ids: list[int], word: int, positions: str) -> None:
    changed = [word if word != ids[0] else (word + 1) % VOCABULARY, *ids[1:]]
    model = DECODERS[positions]
    assert not torch.allclose(model(torch.tensor([ids]))[:, -1], model(torch.tensor([changed]))[:, -1], atol=1e-6)


@given(n=st.integers(2, 9), seed=seeds)
def test_permuting_the_inputs_of_a_position_free_encoder_permutes_its_outputs(n: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    vectors, order = torch.randn(2, n, 6, generator=generator), torch.randperm(n, generator=generator)
    close(SET_ENCODER.states(vectors[:, order]).x, SET_ENCODER.states(vectors).x[:, order])
    close(SET_ENCODER(vectors[:, order]), SET_ENCODER(vectors))


@given(
    seed=seeds,
    layout=st.sampled_from(["halves", "interleaved"]),
    base=st.floats(2, 1e6),
    distance=st.integers(-50, 50),
    start=st.integers(50, 400),
    shift=st.integers(0, 400),
)
def test_the_rotary_product_depends_on_the_distance_only(
    seed: int, layout: str, base: float, distance: int, start: int, shift: int
) -> None:
    settings = RotarySettings(layout=layout, base=base)  # type: ignore[arg-type]
    angles, rotary = RotaryAngles(settings, 8), Rotary(settings)
    generator = torch.Generator().manual_seed(seed)
    q, k = torch.randn(2, 1, 1, 1, 8, generator=generator)

    def product(i: int, j: int) -> torch.Tensor:
        return (rotary(q, angles(torch.tensor([i]))) * rotary(k, angles(torch.tensor([j])))).sum()

    close(product(start + shift, start + shift + distance), product(start, start + distance), 1e-3)
    close(rotary(q, angles(torch.tensor([start]))).norm(), q.norm())


@given(seed=seeds, n=st.integers(1, 8), m=st.integers(1, 8), scale=st.floats(0.01, 100))
def test_every_row_of_attention_weights_sums_to_one(seed: int, n: int, m: int, scale: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(2, 3, length, 4, generator=generator) * scale for length in (n, m, m))
    mask = torch.rand(2, 1, n, m, generator=generator) < 0.5
    mask[..., 0] = True
    z, weights, _ = attention(q, k, v, mask)
    close(weights.sum(-1), torch.ones(2, 3, n))
    assert (weights >= 0).all()
    assert (weights[~mask.expand_as(weights)] == 0).all()
    low, high = v.amin(2, keepdim=True), v.amax(2, keepdim=True)  # a mix of values lies among them
    assert ((z >= low - 1e-3 * scale) & (z <= high + 1e-3 * scale)).all()


@given(n=st.integers(1, 12), extra=st.integers(0, 12))
def test_the_look_ahead_mask_lets_each_see_itself_and_what_came_before(n: int, extra: int) -> None:
    mask = look_ahead_mask(n, n + extra)
    expected = [[j <= i + extra for j in range(n + extra)] for i in range(n)]
    assert mask.tolist() == expected


@given(seed=seeds, n=st.integers(1, 7), cross=st.booleans(), bias=st.sampled_from(["qkv", "", "q"]))
def test_with_silent_branches_the_input_comes_through_the_skip_connection(
    seed: int, n: int, cross: bool, bias: str
) -> None:
    torch.manual_seed(seed)
    settings = stack(attention=AttentionSettings(n_heads=4, bias=bias))
    block = Block(settings, 16 if cross else None)
    x, memory = torch.randn(2, n, 16), torch.randn(2, 3, 16) if cross else None
    with torch.no_grad():
        for name, weight in block.named_parameters():
            if "w_o" in name or "feed_forward.w_2" in name:
                weight.zero_()
    assert torch.equal(block(x, memory=memory), x)


@given(seed=seeds, n=st.integers(1, 7))
def test_with_all_attention_weights_at_zero_only_the_feed_forward_adds_to_the_input(seed: int, n: int) -> None:
    """A mask that allows nothing makes every weight zero; without a bias in w_o nothing is left of attention."""
    torch.manual_seed(seed)
    settings = stack(attention=AttentionSettings(n_heads=4, bias="qkv"))
    block, x = Block(settings, None), torch.randn(2, n, 16)
    nothing = torch.zeros(n, n, dtype=torch.bool)
    expected = x + block.feed_forward(block.feed_forward_residual.norm(x))
    close(block(x, mask=nothing), expected)
    post = Block(stack(attention=settings.attention, norm=NormSettings(place="post")), None)
    normed = post.self_residual.norm(x)
    close(post(x, mask=nothing), post.feed_forward_residual.norm(normed + post.feed_forward(normed)))


@given(d=st.integers(1, 33), a=st.integers(0, 2000), b=st.integers(0, 2000))
def test_sinusoids_are_bounded_and_unique(d: int, a: int, b: int) -> None:
    first, second = sinusoids(torch.tensor([a, b]), d)
    assert first.abs().max() <= 1
    if d > 1 and a != b:
        assert (first - second).abs().max() > 1e-7


def test_the_models_of_this_file_are_what_they_say() -> None:
    assert SET_ENCODER.source.positions is None
    assert all(not model.training for model in (*DECODERS.values(), *PAIRS.values()))
    again = rough(DECODERS["rotary"].settings)
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), DECODERS["rotary"].parameters(), strict=True))
