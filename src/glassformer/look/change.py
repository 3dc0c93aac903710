"""Change what goes through a model at named points, for the time of a `with`: the ground of ablation and patching."""

import contextlib
import difflib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch import Tensor, nn

from glassformer.errors import UserError
from glassformer.look.points import Call, Input, Output, Place, places

Change = Callable[[Tensor], Tensor]


@contextlib.contextmanager
def changed(model: nn.Module, changes: Mapping[str, Change]) -> Iterator[None]:
    """Each named point gets what its function makes of it; only this thread's passes are changed.

    Attention weights can be changed too: what the head finds is then computed from the changed ones.
    """
    known = {place.name: place for place in places(model)}
    thread, handles = threading.get_ident(), []
    try:
        for name, change in changes.items():
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                raise UserError(f"The model has no point {name!r}.", f"Did you mean {near[0]}?" if near else "")
            handles.append(_hook(known[name], change, thread))
        yield
    finally:
        for handle in handles:
            handle.remove()


def _hook(place: Place, change: Change, thread: int) -> Any:
    def before(_: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if threading.get_ident() != thread:
            return None
        assert isinstance(spot, Input)
        return (*inputs[: spot.index], change(inputs[spot.index]), *inputs[spot.index + 1 :])

    def after(_: nn.Module, __: tuple[Any, ...], output: Any) -> Any:
        if threading.get_ident() != thread:
            return None
        assert isinstance(spot, Output)
        if spot.index is None:
            return change(output)
        return (*output[: spot.index], change(output[spot.index]), *output[spot.index + 1 :])

    def weighted(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor | None:
        if threading.get_ident() != thread:
            return None
        call = Call(place.owner, module, inputs, output)
        v: Tensor = inputs[2]
        return change(call.textbook[1]) @ v.repeat_interleave(output.shape[1] // v.shape[1], dim=1)

    spot = place.point.spot
    match spot:
        case Input():
            return place.module.register_forward_pre_hook(before)
        case Output():
            return place.module.register_forward_hook(after)
    if place.point.name == "weights":
        return place.module.register_forward_hook(weighted)
    raise UserError(
        f"{place.name} is computed for the eye only: the model does not go through it.",
        "Change an input or output of a module, such as z, out or before.",
    )
