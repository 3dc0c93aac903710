"""One map of attention out of a scene, by the words that a user has for it."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from glassformer.errors import require
from glassformer.look.readings.attention_maps import attention_maps, mean_map, rollout
from glassformer.look.scene import Scene


@dataclass(frozen=True)
class Map:
    weights: Tensor  # (n, m)
    rows: list[str]
    columns: list[str]
    title: str


def choose_map(
    scene: Scene, attention: str = "auto", layer: int | None = None, head: int | None = None, rolled: bool = False
) -> Map:
    """The attention of a kind, layer and head; the mean over what is not given, or all layers rolled out."""
    seen, subject = scene.seen, scene.subject
    names = {name.split(".")[0] for name in seen.names if name.endswith(".self_attention.weights")}
    known = [*(["cross"] if any(n.endswith("cross_attention.weights") for n in seen.names) else []), *sorted(names)]
    chosen = known[0] if attention == "auto" else attention
    require(chosen in known, f"The model has no attention {attention!r}.", f"Choose {', '.join(known)}.")
    kind: Literal["self", "cross"] = "cross" if chosen == "cross" else "self"
    stack = "decoder" if chosen == "cross" else chosen
    maps = attention_maps(seen, stack, kind)  # (L, h, n, m)
    for what, given, size in (("layer", layer, maps.shape[0]), ("head", head, maps.shape[1])):
        require(
            given is None or 0 <= given < size,
            f"There is no {what} {given}.",
            f"They are counted from 0 to {size - 1}.",
        )
    positions = subject.positions if stack == "decoder" else subject.source
    columns = subject.source if kind == "cross" else positions
    if rolled:
        require(kind == "self", "Cross-attention cannot be rolled out.", "Choose --attention encoder or decoder.")
        require(
            layer is None and head is None, "A roll-out is of all layers and heads.", "Leave --layer and --head out."
        )
        return Map(rollout(maps), positions, columns, f"{stack}, self-attention rolled out over {len(maps)} layers")
    maps = maps if layer is None else maps[layer : layer + 1]
    maps = maps if head is None else maps[:, head : head + 1]
    parts = [f"{stack}, {kind}-attention"]
    parts.append("mean of layers" if layer is None else f"layer {layer}")
    parts.append("mean of heads" if head is None else f"head {head}")
    return Map(mean_map(maps), positions, columns, ", ".join(parts))
