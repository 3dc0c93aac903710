"""The one place that chooses where a model runs."""

import torch

from glassformer.errors import UserError


def choose_device(name: str = "auto") -> torch.device:
    """cuda or mps where there is one, else cpu; a name given by the user is taken or refused, never replaced."""
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device(next(n for n in ("cuda", "mps", "cpu") if available[n]))
    kind = name.split(":")[0]
    if kind not in available:
        raise UserError(f"There is no device {name!r}.", f"Choose auto, {', '.join(available)}.")
    if not available[kind]:
        usable = ", ".join(n for n, there in available.items() if there)
        raise UserError(f"The device {name!r} is not available on this machine.", f"Choose one of: auto, {usable}.")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f"There is no device {name!r}.", "Write it as cpu, mps, cuda or cuda:0.") from None
    count = torch.cuda.device_count() if kind == "cuda" else 1
    if device.index is not None and device.index >= count:
        raise UserError(f"There is no device {name!r}: {kind} has {count}, counted from 0.", f"Choose {kind}:0.")
    return device
