"""Who may look at whom. One convention everywhere: True = may attend, and `keep` True = a real position.

b batch, h heads, n query length, m key length
"""

import torch
from torch import Tensor

from glassformer.errors import UserError


def look_ahead_mask(n: int, m: int | None = None, device: torch.device | None = None) -> Tensor:
    """Each of the last n of m positions sees itself and what came before."""
    m = n if m is None else m
    return torch.ones(n, m, dtype=torch.bool, device=device).tril(m - n)  # (n, m)


def padding_mask(keep: Tensor) -> Tensor:
    """No position looks at padding."""
    return keep[:, None, None, :]  # (b, 1, 1, m)


def join_masks(*masks: Tensor | None) -> Tensor | None:
    """What all the given masks allow; None allows everything."""
    joined: Tensor | None = None
    for mask in masks:
        if mask is not None:
            joined = mask if joined is None else joined & mask
    return joined


def lengths_to_keep(lengths: Tensor, n: int) -> Tensor:
    """The first `lengths[i]` of n positions of row i are real."""
    return torch.arange(n, device=lengths.device) < lengths[:, None]  # (b, n)


def check_keep(keep: Tensor | None, b: int, n: int, name: str) -> None:
    """A keep says True or False for every position of every row."""
    if keep is not None and (keep.dtype != torch.bool or keep.shape != (b, n)):
        raise UserError(
            f"{name} has shape {tuple(keep.shape)} and type {keep.dtype}, but the input has {b} rows of {n} positions.",
            f"Give a bool tensor of shape ({b}, {n}), True = a real position.",
        )


def check_mask(mask: Tensor | None, b: int, h: int, n: int, m: int) -> None:
    """A mask is a bool tensor of two or four dimensions that spreads to (b, h, n, m).

    Three are refused: torch would read the first as heads, where most people mean the batch.
    """
    if mask is None:
        return
    wanted = (b, h, n, m)
    fits = mask.dtype == torch.bool and mask.dim() in (2, 4)
    fits = fits and all(size in (1, want) for size, want in zip(mask.shape[::-1], wanted[::-1], strict=False))
    if not fits:
        raise UserError(
            f"The mask has shape {tuple(mask.shape)} and type {mask.dtype}, but attention works on {wanted} "
            "(batch, heads, queries, keys).",
            f"Give a bool tensor that broadcasts to it, such as ({n}, {m}) or ({b}, 1, {n}, {m}), True = may attend.",
        )
