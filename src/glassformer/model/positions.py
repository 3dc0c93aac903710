"""Where a token stands: sinusoidal and learned vectors to add, rotary angles to turn queries and keys by.

b batch, n length, d width
"""

import torch
from torch import Tensor, nn

from glassformer.errors import UserError
from glassformer.model.settings import LearnedSettings, Positions, RotarySettings, SinusoidalSettings

Angles = tuple[Tensor, Tensor]  # cosines and sines, each (n, d_k) or (b, 1, n, d_k)


def count_positions(n: int, keep: Tensor | None, device: torch.device) -> Tensor:
    """0, 1, 2 … over the real positions of each row, wherever its padding stands."""
    if keep is None:
        return torch.arange(n, device=device)
    return (keep.cumsum(dim=1) - 1).clamp(min=0)  # padding gets a harmless 0


def check_positions(positions: Tensor | None, b: int, n: int) -> None:
    """Whole numbers, one for each place of a row, or of every row."""
    if positions is None or (positions.shape in ((n,), (b, n)) and positions.dtype in (torch.int32, torch.int64)):
        return
    raise UserError(
        f"The positions have shape {tuple(positions.shape)} and type {positions.dtype}, but the input has {b} rows of "
        f"{n} positions.",
        f"Give an int64 tensor of shape ({n},) or ({b}, {n}).",
    )


def _longest(positions: Tensor) -> int:
    if torch.compiler.is_compiling():  # a compiled graph must not depend on values: there they are 0 … n - 1
        return positions.shape[-1]
    first, last = (int(p) for p in positions.aminmax())
    if first < 0:
        raise UserError(f"The position {first} is below 0.", "Count positions from 0.")
    return last + 1


def sinusoids(positions: Tensor, d: int, layout: str = "interleaved") -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos of the same; odd widths end on a sine."""
    i = torch.arange(0, d, 2, device=positions.device, dtype=torch.float64)
    angles = positions[..., None].double() / 10_000 ** (i / d)  # (..., n, ceil(d / 2))
    sin, cos = angles.sin(), angles.cos()[..., : d // 2]
    if layout == "halves":
        return torch.cat([sin, cos], dim=-1)
    table = torch.empty(*positions.shape, d, dtype=torch.float64, device=positions.device)
    table[..., 0::2], table[..., 1::2] = sin, cos
    return table


class SinusoidalPositions(nn.Module):
    """A table of waves, computed once and made longer when a longer input comes."""

    table: Tensor

    def __init__(self, settings: SinusoidalSettings, d_model: int) -> None:
        super().__init__()
        self.layout, self.d_model = settings.layout, d_model
        # Neither trained nor saved: the formula gives it back.
        self.register_buffer("table", self._waves(512), persistent=False)

    def _waves(self, n: int) -> Tensor:
        return sinusoids(torch.arange(n, device="cpu"), self.d_model, self.layout).float()

    def forward(self, positions: Tensor) -> Tensor:
        if (longest := _longest(positions)) > self.table.shape[0]:
            self.table = self._waves(2 * longest).to(self.table)
        return self.table[positions]  # (n, d) or (b, n, d)


class LearnedPositions(nn.Module):
    """One trained vector per position."""

    def __init__(self, settings: LearnedSettings, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(settings.max_len, d_model))

    def forward(self, positions: Tensor) -> Tensor:
        max_len = self.table.shape[0]
        if (longest := _longest(positions)) > max_len:
            raise UserError(
                f"The input is {longest} positions long, but positions.max_len is {max_len}.",
                "Shorten the input, or train with a larger positions.max_len or sinusoidal or rotary positions.",
            )
        return self.table[positions]


def build_positions(settings: Positions | None, d_model: int) -> SinusoidalPositions | LearnedPositions | None:
    match settings:
        case None:
            return None
        case SinusoidalSettings():
            return SinusoidalPositions(settings, d_model)
        case LearnedSettings():
            return LearnedPositions(settings, d_model)


def turns(settings: RotarySettings, d_k: int, device: torch.device | None = None) -> Tensor:
    """theta_i, the angle of pair i for one step, slowed where the settings say so."""
    theta = settings.base ** -(torch.arange(0, d_k, 2, device=device).float() / d_k)
    scaling = settings.scaling
    if scaling is None:
        return theta  # (d_k / 2)
    if scaling.kind == "linear":
        return theta / scaling.factor
    n_turns = scaling.original * theta / (2 * torch.pi)  # over the positions that the model first knew
    quick = ((n_turns - scaling.slow) / (scaling.quick - scaling.slow)).clamp(0, 1)
    return theta * (quick + (1 - quick) / scaling.factor)


class RotaryAngles(nn.Module):
    """The angle m * theta_i of position m and pair i, as cosines and sines laid out for `Rotary`."""

    def __init__(self, settings: RotarySettings, d_k: int) -> None:
        super().__init__()
        self.layout, self.settings, self.d_k = settings.layout, settings, d_k

    def forward(self, positions: Tensor) -> Angles:
        # Made here in float32 and not kept as a buffer: a model in bfloat16 would round it, and far angles be wrong.
        theta = turns(self.settings, self.d_k, positions.device)
        angles = positions[..., None].float() * theta  # (..., n, d_k / 2)
        angles = torch.cat([angles, angles], -1) if self.layout == "halves" else angles.repeat_interleave(2, -1)
        if positions.dim() == 2:
            angles = angles[:, None]  # (b, 1, n, d_k)
        return angles.cos(), angles.sin()


class Rotary(nn.Module):
    """Turns each pair of numbers of a query or key, so that q·k depends on the distance only."""

    def __init__(self, settings: RotarySettings) -> None:
        super().__init__()
        self.layout = settings.layout

    def forward(self, x: Tensor, angles: Angles) -> Tensor:
        cos, sin = angles
        if self.layout == "halves":
            first, second = x.chunk(2, dim=-1)
            turned = torch.cat([-second, first], dim=-1)
        else:
            turned = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)
        return x * cos.to(x) + turned * sin.to(x)  # (b, h, n, d_k)
