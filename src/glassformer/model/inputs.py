"""Front-ends: anything into vectors. Each is forward(raw, keep) -> (x, keep); additive positions live here.

b batch, n length, d width of the model, t audio frames, f features of one frame or vector
"""

import math
from typing import assert_never

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from glassformer.errors import UserError, require
from glassformer.model.dropout import Dropout
from glassformer.model.layers import build_norm
from glassformer.model.masks import check_keep, lengths_to_keep
from glassformer.model.positions import (
    LearnedPositions,
    SinusoidalPositions,
    build_positions,
    check_positions,
    count_positions,
)
from glassformer.model.settings import FramesSettings, FrontEnd, PatchesSettings, TokensSettings, VectorsSettings

Embedded = tuple[Tensor, Tensor | None]


class Tokens(nn.Module):
    """Ids looked up in a table, plus positions."""

    def __init__(self, settings: TokensSettings, d_model: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(settings.vocab_size, d_model)
        self.types = nn.Embedding(settings.n_types, d_model) if settings.n_types else None
        self.scale = math.sqrt(d_model) if settings.is_scaled else 1.0
        self.positions = build_positions(settings.positions, d_model)
        self.norm = build_norm(settings.norm, d_model) if settings.norm is not None else None
        self.dropout = Dropout(settings.dropout)

    def forward(
        self, ids: Tensor, keep: Tensor | None = None, positions: Tensor | None = None, types: Tensor | None = None
    ) -> Embedded:
        check_ids(ids, self.embedding.num_embeddings, "vocab_size")
        check_keep(keep, ids.shape[0], ids.shape[1], "keep")
        check_positions(positions, ids.shape[0], ids.shape[1])
        x = self.embedding(ids) * self.scale  # (b, n, d)
        if self.types is None and types is not None:
            raise UserError("types are given, but the model has none: n_types is 0.", "Give types = None.")
        if self.types is not None:
            types = torch.zeros_like(ids) if types is None else types
            check_ids(types, self.types.num_embeddings, "n_types")
            if types.shape != ids.shape:
                raise UserError(
                    f"types have shape {tuple(types.shape)}, but the ids have {tuple(ids.shape)}.",
                    "Give one type for each id.",
                )
            x = x + self.types(types)
        x = _add_positions(x, self.positions, keep, positions)
        return self.dropout(x if self.norm is None else self.norm(x)), keep


class Vectors(nn.Module):
    """Any series of vectors, projected, plus positions."""

    def __init__(self, settings: VectorsSettings, d_model: int) -> None:
        super().__init__()
        self.projection = nn.Linear(settings.n_features, d_model)
        self.positions = build_positions(settings.positions, d_model)
        self.dropout = Dropout(settings.dropout)

    def forward(self, vectors: Tensor, keep: Tensor | None = None) -> Embedded:
        vectors = _clean_series(vectors, self.projection.in_features, keep, self.projection.weight.dtype)
        x = _add_positions(self.projection(vectors), self.positions, keep, None)
        return self.dropout(x), keep  # (b, n, d)


class Frames(nn.Module):
    """Audio features shortened by strided convolutions, plus positions. Padding stands at the end of a row."""

    def __init__(self, settings: FramesSettings, d_model: int) -> None:
        super().__init__()
        self.n_features, self.strides = settings.n_features, settings.strides
        widths = [settings.n_features] + [d_model] * len(settings.strides)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(width, d_model, kernel_size=3, stride=stride, padding=1)
            for width, stride in zip(widths, settings.strides, strict=False)
        )
        self.projection = None if settings.strides else nn.Linear(settings.n_features, d_model)
        self.positions = build_positions(settings.positions, d_model)
        self.dropout = Dropout(settings.dropout)

    def forward(self, frames: Tensor, keep: Tensor | None = None) -> Embedded:
        frames = _clean_series(frames, self.n_features, keep, next(self.parameters()).dtype)
        _check_padded_at_end(keep)
        x = frames if self.projection is None else self.projection(frames)  # (b, t, f)
        for convolution, stride in zip(self.convolutions, self.strides, strict=True):
            if keep is not None:  # what stands in the padding must not leak into its neighbour
                x = x.masked_fill(~keep[:, :, None], 0.0)
            x = F.gelu(convolution(x.transpose(1, 2))).transpose(1, 2)  # (b, ceil(t / stride), d)
            if keep is not None:
                keep = lengths_to_keep((keep.sum(dim=1) + stride - 1) // stride, x.shape[1])
        return self.dropout(_add_positions(x, self.positions, keep, None)), keep


class Patches(nn.Module):
    """A picture cut into squares, maybe a class token before them, plus learned positions."""

    def __init__(self, settings: PatchesSettings, d_model: int) -> None:
        super().__init__()
        self.shape = (settings.n_channels, settings.height, settings.width)
        patch, margin = settings.patch, settings.margin
        self.projection = nn.Conv2d(settings.n_channels, d_model, patch + 2 * margin, stride=patch, padding=margin)
        self.class_token = nn.Parameter(torch.zeros(d_model)) if settings.class_token else None
        n = settings.n_patches + settings.class_token
        self.positions = nn.Parameter(torch.empty(n, d_model)) if settings.learned_positions else None
        self.dropout = Dropout(settings.dropout)

    def forward(self, pictures: Tensor, keep: Tensor | None = None) -> Embedded:
        if pictures.dim() != 4 or pictures.shape[0] < 1 or tuple(pictures.shape[1:]) != self.shape:
            raise UserError(
                f"The pictures have shape {tuple(pictures.shape)}, but the model reads (batch, channels, height, "
                f"width) with {self.shape}.",
                "Resize them, or set patches.height, patches.width and patches.n_channels.",
            )
        if not pictures.is_floating_point():
            raise UserError(
                f"The pictures have type {pictures.dtype}, but the model reads floats.",
                "Divide bytes by 255, and normalise them as in training.",
            )
        require(keep is None, "Pictures have no padding, but keep is given.", "Give keep = None.")
        x = self.projection(pictures.to(self.projection.weight.dtype)).flatten(2).transpose(1, 2)  # (b, n, d)
        if self.class_token is not None:
            x = torch.cat([self.class_token.expand(x.shape[0], 1, -1), x], dim=1)
        x = x if self.positions is None else x + self.positions
        return self.dropout(x), None


def _add_positions(
    x: Tensor,
    table: SinusoidalPositions | LearnedPositions | None,
    keep: Tensor | None,
    positions: Tensor | None,
) -> Tensor:
    if table is None:
        return x
    positions = count_positions(x.shape[1], keep, x.device) if positions is None else positions
    out: Tensor = x + table(positions)
    return out


def check_rows(ids: Tensor) -> None:
    """Whole numbers in (b, n), at least one row and one id a row."""
    if ids.dim() != 2 or 0 in ids.shape or ids.dtype not in (torch.int32, torch.int64):
        raise UserError(
            f"The ids have shape {tuple(ids.shape)} and type {ids.dtype}, but the model reads rows of whole numbers.",
            "Give an int64 tensor of shape (batch, length) with at least one id a row.",
        )


def check_ids(ids: Tensor, size: int, setting: str) -> None:
    """Rows of ids, each below `size`."""
    check_rows(ids)
    if torch.compiler.is_compiling():  # a compiled graph must not depend on values
        return
    if int(ids.min()) < 0 or int(ids.max()) >= size:
        wrong = int(ids.max()) if int(ids.max()) >= size else int(ids.min())
        raise UserError(
            f"The id {wrong} is out of range: {setting} is {size}, so ids go from 0 to {size - 1}.",
            f"Use the tokenizer that belongs to the model, or build the model with a larger {setting}.",
        )


def _clean_series(x: Tensor, n_features: int, keep: Tensor | None, dtype: torch.dtype) -> Tensor:
    """The checked series in the model's precision, with zeros for padding: not even a NaN comes out of there."""
    if x.dim() != 3 or 0 in x.shape or x.shape[2] != n_features or not x.is_floating_point():
        raise UserError(
            f"The input has shape {tuple(x.shape)} and type {x.dtype}, but the model reads (batch, length, "
            f"{n_features}).",
            "Give a float tensor of that shape, or set source.n_features.",
        )
    check_keep(keep, x.shape[0], x.shape[1], "keep")
    x = x.to(dtype)
    return x if keep is None else x.masked_fill(~keep[:, :, None], 0.0)


def _check_padded_at_end(keep: Tensor | None) -> None:
    if keep is None or torch.compiler.is_compiling():  # a compiled graph must not depend on values
        return
    if bool((keep[:, 1:] & ~keep[:, :-1]).any()):
        raise UserError(
            "keep has padding before real frames, but frames are shortened in groups from the left.",
            "Put the padding at the end of each row.",
        )


def build_input(settings: FrontEnd, d_model: int) -> Tokens | Vectors | Frames | Patches:
    match settings:
        case TokensSettings():
            return Tokens(settings, d_model)
        case FramesSettings():
            return Frames(settings, d_model)
        case PatchesSettings():
            return Patches(settings, d_model)
        case VectorsSettings():
            return Vectors(settings, d_model)
        case _:
            assert_never(settings)
