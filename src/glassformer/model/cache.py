"""Keys and values so far, handed to the decoder as an argument and never kept on a module.

All rows write to the same slots. A row whose prompt is shorter is padded on the left, or anywhere: `keep` remembers
which slots are real, and positions count real slots only, so that each row sees exactly what it would see alone.

b batch, h_kv key/value heads, c capacity, m slots filled
"""

import torch
from torch import Tensor

from glassformer.errors import UserError, require
from glassformer.model.masks import check_keep
from glassformer.model.positions import count_positions
from glassformer.model.settings import StackSettings


class LayerCache:
    """One layer's own keys and values, and those of the memory that its cross-attention looks at."""

    def __init__(self, k: Tensor, v: Tensor) -> None:
        self.k, self.v = k, v  # (b, h_kv, c, d_k), (b, h_kv, c, d_v)
        self.memory: tuple[Tensor, Tensor] | None = None

    def append(self, k: Tensor, v: Tensor, start: int) -> tuple[Tensor, Tensor]:
        """Write new keys and values from slot `start` on and give all so far."""
        end = start + k.shape[2]
        self.k[:, :, start:end], self.v[:, :, start:end] = k, v
        return self.k[:, :, :end], self.v[:, :, :end]


class Cache:
    """The caches of all layers, how many slots are filled, and which of them are real."""

    def __init__(
        self, settings: StackSettings, b: int, capacity: int, device: torch.device, dtype: torch.dtype = torch.float32
    ) -> None:
        h, d_k, d_v = settings.attention.kv_heads, settings.d_k, settings.d_v

        def empty(d: int) -> Tensor:
            return torch.empty(b, h, capacity, d, device=device, dtype=dtype)

        self.layers = [LayerCache(empty(d_k), empty(d_v)) for _ in range(settings.n_layers)]
        self.rows, self.capacity = b, capacity
        self.length = 0
        self.keep: Tensor | None = None  # (b, m); None: all slots are real

    def extend(self, b: int, n: int, keep: Tensor | None, device: torch.device) -> tuple[int, Tensor, Tensor | None]:
        """The first of n free slots, the new tokens' positions, and the keep of all slots with them.

        Nothing changes before `advance`, so that an input that is refused leaves the cache as it was.
        """
        start = self.length
        if start + n > self.capacity:
            raise UserError(
                f"The cache holds {self.capacity} positions, but {start + n} are asked for.",
                "Make the cache with a larger capacity, or ask for fewer tokens.",
            )
        if b != self.rows:
            raise UserError(
                f"The cache has {self.rows} rows, but the input has {b}.",
                "Make the cache for as many rows, or bring it there by cache.select.",
            )
        check_keep(keep, b, n, "keep")
        if keep is None and self.keep is None:
            return start, torch.arange(start, start + n, device=device), None
        past = self.keep if self.keep is not None else torch.ones(b, start, dtype=torch.bool, device=device)
        new = keep if keep is not None else torch.ones(b, n, dtype=torch.bool, device=device)
        both = torch.cat([past, new], dim=1)
        return start, count_positions(start + n, both, device)[:, start:], both

    def advance(self, n: int, keep: Tensor | None) -> None:
        """n more slots are filled; `keep` covers all of them."""
        self.length, self.keep = self.length + n, keep

    def truncate(self, length: int) -> None:
        """Forget all slots from `length` on."""
        require(
            0 <= length <= self.length,
            f"The cache holds {self.length} positions, not {length}.",
            f"Give a length from 0 to {self.length}.",
        )
        self.length = length
        if self.keep is not None:
            self.keep = self.keep[:, :length]

    def select(self, rows: Tensor) -> None:
        """Row i becomes what row `rows[i]` was: beams change places, finished rows leave.

        The memory's keys and values stay where they are: beams of one sentence share them (see `select_memory`).
        """
        for layer in self.layers:
            b = layer.k.shape[0]
            k, v = layer.k[:, :, : self.length], layer.v[:, :, : self.length]
            if len(rows) == b:
                layer.k[:, :, : self.length], layer.v[:, :, : self.length] = k[rows], v[rows]
            else:
                layer.k, layer.v = _chosen(layer.k, rows, self.length), _chosen(layer.v, rows, self.length)
        if self.keep is not None:
            self.keep = self.keep[rows]
        self.rows = len(rows)

    def select_memory(self, rows: Tensor) -> None:
        """The same for the memory's rows, which several beams may share."""
        for layer in self.layers:
            if layer.memory is not None:
                layer.memory = (layer.memory[0][rows], layer.memory[1][rows])


def _chosen(slots: Tensor, rows: Tensor, length: int) -> Tensor:
    """Some rows of a cache; slots that are not filled are not touched, as they may be many."""
    chosen = slots.new_empty(len(rows), *slots.shape[1:])
    chosen[:, :, :length] = slots[rows, :, :length]
    return chosen
