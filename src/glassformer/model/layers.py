"""What stands around attention: activations, norms, the feed-forward layer, and the residual connection.

b batch, n length
"""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from glassformer.model.dropout import Dropout
from glassformer.model.settings import Activation, ConvolutionSettings, FeedForwardSettings, NormSettings


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


class Convolution(nn.Module):
    """Neighbours mixed, each feature by a filter of its own: w_out(act(norm(filters(gate * w_in x))))."""

    def __init__(self, settings: ConvolutionSettings, norm: NormSettings, d_model: int) -> None:
        super().__init__()
        self.w_in = nn.Linear(d_model, 2 * d_model)  # half of it is the gate
        self.filters = nn.Conv1d(d_model, d_model, settings.width, padding=settings.width // 2, groups=d_model)
        self.norm = build_norm(norm, d_model)
        self.activation = Activate("silu")
        self.w_out = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        x = F.glu(self.w_in(x))  # (b, n, d_model)
        if keep is not None:  # what stands in the padding must not leak into its neighbour
            x = x.masked_fill(~keep[:, :, None], 0.0)
        x = self.filters(x.transpose(1, 2)).transpose(1, 2)
        out: Tensor = self.w_out(self.activation(self.norm(x)))
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
