"""What stands around attention: activations, norms, the feed-forward layer, and the residual connection.

b batch, n length
"""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from glassformer.model.dropout import Dropout
from glassformer.model.settings import Activation, FeedForwardSettings, NormSettings


class Activate(nn.Module):
    """An activation by name, a module so that what goes through it can be seen."""

    def __init__(self, name: Activation) -> None:
        super().__init__()
        self.name = name

    def forward(self, x: Tensor) -> Tensor:
        match self.name:
            case "relu":
                return F.relu(x)
            case "gelu":
                return F.gelu(x)
            case "gelu_tanh":
                return F.gelu(x, approximate="tanh")
            case "silu":
                return F.silu(x)
            case "tanh":
                return x.tanh()

    def extra_repr(self) -> str:
        return self.name


def build_norm(settings: NormSettings, d: int) -> nn.Module:
    """Across the features of one position, never down the batch."""
    match settings.kind:
        case "layer":
            return nn.LayerNorm(d, eps=settings.eps)
        case "rms":
            return nn.RMSNorm(d, eps=settings.eps)


class FeedForward(nn.Module):
    """w_2(act(w_1 x)), or gated: w_2(act(w_gate x) * w_1 x)."""

    def __init__(self, settings: FeedForwardSettings, d_model: int) -> None:
        super().__init__()
        self.w_1 = nn.Linear(d_model, settings.d_ff, bias=settings.bias)
        self.w_gate = nn.Linear(d_model, settings.d_ff, bias=settings.bias) if settings.gated else None
        self.activation = Activate(settings.activation)
        self.dropout = Dropout(settings.dropout)
        self.w_2 = nn.Linear(settings.d_ff, d_model, bias=settings.bias)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.w_1(x)  # (b, n, d_ff)
        hidden = self.activation(hidden) if self.w_gate is None else self.activation(self.w_gate(x)) * hidden
        out: Tensor = self.w_2(self.dropout(hidden))
        return out  # (b, n, d_model)


class Residual(nn.Module):
    """Adds what a sub-layer found to the stream; the one place that knows pre-norm from post-norm."""

    def __init__(self, norm: NormSettings, d_model: int, dropout: float) -> None:
        super().__init__()
        self.pre = norm.place == "pre"
        self.norm = build_norm(norm, d_model)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.pre:
            out: Tensor = x + self.dropout(sublayer(self.norm(x)))
        else:
            out = self.norm(x + self.dropout(sublayer(x)))
        return out
