"""An encoder over texts of unequal length laid end to end: no work on padding, and less on moving numbers about.

All but attention looks at one position alone, so the positions of a whole batch go through as one long row; attention
takes the texts of equal length together, without a mask. Queries, keys and values are one product. The numbers are
those of the model's own modules, but for rounding.

t positions of all texts together, d width, h heads, g texts of one length n
"""

from collections.abc import Sequence
from ctypes import byref
from dataclasses import dataclass
from itertools import groupby

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from glassformer.fast import native
from glassformer.model import DecoderOnly, Transformer
from glassformer.model.inputs import Tokens
from glassformer.model.settings import StackSettings
from glassformer.model.stack import Block, Stack
from glassformer.tasks.embedder import States

ROWS = 256  # of the feed-forward layer at once: what it spreads them to stays in the cache


@dataclass(frozen=True)
class Layer:
    """The weights of a block, laid out for use."""

    qkv: tuple[Tensor, Tensor]  # (d, 3d) and its bias
    w_o: tuple[Tensor, Tensor]
    w_1: tuple[Tensor, Tensor]
    w_2: tuple[Tensor, Tensor]
    activation: nn.Module
    norms: tuple[nn.Module, nn.Module]


def choose_states(model: Transformer) -> States | None:
    """The packed way for a model that it can run; None leaves the model its own."""
    if isinstance(model, DecoderOnly):
        stack, settings = model.decoder, model.settings.decoder
    else:
        stack, settings = model.encoder, model.settings.encoder
    on_cpu = next(model.parameters()).device.type == "cpu"
    if not on_cpu or not isinstance(model.source, Tokens) or not PackedEncoder.supports(settings):
        return None
    can_run = next(model.parameters()).dtype == torch.float32 and native.why_no_native() is None
    return (NativePackedEncoder if can_run else PackedEncoder)(model.source, stack, settings)


class PackedEncoder:
    """Call it with rows of ids, equal lengths side by side: gives their last states one after the other, (t, d)."""

    def __init__(self, source: Tokens, stack: Stack, settings: StackSettings) -> None:
        self.source, self.causal, self.n_heads = source, stack.causal, settings.attention.n_heads
        self.pre = settings.norm.place == "pre"
        self.final = stack.norm
        self.layers = [_layer(block) for block in stack.blocks if isinstance(block, Block)]

    @staticmethod
    def supports(settings: StackSettings) -> bool:
        a = settings.attention
        plain = a.rotary is None and a.kv_heads == a.n_heads
        even = settings.d_k * a.n_heads == settings.d_v * a.n_heads == settings.d_model
        return plain and even and not settings.feed_forward.gated

    @torch.inference_mode()
    def __call__(self, rows: Sequence[Sequence[int]]) -> Tensor:
        groups = [(n, len(list(same))) for n, same in groupby(map(len, rows))]
        ids = torch.tensor([i for row in rows for i in row])[None]
        positions = torch.cat([torch.arange(n).repeat(g) for n, g in groups])
        x = self.source(ids, positions=positions)[0][0]
        for layer in self.layers:
            x = self._attend(x, layer, groups)
            x = self._feed_forward(x, layer)
        return x if self.final is None else self.final(x)  # type: ignore[no-any-return]

    def _attend(self, x: Tensor, layer: Layer, groups: Sequence[tuple[int, int]]) -> Tensor:
        norm = layer.norms[0]
        qkv = _product(norm(x) if self.pre else x, layer.qkv)  # (t, 3d)
        z, begin = torch.empty_like(x), 0
        for n, g in groups:
            end = begin + g * n
            q, k, v = qkv[begin:end].view(g, n, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)  # (g, h, n, d / h)
            found = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal and n > 1)
            z[begin:end] = found.transpose(1, 2).reshape(g * n, -1)
            begin = end
        out = _product(z, layer.w_o).add_(x)
        return out if self.pre else norm(out)

    def _feed_forward(self, x: Tensor, layer: Layer) -> Tensor:
        norm = layer.norms[1]
        out, y = torch.empty_like(x), norm(x) if self.pre else x
        for i in range(0, len(x), ROWS):
            hidden = layer.activation(_product(y[i : i + ROWS], layer.w_1))
            torch.addmm(layer.w_2[1], hidden, layer.w_2[0], out=out[i : i + ROWS])
        out.add_(x)
        return out if self.pre else norm(out)


class NativePackedEncoder(PackedEncoder):
    """The same with C++ between the products: many small attentions and separate biases cost torch a tenth more."""

    def __init__(self, source: Tokens, stack: Stack, settings: StackSettings) -> None:
        super().__init__(source, stack, settings)
        self.activation = native.ACTIVATIONS[settings.feed_forward.activation]
        self.norms = {norm: native.norm_of(None if self.pre else norm) for layer in self.layers for norm in layer.norms}

    def _attend(self, x: Tensor, layer: Layer, groups: Sequence[tuple[int, int]]) -> Tensor:
        qkv = (layer.norms[0](x) if self.pre else x) @ layer.qkv[0]  # (t, 3d)
        lengths = torch.cat([torch.tensor([0]), *(torch.full((g,), n) for n, g in groups)])
        z, begins = torch.empty_like(x), lengths.cumsum(0)
        native.library().glassformer_attend(
            qkv.data_ptr(), layer.qkv[1].data_ptr(), begins.data_ptr(), len(begins) - 1, x.shape[1], self.n_heads,
            self.causal, z.data_ptr(), torch.get_num_threads(),
        )  # fmt: skip
        return self._add(z @ layer.w_o[0], x, layer.w_o[1], layer.norms[0])

    def _feed_forward(self, x: Tensor, layer: Layer) -> Tensor:
        hidden = (layer.norms[1](x) if self.pre else x) @ layer.w_1[0]
        native.library().glassformer_activate(
            hidden.data_ptr(), layer.w_1[1].data_ptr(), *hidden.shape, self.activation, torch.get_num_threads()
        )
        return self._add(hidden @ layer.w_2[0], x, layer.w_2[1], layer.norms[1])

    def _add(self, out: Tensor, x: Tensor, bias: Tensor, norm: nn.Module) -> Tensor:
        struct, _ = self.norms[norm]
        native.library().glassformer_add(
            out.data_ptr(), x.data_ptr(), bias.data_ptr(), *x.shape, byref(struct), torch.get_num_threads()
        )
        return out


def _product(x: Tensor, weights: tuple[Tensor, Tensor]) -> Tensor:
    return torch.addmm(weights[1], x, weights[0])


def _layer(block: Block) -> Layer:
    a, ff = block.self_attention, block.feed_forward
    return Layer(
        _weights(a.w_q, a.w_k, a.w_v),
        _weights(a.w_o),
        _weights(ff.w_1),
        _weights(ff.w_2),
        ff.activation,
        (block.self_residual.norm, block.feed_forward_residual.norm),
    )


def _weights(*parts: nn.Linear) -> tuple[Tensor, Tensor]:
    """Turned to (in, out), which is faster here, with zeros for biases that are not there."""
    weight = torch.cat([part.weight.detach() for part in parts])
    biases = [part.weight.new_zeros(part.out_features) if part.bias is None else part.bias.detach() for part in parts]
    return weight.T.contiguous(), torch.cat(biases)
