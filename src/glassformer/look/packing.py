"""Tensors of a trace for files: packed into a page within a given size, or all of them in an NPZ."""

import base64
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from glassformer.data.files import writing
from glassformer.look.trace import Trace

# What a page needs most comes first; where the room ends, the rest is left out and the page says so.
WANTED = (
    *("weights", "scores", "mask", "q", "k", "v", "z", "x", "embedding", "positions", "after", "before", "out"),
    *("norm", "scale", "pooled", "vector", "transformed", "hidden", "gate", "w_1", "types", "projection"),
)


def pack(seen: Trace, room: int, row: int = 0) -> dict[str, Any]:
    """One row of the batch as 32-bit floats in base64: where each tensor begins, its shape, and what had no room.

    What goes by two names, such as the stream after one part and before the next, is stored once.
    """
    places: dict[str, tuple[int, list[int]]] = {}
    blocks: list[bytes] = []
    stored: dict[bytes, int] = {}
    left_out: list[str] = []
    used = 0
    # Ids have names of their own; frames and pixels are shown as they are.
    with_input = "source.input" in seen and seen["source.input"].is_floating_point()
    for name in _by_importance(seen.names, with_input):
        tensor = _one_row(seen[name], row)
        block = _bytes(tensor)
        if block not in stored:
            if (used + len(block)) * 4 // 3 > room:
                left_out.append(name)
                continue
            stored[block] = used // 4
            blocks.append(block)
            used += len(block)
        places[name] = (stored[block], list(tensor.shape))
    order = {name: i for i, name in enumerate(seen.names)}
    return {
        "at": {name: places[name] for name in sorted(places, key=order.__getitem__)},
        "left_out": sorted(left_out, key=order.__getitem__),
        "blob": base64.b64encode(b"".join(blocks)).decode("ascii"),
    }


def in_base64(tensor: Tensor) -> str:
    """32-bit floats, little-endian."""
    return base64.b64encode(_bytes(tensor)).decode("ascii")


def write_npz(path: Path, seen: Trace, names: dict[str, list[str]]) -> None:
    """Every tensor by its name, and the names of positions as arrays of text."""
    arrays: dict[str, Any] = {name: _plain(seen[name]) for name in seen.names}
    arrays |= {f"tokens.{key}": np.array(values, dtype=np.str_) for key, values in names.items() if values}
    with writing(path) as file:
        np.savez_compressed(file, **arrays)


def _by_importance(names: list[str], with_input: bool) -> list[str]:
    def rank(name: str) -> tuple[bool, int, bool]:
        """Weights, then the rest of the answer's side, then that of the encoder beside it."""
        place, behind = WANTED.index(name.rsplit(".", 1)[-1]), with_decoder and name.startswith("encoder.")
        return behind and place > 0, place, behind

    with_decoder = any(name.startswith("decoder.") for name in names)

    kept = sorted((name for name in names if name.rsplit(".", 1)[-1] in WANTED), key=rank)
    return ["source.input", *kept] if with_input else kept


def _one_row(tensor: Tensor, row: int) -> Tensor:
    """Positions and masks may be the same for all rows, and then have no dimension for them."""
    return tensor if tensor.dim() == 2 else tensor[min(row, tensor.shape[0] - 1)]


def _bytes(tensor: Tensor) -> bytes:
    return tensor.detach().cpu().float().contiguous().numpy().astype("<f4").tobytes()


def _plain(tensor: Tensor) -> np.ndarray[Any, Any]:
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.is_floating_point() else tensor).numpy()
