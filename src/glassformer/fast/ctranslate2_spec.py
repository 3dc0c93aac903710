"""Our weights as CTranslate2 lays them out.

What it has no word for is put in words it has, with equal numbers: a translator's grouped heads become copies, heads
whose keys and values differ in width are filled up with zeros, no positions are positions of zero.

h heads, d width of a head, D width of a head after filling up
"""

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from ctranslate2.specs import common_spec, transformer_spec
from numpy.typing import NDArray
from torch import Tensor, nn

from glassformer.data.tokenizer import END, PAD, START
from glassformer.errors import UserError, require
from glassformer.model import EncoderDecoder, MultiHeadAttention
from glassformer.model.heads import TokenHead
from glassformer.model.inputs import Tokens
from glassformer.model.layers import FeedForward
from glassformer.model.positions import LearnedPositions, SinusoidalPositions, sinusoids
from glassformer.model.settings import (
    DecoderOnlySettings,
    EncoderDecoderSettings,
    ModelSettings,
    StackSettings,
    TokenHeadSettings,
    TokensSettings,
)
from glassformer.model.stack import Block, Stack

# Waves have no longest position, but a table of them has.
N_POSITIONS = 1024

ACTIVATIONS = {
    "relu": common_spec.Activation.RELU,
    "gelu": common_spec.Activation.GELU,
    "gelu_tanh": common_spec.Activation.GELUTanh,
    "silu": common_spec.Activation.SWISH,
    "tanh": common_spec.Activation.Tanh,
}


def cannot_run(settings: ModelSettings) -> str | None:
    """Why CTranslate2 cannot run such a model, or None if it can."""
    if not isinstance(settings, EncoderDecoderSettings | DecoderOnlySettings):
        return f"it translates or completes, and the model is {settings.kind}"
    if not isinstance(settings.source, TokensSettings):
        return f"it reads tokens, and the source is {settings.source.kind}"
    if not isinstance(settings.head, TokenHeadSettings):
        return f"it says tokens, and the head is for {settings.head.kind}"
    if settings.head.transform is not None:
        return "its output is one projection, and the head has a transform"
    sides = [("decoder", settings.source, settings.decoder)]
    if isinstance(settings, EncoderDecoderSettings):
        sides = [("encoder", settings.source, settings.encoder), ("decoder", settings.target, settings.decoder)]
    for name, tokens, stack in sides:
        if stack.n_layers == 0:
            return f"it needs at least one layer, and the {name} has none"
        if tokens.n_types > 0:
            return "it knows no token types, and the model has some"
        if stack.attention.rotary is not None and tokens.positions is not None:
            return f"it takes rotary or added positions, and the {name} has both"
        if stack.attention.rotary is not None and stack.attention.rotary.scaling is not None:
            return f"it is not told how to slow turns, and the {name} does"
    norms = [stack.norm for _, _, stack in sides] + [t.norm for _, t, _ in sides if t.norm is not None]
    if len({norm.eps for norm in norms}) > 1:
        return "it has one epsilon for all norms, and the model has several"
    return None


def check_can_run(settings: ModelSettings) -> None:
    if (reason := cannot_run(settings)) is not None:
        raise UserError(f"CTranslate2 cannot run this model: {reason}.", "Use the torch engine.")


def to_spec(
    model: EncoderDecoder,
    tokens: list[str],
    source_tokens: list[str] | None = None,
    end_source: bool = True,
    n_positions: int = N_POSITIONS,
) -> Any:
    """The model as CTranslate2 describes one; with `end_source` it will add the end to each source by itself."""
    settings = model.settings
    check_can_run(settings)
    assert isinstance(model.source, Tokens)
    assert isinstance(model.target, Tokens)
    assert isinstance(model.head, TokenHead)
    encoder = transformer_spec.TransformerEncoderSpec(**shape(settings.encoder))
    decoder = transformer_spec.TransformerDecoderSpec(**shape(settings.decoder))
    fill_tokens(encoder, encoder.embeddings[0], model.source)
    fill_tokens(decoder, decoder.embeddings, model.target)
    if settings.encoder.attention.rotary is None:
        encoder.position_encodings.encodings = array(position_table(model.source, n_positions))
    if settings.decoder.attention.rotary is None:
        decoder.position_encodings.encodings = array(position_table(model.target, n_positions))
    fill_stack(encoder, model.encoder)
    fill_stack(decoder, model.decoder)
    fill_linear(decoder.projection, model.head.w)
    spec = transformer_spec.TransformerSpec(encoder, decoder)
    spec.register_source_vocabulary(names(source_tokens or tokens, model.source.embedding.num_embeddings))
    spec.register_target_vocabulary(names(tokens, model.target.embedding.num_embeddings))
    config = spec.config
    # Our tokenizers have no unknown token, but CTranslate2 would append one, with an id that the table has not.
    # Padding takes that part: no id moves, and padding never comes out of a text.
    config.unk_token, config.bos_token, config.eos_token = tokens[PAD], tokens[START], tokens[END]
    config.decoder_start_token, config.add_source_eos = tokens[START], end_source
    config.layer_norm_epsilon = settings.encoder.norm.eps
    return spec


def shape(settings: StackSettings) -> dict[str, Any]:
    """A stack in the words of CTranslate2's specifications."""
    rotary = settings.attention.rotary
    shape: dict[str, Any] = {
        "num_layers": settings.n_layers,
        "num_heads": settings.attention.n_heads,
        "head_dim": max(settings.d_k, settings.d_v),
        "pre_norm": settings.norm.place == "pre",
        "activation": ACTIVATIONS[settings.feed_forward.activation],
        "ffn_glu": settings.feed_forward.gated,
        "no_final_norm": True,  # set by hand, as a post-norm stack may have one too
    }
    if rotary is not None:
        interleaved = rotary.layout == "interleaved"
        shape |= {"rotary_dim": settings.d_k, "rotary_interleave": interleaved, "rotary_base": rotary.base}
    return shape


def names(tokens: list[str], size: int) -> list[str]:
    """A name for each row of a table, which may have more rows than there are tokens."""
    require(
        len(set(tokens)) == len(tokens), "The vocabulary has the same token twice.", "Use the tokenizer of the model."
    )
    return tokens[:size] + [f"<unused {i}>" for i in range(len(tokens), size)]


def fill_tokens(spec: Any, table: Any, tokens: Tokens) -> None:
    table.weight = array(tokens.embedding.weight)
    spec.scale_embeddings = tokens.scale != 1.0
    if tokens.norm is not None:
        vars(spec)["layernorm_embedding"] = _norm(tokens.norm)


def position_table(tokens: Tokens, n: int) -> Tensor:
    d = tokens.embedding.embedding_dim
    match tokens.positions:
        case LearnedPositions() as positions:
            return positions.table
        case SinusoidalPositions() as positions:
            return sinusoids(torch.arange(n), d, positions.layout)
        case None:
            return torch.zeros(n, d)


def fill_stack(spec: Any, stack: Stack) -> None:
    for layer, block in zip(spec.layer, stack.blocks, strict=True):
        assert isinstance(block, Block)
        _fill_attention(layer.self_attention, block.self_attention, fused=True)
        layer.self_attention.layer_norm = _norm(block.self_residual.norm)
        if block.cross_attention is not None and block.cross_residual is not None:
            _fill_attention(layer.attention, block.cross_attention, fused=False)
            layer.attention.layer_norm = _norm(block.cross_residual.norm)
        _fill_feed_forward(layer.ffn, block.feed_forward)
        layer.ffn.layer_norm = _norm(block.feed_forward_residual.norm)
    if stack.norm is not None:
        vars(spec)["layer_norm"] = _norm(stack.norm)


def _fill_attention(spec: Any, attention: MultiHeadAttention, fused: bool) -> None:
    """Self-attention has queries, keys and values in one matrix; cross-attention keys and values only."""
    h, d_k, d_v = attention.n_heads, attention.d_k, attention.d_v
    width = max(d_k, d_v)
    q = _heads(attention.w_q, h, d_k, width)
    h_kv = int(getattr(spec, "num_heads_kv", h))
    k, v = _heads(attention.w_k, h_kv, d_k, width), _heads(attention.w_v, h_kv, d_v, width)
    parts = [[q, k, v]] if fused else [[q], [k, v]]
    for linear, group in zip(spec.linear, parts, strict=False):
        linear.weight = array(torch.cat([weight for weight, _ in group]))
        linear.bias = array(torch.cat([bias for _, bias in group]))
    w_o = attention.w_o.weight.view(-1, h, d_v)  # (d_model, h, d_v)
    spec.linear[-1].weight = array(F.pad(w_o, (0, width - d_v)).flatten(1))
    if attention.w_o.bias is not None:
        spec.linear[-1].bias = array(attention.w_o.bias)
    spec.queries_scale = 1 / math.sqrt(d_k)  # of the true width, not of the filled one


def _heads(linear: nn.Linear, h: int, d: int, width: int) -> tuple[Tensor, Tensor]:
    """Weight (h * D, d_in) and bias of a projection, each of its heads filled up, and copied until there are h."""
    weight = linear.weight.view(-1, d, linear.in_features)  # (h_kv, d, d_in)
    bias = torch.zeros(weight.shape[:2]) if linear.bias is None else linear.bias.view(-1, d)  # (h_kv, d)
    copies = h // weight.shape[0]
    weight = F.pad(weight, (0, 0, 0, width - d)).repeat_interleave(copies, dim=0)
    bias = F.pad(bias, (0, width - d)).repeat_interleave(copies, dim=0)
    return weight.flatten(0, 1), bias.flatten()


def _fill_feed_forward(spec: Any, feed_forward: FeedForward) -> None:
    if feed_forward.w_gate is None:
        fill_linear(spec.linear_0, feed_forward.w_1)
    else:
        fill_linear(spec.linear_0, feed_forward.w_gate)
        fill_linear(spec.linear_0_noact, feed_forward.w_1)
    fill_linear(spec.linear_1, feed_forward.w_2)


def fill_linear(spec: Any, linear: nn.Linear) -> None:
    spec.weight = array(linear.weight)
    if linear.bias is not None:
        spec.bias = array(linear.bias)


def _norm(norm: nn.Module) -> Any:
    rms = isinstance(norm, nn.RMSNorm)
    spec = common_spec.LayerNormSpec(rms_norm=rms)
    spec.gamma = array(norm.weight)
    if not rms:
        spec.beta = array(norm.bias)
    return spec


def array(tensor: Tensor | nn.Module) -> NDArray[np.float32]:
    """A copy: CTranslate2 quantises in place, and would change our weights."""
    assert isinstance(tensor, Tensor)
    return np.array(tensor.detach().float().cpu().numpy(), order="C", copy=True)
