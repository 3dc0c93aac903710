"""What the machine offers is asked for, and never in the way."""

import contextlib
import ctypes
import sys
from typing import Literal

import pytest
import torch

from glassformer.train import machine
from glassformer.train.machine import autocast, has_fast_bf16, keep_memory

CPU = torch.device("cpu")


def product_dtype(precision: Literal["auto", "fp32", "bf16"]) -> torch.dtype:
    with autocast(precision, CPU):
        return (torch.ones(2, 2) @ torch.ones(2, 2)).dtype


def test_precision_of_products(monkeypatch: pytest.MonkeyPatch) -> None:
    assert product_dtype("fp32") == torch.float32
    assert product_dtype("bf16") == torch.bfloat16
    for fast, expected in ((True, torch.bfloat16), (False, torch.float32)):
        monkeypatch.setattr(machine, "has_fast_bf16", lambda _, fast=fast: fast)
        assert product_dtype("auto") == expected
        assert product_dtype("fp32") == torch.float32


def test_bf16_is_a_matter_of_hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(has_fast_bf16(CPU), bool)
    assert not has_fast_bf16(torch.device("meta"))
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True)
    assert has_fast_bf16(CPU)


def test_nothing_to_cast_is_no_context() -> None:
    assert isinstance(autocast("fp32", CPU), contextlib.nullcontext)


def test_other_systems_keep_their_own_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not keep_memory()


class FakeLibrary:
    """Answers like a C library that allows thresholds up to `most`."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.asked: list[tuple[int, int]] = []

    def mallopt(self, name: int, value: int) -> int:
        self.asked.append((name, value))
        return int(name == -1 or value <= self.most)


@pytest.mark.parametrize(("most", "n_asked", "kept"), [(1 << 40, 2, True), (1 << 25, 3, True), (0, 2, False)])
def test_memory_is_kept_as_far_as_allowed(monkeypatch: pytest.MonkeyPatch, most: int, n_asked: int, kept: bool) -> None:
    library = FakeLibrary(most)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    assert keep_memory() is kept
    assert len(library.asked) == n_asked


def test_a_library_without_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    assert not keep_memory()
