"""Same weights, same output and same gradients as torch.nn's own Transformer."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from glassformer.model.attention import MultiHeadAttention
from glassformer.model.masks import look_ahead_mask, padding_mask
from glassformer.model.settings import AttentionSettings, FeedForwardSettings, NormSettings, StackSettings
from glassformer.model.stack import Block, Stack
from tests.builders import close, right_keep

D, H, FF, B, N, M = 12, 3, 20, 3, 6, 7
TARGET_KEEP, MEMORY_KEEP = right_keep([6, 4, 1], N), right_keep([7, 2, 5], M)
LOOK_AHEAD = look_ahead_mask(N)


def settings(place: str = "pre", activation: str = "relu", bias: str = "qkvo") -> StackSettings:
    return StackSettings(
        d_model=D,
        n_layers=2,
        attention=AttentionSettings(n_heads=H, bias=bias),
        feed_forward=FeedForwardSettings(d_ff=FF, activation=activation),  # type: ignore[arg-type]
        norm=NormSettings(place=place),  # type: ignore[arg-type]
        dropout=0.0,
    )


def shake(module: nn.Module) -> None:
    """Every weight, also biases and norms, takes part."""
    with torch.no_grad():
        for p in module.parameters():
            p.add_(0.3 * torch.randn_like(p))


@torch.no_grad()
def copy_attention(theirs: nn.MultiheadAttention, ours: MultiHeadAttention) -> None:
    if theirs.in_proj_weight is None:
        weights: Sequence[Tensor] = (theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight)
    else:
        weights = theirs.in_proj_weight.chunk(3)
    projections = (ours.w_q, ours.w_k, ours.w_v)
    for projection, weight in zip(projections, weights, strict=True):
        projection.weight.copy_(weight)
    if theirs.in_proj_bias is not None:
        for projection, bias in zip(projections, theirs.in_proj_bias.chunk(3), strict=True):
            projection.bias.copy_(bias)
        ours.w_o.bias.copy_(theirs.out_proj.bias)
    ours.w_o.weight.copy_(theirs.out_proj.weight)


def copy_block(theirs: Any, ours: Block) -> None:
    copy_attention(theirs.self_attn, ours.self_attention)
    pairs = [(theirs.linear1, ours.feed_forward.w_1), (theirs.linear2, ours.feed_forward.w_2)]
    pairs.append((theirs.norm1, ours.self_residual.norm))
    if ours.cross_attention is not None:
        copy_attention(theirs.multihead_attn, ours.cross_attention)
        pairs += [(theirs.norm2, ours.cross_residual.norm), (theirs.norm3, ours.feed_forward_residual.norm)]
    else:
        pairs.append((theirs.norm2, ours.feed_forward_residual.norm))
    for a, b in pairs:
        b.load_state_dict(a.state_dict())


def same_output_and_gradients(
    theirs: tuple[Tensor, list[Tensor]], ours: tuple[Tensor, list[Tensor]], keep: Tensor | None = None
) -> None:
    """Equal where a position is real, and equal gradients of the inputs when only real positions count."""
    weights = torch.randn_like(theirs[0].detach())
    if keep is not None:
        weights = weights * keep[:, :, None]
    close(ours[0] * (weights != 0), theirs[0] * (weights != 0))
    for a, b in zip(
        torch.autograd.grad((ours[0] * weights).sum(), ours[1], retain_graph=True),
        torch.autograd.grad((theirs[0] * weights).sum(), theirs[1], retain_graph=True),
        strict=True,
    ):
        assert b.abs().sum() > 0
        close(a, b)


def leaves(*shapes: tuple[int, ...]) -> list[Tensor]:
    return [torch.randn(*shape, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("bias", ["qkvo", ""])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_self_attention_equals_multihead_attention(bias: str, causal: bool, padded: bool) -> None:
    theirs = nn.MultiheadAttention(D, H, bias=bool(bias), batch_first=True)
    shake(theirs)
    ours = MultiHeadAttention(settings(bias=bias))
    copy_attention(theirs, ours)
    (x,) = leaves((B, N, D))
    expected, _ = theirs(
        x,
        x,
        x,
        key_padding_mask=~TARGET_KEEP if padded else None,
        attn_mask=~LOOK_AHEAD if causal else None,
    )
    if padded:
        actual = ours(x, mask=padding_mask(TARGET_KEEP) & (LOOK_AHEAD if causal else torch.tensor(True)))
    else:
        actual = ours(x, causal=causal)
    same_output_and_gradients((expected, [x]), (actual, [x]))
    their_weight = torch.autograd.grad(expected.square().sum(), theirs.in_proj_weight)[0]
    our_weights = torch.autograd.grad(actual.square().sum(), [ours.w_q.weight, ours.w_k.weight, ours.w_v.weight])
    close(torch.cat(our_weights), their_weight, 1e-4)


@pytest.mark.parametrize("padded", [False, True])
def test_cross_attention_equals_multihead_attention_over_a_memory_of_another_width(padded: bool) -> None:
    theirs = nn.MultiheadAttention(D, H, kdim=10, vdim=10, batch_first=True)
    shake(theirs)
    ours = MultiHeadAttention(settings(), d_memory=10)
    copy_attention(theirs, ours)
    x, memory = leaves((B, N, D), (B, M, 10))
    expected, _ = theirs(x, memory, memory, key_padding_mask=~MEMORY_KEEP if padded else None)
    actual = ours(x, memory, mask=padding_mask(MEMORY_KEEP) if padded else None)
    same_output_and_gradients((expected, [x, memory]), (actual, [x, memory]))


STYLES = pytest.mark.parametrize(
    ("place", "activation"), [("pre", "relu"), ("pre", "gelu"), ("post", "relu"), ("post", "gelu")]
)


def their_layer(kind: Any, place: str, activation: str) -> Any:
    layer = kind(D, H, FF, dropout=0.0, activation=activation, batch_first=True, norm_first=place == "pre")
    shake(layer)
    return layer


@STYLES
@pytest.mark.parametrize("padded", [False, True])
def test_an_encoder_block_equals_an_encoder_layer(place: str, activation: str, padded: bool) -> None:
    theirs = their_layer(nn.TransformerEncoderLayer, place, activation)
    ours = Block(settings(place, activation), None)
    copy_block(theirs, ours)
    (x,) = leaves((B, N, D))
    expected = theirs(x, src_key_padding_mask=~TARGET_KEEP if padded else None)
    actual = ours(x, mask=padding_mask(TARGET_KEEP) if padded else None)
    same_output_and_gradients((expected, [x]), (actual, [x]))


@STYLES
@pytest.mark.parametrize("padded", [False, True])
def test_a_decoder_block_equals_a_decoder_layer(place: str, activation: str, padded: bool) -> None:
    theirs = their_layer(nn.TransformerDecoderLayer, place, activation)
    ours = Block(settings(place, activation), D)
    copy_block(theirs, ours)
    x, memory = leaves((B, N, D), (B, M, D))
    expected = theirs(x, memory, tgt_mask=~LOOK_AHEAD, memory_key_padding_mask=~MEMORY_KEEP if padded else None)
    memory_mask = padding_mask(MEMORY_KEEP) if padded else None
    actual = ours(x, mask=LOOK_AHEAD, memory=memory, memory_mask=memory_mask)
    same_output_and_gradients((expected, [x, memory]), (actual, [x, memory]))


def copy_stack(theirs: Any, ours: Stack) -> None:
    for layer, block in zip(theirs.layers, ours.blocks, strict=True):
        copy_block(layer, block)
    if ours.norm is not None:
        ours.norm.load_state_dict(theirs.norm.state_dict())


@STYLES
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_an_encoder_stack_equals_the_whole_encoder(place: str, activation: str, padded: bool, masked: bool) -> None:
    norm = nn.LayerNorm(D) if place == "pre" else None
    layer = their_layer(nn.TransformerEncoderLayer, place, activation)
    theirs = nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=False)
    shake(theirs)
    ours = Stack(settings(place, activation))
    copy_stack(theirs, ours)
    (x,) = leaves((B, N, D))
    band = (torch.arange(N)[:, None] - torch.arange(N)).abs() <= 1  # each sees its neighbours
    band[:, 0] = True  # and the first, so that no row is left with nothing, which is NaN over there
    keep = TARGET_KEEP if padded else None
    expected = theirs(x, mask=~band if masked else None, src_key_padding_mask=None if keep is None else ~keep)
    actual = ours(x, keep, mask=band if masked else None)
    same_output_and_gradients((expected, [x]), (actual, [x]), keep)


@STYLES
@pytest.mark.parametrize("padded", [False, True])
def test_a_decoder_stack_equals_the_whole_decoder(place: str, activation: str, padded: bool) -> None:
    norm = nn.LayerNorm(D) if place == "pre" else None
    theirs = nn.TransformerDecoder(their_layer(nn.TransformerDecoderLayer, place, activation), 2, norm)
    shake(theirs)
    ours = Stack(settings(place, activation), causal=True, d_memory=D)
    copy_stack(theirs, ours)
    x, memory = leaves((B, N, D), (B, M, D))
    expected = theirs(
        x,
        memory,
        tgt_mask=~LOOK_AHEAD,
        tgt_is_causal=True,
        tgt_key_padding_mask=~TARGET_KEEP if padded else None,
        memory_key_padding_mask=~MEMORY_KEEP if padded else None,
    )
    keep, memory_keep = (TARGET_KEEP, MEMORY_KEEP) if padded else (None, None)
    actual = ours(x, keep, memory=memory, memory_keep=memory_keep)
    same_output_and_gradients((expected, [x, memory]), (actual, [x, memory]), keep)
