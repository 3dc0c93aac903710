"""Each front-end computes what it says, against a direct formula."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from glassformer.model import build
from glassformer.model.inputs import Frames, Patches, Tokens, Vectors
from glassformer.model.positions import sinusoids
from glassformer.model.settings import (
    DecoderOnlySettings,
    EncoderDecoderSettings,
    EncoderOnlySettings,
    FramesSettings,
    LearnedSettings,
    NormSettings,
    PatchesSettings,
    Positions,
    SinusoidalSettings,
    TokensSettings,
    VectorsSettings,
)
from tests.builders import VOCABULARY, close, random_ids, rough, stack, tokens

D = 6


def waves(n: int) -> torch.Tensor:
    return sinusoids(torch.arange(n), D).float()


@pytest.mark.parametrize("scale", [False, True])
def test_tokens_are_rows_of_the_table_scaled_plus_positions(scale: bool) -> None:
    front_end, ids = Tokens(tokens(scale=scale), D), random_ids(2, 5)
    x, keep = front_end(ids)
    factor = math.sqrt(D) if scale else 1
    close(x, front_end.embedding.weight[ids] * factor + waves(5))
    assert keep is None


def test_tokens_with_types_and_a_norm_are_berts_sum() -> None:
    settings = tokens(n_types=2, norm=NormSettings(eps=1e-12), positions=LearnedSettings(max_len=7))
    front_end = Tokens(settings, D)
    nn.init.normal_(front_end.positions.table)
    ids, types = random_ids(2, 5), random_ids(2, 5, seed=2) % 2
    total = front_end.embedding.weight[ids] + front_end.types.weight[types] + front_end.positions.table[:5]
    close(front_end(ids, types=types)[0], F.layer_norm(total, (D,), eps=1e-12))
    close(front_end(ids)[0], front_end(ids, types=torch.zeros_like(ids))[0])


@pytest.mark.parametrize(
    ("positions", "scaled"), [(SinusoidalSettings(), True), (LearnedSettings(), False), (None, False)]
)
def test_words_are_scaled_beside_waves_unless_said_otherwise(positions: Positions | None, scaled: bool) -> None:
    assert TokensSettings(positions=positions).is_scaled == scaled
    assert not TokensSettings(positions=positions, scale=False).is_scaled
    assert TokensSettings(positions=positions, scale=True).is_scaled


def test_given_positions_take_the_place_of_counted_ones() -> None:
    front_end, ids = Tokens(tokens(scale=False), D), random_ids(2, 3)
    x, _ = front_end(ids, positions=torch.tensor([[7, 0, 2], [1, 1, 1]]))
    close(x, front_end.embedding.weight[ids] + waves(8)[torch.tensor([[7, 0, 2], [1, 1, 1]])])


def test_vectors_are_projected_plus_positions() -> None:
    front_end, raw = Vectors(VectorsSettings(n_features=4, dropout=0.0), D), torch.randn(2, 5, 4)
    close(front_end(raw)[0], raw @ front_end.projection.weight.T + front_end.projection.bias + waves(5))


def test_frames_go_through_one_convolution_of_width_three_per_stride() -> None:
    front_end = Frames(FramesSettings(n_features=4, strides=(1, 2), dropout=0.0), D)
    raw = torch.randn(1, 9, 4)

    def convolve(x: torch.Tensor, layer: Any, stride: int) -> torch.Tensor:
        padded = F.pad(x[0], (0, 0, 1, 1))
        out = [
            sum(layer.weight[:, :, j] @ padded[t + j] for j in range(3)) + layer.bias
            for t in range(0, x.shape[1], stride)
        ]
        return F.gelu(torch.stack(out))[None]

    expected = convolve(convolve(raw, front_end.convolutions[0], 1), front_end.convolutions[1], 2)
    assert expected.shape == (1, 5, D)
    close(front_end(raw)[0], expected + waves(5))


def test_frames_without_strides_are_a_plain_projection() -> None:
    front_end, raw = Frames(FramesSettings(n_features=4, strides=(), dropout=0.0), D), torch.randn(2, 5, 4)
    close(front_end(raw)[0], front_end.projection(raw) + waves(5))


@pytest.mark.parametrize("class_token", [False, True])
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("margin", [0, 1])
def test_patches_are_squares_flattened_and_projected_row_by_row(class_token: bool, learned: bool, margin: int) -> None:
    settings = PatchesSettings(
        height=4, width=6, n_channels=3, patch=2, margin=margin, class_token=class_token, learned_positions=learned
    )
    front_end, pictures = Patches(settings, D), torch.randn(2, 3, 4, 6)
    for parameter in front_end.parameters():
        nn.init.normal_(parameter)
    weight = front_end.projection.weight.flatten(1)
    framed, side = F.pad(pictures, (margin, margin, margin, margin)), 2 + 2 * margin
    squares = [framed[:, :, r : r + side, c : c + side].flatten(1) for r in (0, 2) for c in (0, 2, 4)]
    expected = torch.stack([square @ weight.T + front_end.projection.bias for square in squares], dim=1)
    if class_token:
        expected = torch.cat([front_end.class_token.expand(2, 1, D), expected], dim=1)
    if learned:
        expected = expected + front_end.positions
    close(front_end(pictures)[0], expected)


@pytest.mark.parametrize("tie_source_target", [False, True])
@pytest.mark.parametrize("tie_output", [False, True])
def test_tied_tables_share_memory_and_gradient_and_others_do_not(tie_source_target: bool, tie_output: bool) -> None:
    settings = EncoderDecoderSettings(
        source=tokens(),
        target=tokens(),
        encoder=stack(),
        decoder=stack(),
        tie_source_target=tie_source_target,
        tie_output=tie_output,
    )
    model = rough(settings)
    source, target, head = model.source.embedding.weight, model.target.embedding.weight, model.head.w.weight
    assert (source.data_ptr() == target.data_ptr()) == tie_source_target
    assert (head.data_ptr() == target.data_ptr()) == tie_output
    n_tables = 3 - tie_source_target - tie_output
    assert len({id(p) for p in (source, target, head)}) == n_tables
    # Only word 1 is in the source and word 2 in the target: who has a gradient where?
    model(torch.full((1, 3), 1), torch.full((1, 3), 2))[:, :, 5].sum().backward()
    touched = {
        name: set(p.grad.abs().sum(1).nonzero()[:, 0].tolist())
        for name, p in {"source": source, "target": target, "head": head}.items()
    }
    expected = {"source": {1}, "target": {2}, "head": {5}}
    if tie_source_target:
        expected["source"] = expected["target"] = {1, 2}
    if tie_output:
        expected["target"] = expected["head"] = expected["target"] | {5}
        if tie_source_target:
            expected["source"] = expected["target"]
    assert touched == expected


@pytest.mark.parametrize("d_model", [16, 64, 256])
@pytest.mark.parametrize("tie", [False, True])
@pytest.mark.parametrize("shape", ["encoder_decoder", "encoder_decoder_post", "decoder_only", "encoder_only"])
def test_a_fresh_model_is_as_unsure_as_a_fair_die(shape: str, tie: bool, d_model: int) -> None:
    n_words = 500
    source, inner = tokens(vocab_size=n_words, n_types=2, scale=True), stack(d_model=d_model, n_layers=4)
    if shape == "encoder_decoder_post":
        inner = stack(d_model=d_model, n_layers=4, norm=NormSettings(place="post"))
    settings: Any
    if shape.startswith("encoder_decoder"):
        settings = EncoderDecoderSettings(source=source, target=source, encoder=inner, decoder=inner, tie_output=tie)
    elif shape == "decoder_only":
        settings = DecoderOnlySettings(source=source, decoder=inner, tie_output=tie)
    else:
        settings = EncoderOnlySettings(source=source, encoder=inner, tie_output=tie)
    model = build(settings).eval()
    ids, targets = torch.randint(n_words, (2, 4, 24)).unbind()
    logits = model(ids, ids) if shape.startswith("encoder_decoder") else model(ids)
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten()).item()
    assert math.log(n_words) - 0.3 < loss < math.log(n_words) + 1.2
    assert 0.005 < logits.std().item() < 1.6


def test_type_vectors_start_no_louder_than_word_vectors() -> None:
    settings = EncoderOnlySettings(source=TokensSettings(vocab_size=900, n_types=2), encoder=stack(d_model=256))
    model = build(settings)
    words, types = model.source.embedding.weight.std(), model.source.types.weight.std()
    assert types.item() == pytest.approx(words.item(), rel=0.15)


def test_the_same_seed_builds_the_same_model() -> None:
    settings = DecoderOnlySettings(source=tokens(), decoder=stack())
    torch.manual_seed(5)
    first = build(settings)
    torch.manual_seed(5)
    second = build(settings)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert first.source.embedding.num_embeddings == VOCABULARY


def test_normal_initialisation_is_quieter_where_branches_join_the_stream() -> None:
    inner = stack(d_model=128, n_layers=8)
    block = build(DecoderOnlySettings(source=tokens(), decoder=inner, init_std=0.05)).decoder.blocks[3]
    for weight in (block.self_attention.w_o.weight, block.feed_forward.w_2.weight):
        assert weight.std().item() == pytest.approx(0.05 / math.sqrt(2 * 8), rel=0.1)
    for weight in (block.self_attention.w_q.weight, block.feed_forward.w_1.weight):
        assert weight.std().item() == pytest.approx(0.05, rel=0.1)
    assert block.feed_forward.w_1.bias.eq(0).all()


def test_xavier_initialisation_follows_the_shape_of_each_matrix() -> None:
    block = build(DecoderOnlySettings(source=tokens(), decoder=stack(d_model=128), init_std=None)).decoder.blocks[0]
    for weight in (block.self_attention.w_o.weight, block.feed_forward.w_1.weight):
        assert weight.std().item() == pytest.approx(math.sqrt(2 / sum(weight.shape)), rel=0.1)
