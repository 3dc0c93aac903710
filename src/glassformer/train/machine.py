"""What this machine is good at: memory that stays, and arithmetic that its hardware has."""

import contextlib
import ctypes
import sys
from typing import Any, Literal

import torch

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # from glibc's malloc.h
_LARGEST = (1 << 30, 1 << 25)  # older versions refuse more than 32 MB


def keep_memory() -> bool:
    """Ask glibc to keep freed memory instead of giving it back to the system and fetching it anew at every step.

    Training steps allocate the same tensors again and again; page faults cost a fifth of a small model's time.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        libc = ctypes.CDLL(None)
        fetched = any(libc.mallopt(_M_MMAP_THRESHOLD, size) for size in _LARGEST)
        return fetched and bool(libc.mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1))
    except (OSError, AttributeError):  # another C library: it has its own ways
        return False


def has_fast_bf16(device: torch.device) -> bool:
    """Whether bf16 products are done in hardware; emulated ones are many times slower than fp32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    if device.type == "cpu":
        return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
    return False


def autocast(
    precision: Literal["auto", "fp32", "bf16"], device: torch.device
) -> contextlib.AbstractContextManager[Any]:
    """Products in bf16 where asked for, or where the hardware has it."""
    if precision == "bf16" or (precision == "auto" and has_fast_bf16(device)):
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return contextlib.nullcontext()
