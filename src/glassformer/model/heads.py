"""What speaks: each head is forward(x, keep) from the last hidden states to scores, numbers or one vector.

b batch, n length, d width of the model, N vocabulary
"""

from typing import assert_never

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from glassformer.model.dropout import Dropout
from glassformer.model.layers import Activate, build_norm
from glassformer.model.settings import (
    Activation,
    ClassHeadSettings,
    EmbeddingHeadSettings,
    Head,
    Pooling,
    RegressionHeadSettings,
    TokenHeadSettings,
)


class TokenHead(nn.Module):
    """One score per word at every position; the de-embedding."""

    def __init__(self, settings: TokenHeadSettings, d_model: int, vocab_size: int) -> None:
        super().__init__()
        self.transform = Transform(settings.transform, d_model) if settings.transform is not None else None
        self.norm = build_norm(settings.norm, d_model) if settings.transform is not None else None
        self.w = nn.Linear(d_model, vocab_size, bias=settings.bias)

    def prepare(self, x: Tensor) -> Tensor:
        """What the scores are a plain product of."""
        return x if self.transform is None or self.norm is None else self.norm(self.transform(x))

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:  # noqa: ARG002 (all heads have one face)
        logits: Tensor = self.w(self.prepare(x))
        return logits  # (b, n, N)


def log_totals(scores: Tensor) -> Tensor:
    """The logarithm of the sum of each row's exponentials (r); row by row, which stays in the processor's cache."""
    highest = scores.amax(dim=-1)
    totals = torch.stack([(row - most).exp_().sum() for row, most in zip(scores, highest, strict=True)])
    return highest + totals.log()


class PooledHead(nn.Module):
    """One result for the whole sequence: pool, maybe transform, project."""

    def __init__(self, settings: ClassHeadSettings | RegressionHeadSettings, d_model: int, n_out: int) -> None:
        super().__init__()
        self.pool = Pool(settings.pooling)
        self.transform = Transform(settings.transform, d_model) if settings.transform is not None else None
        self.dropout = Dropout(settings.dropout)
        self.w = nn.Linear(d_model, n_out)

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        pooled = self.pool(x, keep)  # (b, d)
        pooled = pooled if self.transform is None else self.transform(pooled)
        out: Tensor = self.w(self.dropout(pooled))
        return out  # (b, n_out)


class EmbeddingHead(nn.Module):
    """One vector for the whole sequence."""

    def __init__(self, settings: EmbeddingHeadSettings, d_model: int) -> None:
        super().__init__()
        self.pool = Pool(settings.pooling)
        self.transform = Transform(settings.transform, d_model) if settings.transform is not None else None
        self.normalise = settings.normalise

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        pooled: Tensor = self.pool(x, keep)
        pooled = pooled if self.transform is None else self.transform(pooled)
        return F.normalize(pooled, dim=-1) if self.normalise else pooled  # (b, d)


class Transform(nn.Module):
    """A dense layer and its activation, before the scores."""

    def __init__(self, activation: Activation, d_model: int) -> None:
        super().__init__()
        self.w = nn.Linear(d_model, d_model)
        self.activation = Activate(activation)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.activation(self.w(x))
        return out


class Pool(nn.Module):
    """Many positions into one vector; padding does not count."""

    def __init__(self, pooling: Pooling) -> None:
        super().__init__()
        self.pooling = pooling

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        if keep is None:
            keep = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
        match self.pooling:
            case "mean":
                weights = keep.to(x.dtype)[:, :, None]
                return (x * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)
            case "first":
                where = keep.int().argmax(dim=1)  # the first real position
            case "last":
                where = keep.shape[1] - 1 - keep.flip(1).int().argmax(dim=1)
        return x[torch.arange(x.shape[0], device=x.device), where]  # (b, d)


def build_head(settings: Head, d_model: int, vocab_size: int) -> TokenHead | PooledHead | EmbeddingHead:
    match settings:
        case TokenHeadSettings():
            return TokenHead(settings, d_model, vocab_size)
        case ClassHeadSettings():
            return PooledHead(settings, d_model, settings.n_classes)
        case RegressionHeadSettings():
            return PooledHead(settings, d_model, settings.n_values)
        case EmbeddingHeadSettings():
            return EmbeddingHead(settings, d_model)
        case _:
            assert_never(settings)
