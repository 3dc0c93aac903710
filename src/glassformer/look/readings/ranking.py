"""What heads and hidden units do over many texts: where a unit fires most, and what habit a head has.

n positions, m keys, k places kept
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from glassformer.look.trace import trace
from glassformer.model import Transformer

HABITS = ("previous", "first", "itself", "same token", "after same token", "spread")


@dataclass
class Rankings:
    """`units`: feed-forward path -> values, texts and positions of its k strongest moments, each (d_ff, k).

    `heads`: self-attention path -> mean share of attention by habit (h, habits); spread is the entropy in bits.
    """

    units: dict[str, tuple[Tensor, Tensor, Tensor]] = field(default_factory=dict)
    heads: dict[str, Tensor] = field(default_factory=dict)
    n_positions: int = 0

    def strongest_heads(self, habit: str, k: int = 5) -> list[tuple[str, int, float]]:
        """The heads that have this habit most."""
        column = HABITS.index(habit)
        all_heads = [(path, i, float(row[column])) for path, rows in self.heads.items() for i, row in enumerate(rows)]
        return sorted(all_heads, key=lambda entry: -entry[2])[:k]


@torch.no_grad()
def rank(
    model: Transformer, texts: Iterable[list[int]], run: Callable[[Tensor], object] | None = None, k: int = 10
) -> Rankings:
    """Read texts one by one, in memory that does not grow with their number.

    `run` feeds (1, n) ids to a model that takes more than these.
    """
    found = Rankings()
    device = next(model.parameters()).device
    for i, ids in enumerate(texts):
        if not ids:
            continue
        given = torch.tensor([ids], device=device)
        with trace(model, keep=["*.feed_forward.hidden", "*.self_attention.weights"]) as seen:
            (run or model)(given)
        for name in seen.names:
            if name.endswith(".hidden"):
                _keep_strongest(found, name.removesuffix(".hidden"), seen[name][0], i, k)
            elif seen[name].shape[-1] == len(ids):
                _add_habits(found, name.removesuffix(".weights"), seen[name][0], given[0])
        found.n_positions += len(ids)
    for path in found.heads:
        found.heads[path] /= max(1, found.n_positions)
    return found


def _keep_strongest(found: Rankings, path: str, hidden: Tensor, text: int, k: int) -> None:
    values = hidden.T  # (d_ff, n)
    texts = torch.full_like(values, text, dtype=torch.long)
    places = torch.arange(values.shape[1], device=values.device).expand_as(texts)
    if path in found.units:
        old = found.units[path]
        values, texts, places = (torch.cat(pair, dim=1) for pair in zip(old, (values, texts, places), strict=True))
    best = values.topk(min(k, values.shape[1]), dim=1)
    found.units[path] = (best.values, texts.gather(1, best.indices), places.gather(1, best.indices))


def _add_habits(found: Rankings, path: str, weights: Tensor, ids: Tensor) -> None:
    n = len(ids)
    same = ids[:, None] == ids[None, :]
    same = same & ~torch.eye(n, dtype=torch.bool, device=ids.device)
    after = torch.zeros_like(same)
    after[:, 1:] = same[:, :-1]  # what followed when this token came before: an induction head looks there
    after.fill_diagonal_(False)
    habits = [
        weights.diagonal(offset=-1, dim1=1, dim2=2).sum(dim=1),
        weights[:, :, 0].sum(dim=1),
        weights.diagonal(dim1=1, dim2=2).sum(dim=1),
        (weights * same).sum(dim=(1, 2)),
        (weights * after).sum(dim=(1, 2)),
        -(weights * weights.clamp(min=1e-12).log2()).sum(dim=(1, 2)),
    ]
    total = torch.stack(habits, dim=1)  # (h, habits)
    found.heads[path] = found.heads[path] + total if path in found.heads else total
