"""Who looked at whom: attention weights by layer and head, their mean, and the roll-out through all layers.

L layers, h heads, n queries, m keys
"""

from typing import Literal

import torch
from torch import Tensor

from glassformer.errors import require
from glassformer.look.trace import Trace

Kind = Literal["self", "cross"]


def attention_maps(seen: Trace, stack: str = "decoder", kind: Kind = "self", row: int = 0) -> Tensor:
    """The newest weights of all layers of a stack, for one row of the batch."""
    ending = f".{kind}_attention.weights"
    names = [name for name in seen.names if name.startswith(f"{stack}.blocks.") and name.endswith(ending)]
    require(
        bool(names),
        f"The trace holds no {kind}-attention of a stack {stack!r}.",
        "Name encoder or decoder, and keep *.weights.",
    )
    return torch.stack([seen[name][row] for name in names])  # (L, h, n, m)


def mean_map(maps: Tensor) -> Tensor:
    """One map for all layers and heads."""
    return maps.mean(dim=(0, 1))  # (n, m)


def rollout(maps: Tensor, skip: float = 0.5) -> Tensor:
    """How much of each input position arrives at each output position, if attention alone moved anything.

    Each layer passes on the share `skip` as it is, like its skip connection, and mixes the rest by its mean weights.
    """
    assert maps.shape[2] == maps.shape[3], "Only self-attention leads from positions to the same positions."
    n = maps.shape[-1]
    identity = torch.eye(n, dtype=maps.dtype, device=maps.device)
    rolled = identity
    for layer in maps.mean(dim=1):  # (n, n)
        rolled = (skip * identity + (1 - skip) * layer) @ rolled
    return rolled / rolled.sum(dim=-1, keepdim=True).clamp(min=torch.finfo(maps.dtype).tiny)  # (n, n)
