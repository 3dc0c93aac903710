"""Record every named step of a model's passes: plain hooks, put on for the time of a `with` and then gone.

with trace(model) as seen:
    model(source, target)
seen["decoder.blocks.0.cross_attention.weights"]  # (b, h, n, m)

The model computes exactly what it computes without. Passes of other threads go by unseen.
"""

import difflib
import threading
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Self

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from glassformer.errors import UserError, require
from glassformer.look.joining import Join
from glassformer.look.points import Call, Place, places
from glassformer.model.attention import MultiHeadAttention, ScaledDotProduct


class Trace:
    """What was seen: for each name one tensor a pass, so that a decode gives a list of its steps."""

    def __init__(
        self,
        model: nn.Module,
        keep: Sequence[str] | str = "*",
        drop: Sequence[str] | str = (),
        join: Join | None = None,
    ) -> None:
        self.model, self.join = model, join
        self.places = choose_places(model, keep, drop)
        self.seen: dict[str, list[Tensor]] = {}
        self._handles: list[RemovableHandle] = []
        self._thread = 0
        self._rows = 0

    def __enter__(self) -> Self:
        assert not self._handles, "A trace is entered once at a time."
        self._thread = threading.get_ident()
        groups: dict[nn.Module, list[Place]] = {}
        for place in self.places:
            groups.setdefault(place.module, []).append(place)
        attentions = {group[0].owner for module, group in groups.items() if isinstance(module, ScaledDotProduct)}
        self._handles = [attention.register_forward_pre_hook(self._count_rows) for attention in attentions]
        self._handles += [module.register_forward_hook(self._watch(group)) for module, group in groups.items()]
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def __getitem__(self, name: str) -> Tensor:
        """The newest tensor of this name."""
        return self.every(name)[-1]

    def every(self, name: str) -> list[Tensor]:
        """All tensors of this name, one for each pass through its module."""
        if name not in self.seen:
            near = difflib.get_close_matches(name, self.seen, n=1)
            hint = f"Did you mean {near[0]}?" if near else "Run the model inside the trace, and keep this point."
            raise UserError(f"The trace holds no {name!r}.", hint)
        return self.seen[name]

    def __contains__(self, name: str) -> bool:
        return name in self.seen

    @property
    def names(self) -> list[str]:
        """What was seen, in the order of the model's modules."""
        return [place.name for place in self.places if place.name in self.seen]

    @property
    def n_bytes(self) -> int:
        """The memory that the trace holds; tensors that share it count once."""
        stores = {
            t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for found in self.seen.values() for t in found
        }
        return sum(stores.values())

    def clear(self) -> None:
        """Forget what was seen."""
        self.seen.clear()

    def _count_rows(self, _: nn.Module, inputs: tuple[Any, ...]) -> None:
        if threading.get_ident() == self._thread:
            self._rows = inputs[0].shape[0]

    def _watch(self, group: list[Place]) -> Callable[[nn.Module, tuple[Any, ...], Any], None]:
        def watch(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
            if threading.get_ident() != self._thread:
                return
            calls: dict[nn.Module, Call] = {}
            for place in group:
                if place.owner not in calls:
                    calls[place.owner] = self._call(place.owner, module, inputs, output)
                found = place.point.read(calls[place.owner])
                if found is not None:
                    found = found if self.join is None else self.join.shorten(place, found)
                    self.seen.setdefault(place.name, []).append(found)

        return watch

    def _call(self, owner: nn.Module, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> Call:
        if isinstance(owner, MultiHeadAttention) and isinstance(module, ScaledDotProduct):
            inputs, output = _each_row_alone(self._rows, inputs, output)
        return Call(owner, module, inputs, output)


def trace(
    model: nn.Module, keep: Sequence[str] | str = "*", drop: Sequence[str] | str = (), join: Join | None = None
) -> Trace:
    """A context that records a model's named steps: those that match one of `keep` and none of `drop`.

    keep="*.weights" holds attention only; keep=["decoder.blocks.0.*", "head.*"] one layer and the answer. `join` holds
    a long source in fewer positions.
    """
    return Trace(model, keep, drop, join)


def choose_places(model: nn.Module, keep: Sequence[str] | str, drop: Sequence[str] | str) -> list[Place]:
    """The points of a model that the patterns choose; each pattern must match something."""
    known = list(places(model))
    for pattern in (*_many(keep), *_many(drop)):
        if not any(fnmatchcase(place.name, pattern) for place in known):
            near = difflib.get_close_matches(pattern, [place.name for place in known], n=1)
            hint = f"Did you mean {near[0]}?" if near else "Patterns look like *.weights or decoder.blocks.0.*."
            raise UserError(f"No point of the model matches {pattern!r}.", hint)
    chosen = [p for p in known if _matches(p.name, keep) and not _matches(p.name, drop)]
    require(bool(chosen), "The patterns choose no point of the model.", "Keep more, or drop less.")
    return chosen


def _many(patterns: Sequence[str] | str) -> Sequence[str]:
    return (patterns,) if isinstance(patterns, str) else patterns


def _matches(name: str, patterns: Sequence[str] | str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in _many(patterns))


def _each_row_alone(rows: int, inputs: tuple[Any, ...], z: Tensor) -> tuple[tuple[Any, ...], Tensor]:
    """An attention core's call with one row for each row of the batch.

    Beams that ask one memory come to the kernel as more queries of one row. Keys and values are copied, because a cache
    writes on into the same memory.
    """
    q, k, v, mask, causal = inputs
    beams = rows // q.shape[0]
    if beams <= 1:
        return (q, k.clone(), v.clone(), mask, causal), z
    q, z = (t.unflatten(2, (beams, -1)).transpose(1, 2).flatten(0, 1) for t in (q, z))
    k, v = (t.repeat_interleave(beams, dim=0) for t in (k, v))
    if mask is not None and mask.dim() == 4 and mask.shape[0] > 1:
        mask = mask.repeat_interleave(beams, dim=0)
    return (q, k, v, mask, causal), z
