"""Many dimensions on a sheet of paper: embeddings and positions by their principal axes, positions by likeness.

k points, d width
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from glassformer.errors import require
from glassformer.model.inputs import Patches
from glassformer.model.positions import LearnedPositions, SinusoidalPositions


@dataclass(frozen=True)
class Plane:
    """Places (k, axes), and the share of the variance that each axis shows."""

    places: Tensor
    shares: Tensor


@torch.no_grad()
def principal_axes(points: Tensor, axes: int = 2) -> Plane:
    """PCA; the largest entry of each axis is positive, so that a map does not flip from run to run."""
    require(points.dim() == 2 and len(points) > 0, "There is nothing to map.", "Give at least one vector.")
    centred = points.double() - points.double().mean(dim=0)
    _, sizes, directions = torch.linalg.svd(centred, full_matrices=False)
    directions = directions[:axes]
    directions = directions * directions.gather(1, directions.abs().argmax(dim=1, keepdim=True)).sign()
    shares = sizes.square() / sizes.square().sum().clamp(min=1e-30)
    places = F.pad(centred @ directions.T, (0, axes - len(directions)))
    return Plane(places, F.pad(shares[:axes], (0, axes - len(shares[:axes]))))


def embedding_map(table: nn.Embedding, ids: list[int]) -> Plane:
    """These tokens in the plane that shows them best."""
    return principal_axes(table.weight[ids])


@torch.no_grad()
def position_vectors(front_end: nn.Module, n: int) -> Tensor:
    """The vectors that the front-end adds for its first n positions (n, d)."""
    table = getattr(front_end, "positions", None)
    require(table is not None, "This front-end adds no positions.", "Rotary positions live in attention.")
    if isinstance(front_end, Patches):
        assert isinstance(table, Tensor)
        return table.detach()[:n]
    assert isinstance(table, SinusoidalPositions | LearnedPositions)
    if isinstance(table, LearnedPositions):
        n = min(n, table.table.shape[0])
    device = next(front_end.parameters()).device
    found: Tensor = table(torch.arange(n, device=device)).detach()
    return found


def likeness(vectors: Tensor) -> Tensor:
    """Cosines between all pairs (k, k)."""
    normal = F.normalize(vectors.double(), dim=-1)
    return normal @ normal.T
