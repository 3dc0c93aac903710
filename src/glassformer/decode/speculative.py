"""Speculation: a small model proposes tokens, the large one checks them all at once. The answer is as if drawn from the
large one alone.

A proposed token x, drawn from q, is taken with probability min(1, p(x)/q(x)); else one is drawn from what p has more
than q. (Leviathan et al., 2023.)

N vocabulary
"""

import torch
from torch import Tensor

from glassformer.decode.choose import draw


def judge(p: Tensor, q: Tensor, proposed: int, generator: torch.Generator) -> tuple[int, bool]:
    """The token to say instead of one drawn from q (N), so that it comes from p (N); and whether it is the proposed."""
    chance = torch.rand((), generator=generator, dtype=torch.float64)
    if chance * q[proposed] < p[proposed]:
        return proposed, True
    more = (p - q).clamp(min=0)
    # Rounding may leave nothing where p and q are the same; then p is as good.
    return int(draw(more if float(more.sum()) > 0 else p, generator)), False
