"""The weights of a Hugging Face directory: safetensors, or a pytorch_model.bin, in one file or in parts with an index.

The second kind is a pickle with the numbers beside it: the numbers are read, and nothing of the pickle is run.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from glassformer.errors import UserError, require
from glassformer.exchange.foreign import read_json
from glassformer.exchange.torch_file import read_torch_file

WHOLE = ("model.safetensors", "pytorch_model.bin")  # the first that is there is taken
INDEX = ".index.json"  # behind such a name: which weight is in which of several files
COPY = "Copy it again from where it came."
# As safetensors calls them.
DTYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.float64: "F64"}


def find_weights(folder: Path) -> dict[str, str]:
    """For each weight the file that it lies in."""
    for name in WHOLE:
        if (folder / name).exists():
            with open_weights(folder / name) as file:
                return dict.fromkeys(file.keys(), name)
        if (folder / f"{name}{INDEX}").exists():
            return _read_index(folder, name)
    pickles = sorted(path.name for pattern in ("*.bin", "*.pt", "*.pth", "*.ckpt") for path in folder.glob(pattern))
    ggufs = sorted(path.name for path in folder.glob("*.gguf"))
    if pickles:
        raise UserError(
            f"{folder} holds {pickles[0]}, but its weights are looked for in {' or '.join(WHOLE)}.",
            "Give it that name if it holds the weights.",
        )
    raise UserError(
        f"{folder} holds no {' and no '.join(WHOLE)}, whole or in parts.",
        f"Give the file itself: {folder / ggufs[0]}." if ggufs else "Copy the whole folder.",
    )


def _read_index(folder: Path, whole: str) -> dict[str, str]:
    index, suffix = folder / f"{whole}{INDEX}", Path(whole).suffix
    places = read_json(index).get("weight_map")
    sound = isinstance(places, dict) and all(isinstance(name, str) for name in places.values())
    require(sound and bool(places), f"{index} does not say where the weights are.", COPY)
    assert isinstance(places, dict)
    for name in sorted(set(places.values())):
        require(
            name == Path(name).name and "\\" not in name and name.endswith(suffix),
            f"{index} names the file {name[:100]!r}, which is no {suffix} file of this folder.",
            "Take the index that belongs to the folder.",
        )
        require((folder / name).is_file(), f"{folder} lacks {name}, one of the files with weights.", "Copy it too.")
    return dict(places)


def open_weights(path: Path) -> Any:
    """A file of weights: their names, their shapes, and each when it is asked for."""
    if path.suffix == ".bin":
        return TorchWeights(path)
    try:
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{path} is damaged: {error}.", COPY) from None


def read_weight(file: Any, name: str, folder: Path) -> Tensor:
    try:
        found: Tensor = file.get_tensor(name)
        return found
    except (SafetensorError, OSError, ValueError, RuntimeError, KeyError) as error:
        raise UserError(f"{name} in {folder} cannot be read: {error}.", COPY) from None


class TorchWeights:
    """A file of torch.save with the face of a safetensors file."""

    def __init__(self, path: Path) -> None:
        found = read_torch_file(path)
        names = isinstance(found, dict) and all(isinstance(name, str) for name in found)
        require(names and bool(found), f"{path} holds no weights by name.", COPY)
        self.weights = {name: weight for name, weight in found.items() if isinstance(weight, Tensor)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.weights = {}

    def keys(self) -> Iterable[str]:
        return self.weights.keys()

    def get_tensor(self, name: str) -> Tensor:
        return self.weights[name]

    def get_slice(self, name: str) -> "TorchSlice":
        return TorchSlice(self.weights[name])


@dataclass(frozen=True)
class TorchSlice:
    """What is known of a weight before it is read."""

    weight: Tensor

    def get_shape(self) -> list[int]:
        return list(self.weight.shape)

    def get_dtype(self) -> str:
        return DTYPES.get(self.weight.dtype, str(self.weight.dtype))
