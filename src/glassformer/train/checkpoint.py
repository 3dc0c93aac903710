"""Where a run stands, in one file: whole or not there, checksummed, no code in it.

A checkpoint is a safetensors file. Its tensors are the weights, the optimizer's moments, the running mean if there is
one, and the random generator's state; its metadata is JSON: where the run is, and a checksum over all of it.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from glassformer.data.files import writing
from glassformer.errors import UserError


@dataclass(frozen=True)
class Checkpoint:
    tensors: dict[str, Tensor]
    state: dict[str, Any]

    def part(self, prefix: str) -> dict[str, Tensor]:
        """The tensors under a prefix, without it."""
        return {name.removeprefix(prefix): t for name, t in self.tensors.items() if name.startswith(prefix)}


def write_checkpoint(path: Path, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
    whole = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    text = json.dumps(state, sort_keys=True)
    data = save(whole, metadata={"state": text, "checksum": _checksum(whole, text)})
    with writing(path) as file:
        file.write(data)


def read_checkpoint(path: Path) -> Checkpoint:
    """Raises a UserError for a file that is cut short, altered or no checkpoint."""
    hint = "Go on with --resume: it takes the newest one that is whole."
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        text = metadata.get("state", "")
        whole = metadata.get("checksum") == _checksum(tensors, text)
    except FileNotFoundError:
        raise UserError(f"The checkpoint {path} is missing.", hint) from None
    except (SafetensorError, OSError, ValueError, RuntimeError, AttributeError) as error:
        raise UserError(f"The checkpoint {path} is damaged: {error}.", hint) from None
    if not whole:
        raise UserError(f"The checkpoint {path} was altered: its checksum differs.", hint)
    return Checkpoint(tensors, json.loads(text))


def read_state(path: Path) -> dict[str, Any]:
    """Only what is beside the tensors, unchecked; nothing of a file that cannot be read."""
    try:
        with safe_open(path, framework="pt") as file:
            return dict(json.loads((file.metadata() or {}).get("state", "{}")))
    except (SafetensorError, OSError, ValueError):
        return {}


def _checksum(tensors: Mapping[str, Tensor], text: str) -> str:
    digest = hashlib.blake2b(text.encode(), digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def trained(model: nn.Module) -> dict[str, nn.Parameter]:
    """The weights that training changes, by name; a shared weight has one name."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


@torch.no_grad()
def load_parameters(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Copy what is trained, by name."""
    for name, parameter in trained(model).items():
        parameter.copy_(tensors[name])


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's moments under names that say the parameter's number and the moment's name."""
    state = optimizer.state_dict()["state"]
    return {f"{number}.{name}": value for number, moments in state.items() for name, value in moments.items()}


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    whole = optimizer.state_dict()
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        number, _, name = key.partition(".")
        state.setdefault(int(number), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": whole["param_groups"]})
