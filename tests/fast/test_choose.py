"""The fastest engine that can; a named one or none."""

import math
from typing import Any

import pytest
import torch

from glassformer.decode.options import DecodeOptions
from glassformer.errors import UserError
from glassformer.fast import native
from glassformer.fast.choose import choose_backend
from glassformer.tasks.backend import Request
from tests.builders import tokens
from tests.fast.models import SETTINGS, lively
from tests.fast.rounded import needs_compiler

DRAWING = DecodeOptions(sample=True, seed=1, max_len=5)
ROTARY = SETTINGS["rotary in pairs"]
STRANGE = {"source": tokens(n_types=2), "tie_source_target": False}


@pytest.mark.parametrize(
    ("changes", "options", "wish", "name"),
    [
        pytest.param({}, None, {}, "C++ int8", marks=needs_compiler),
        pytest.param({}, None, {"precision": "int8"}, "C++ int8", marks=needs_compiler),
        pytest.param({}, None, {"engine": "c++"}, "C++ int8", marks=needs_compiler),
        (ROTARY, None, {}, "CTranslate2 int8"),
        ({}, None, {"precision": "fp32"}, "CTranslate2 fp32"),
        ({}, None, {"engine": "ctranslate2"}, "CTranslate2 int8"),
        ({}, None, {"engine": "torch"}, "torch fp32"),
        ({}, None, {"engine": "torch", "precision": "int8"}, "torch int8"),
        ({}, None, {"engine": "torch", "precision": "fp32"}, "torch fp32"),
        ({}, DRAWING, {}, "torch int8"),
        (STRANGE, None, {}, "torch int8"),
        (STRANGE, None, {"precision": "fp32"}, "torch fp32"),
    ],
)
def test_choice(changes: dict[str, Any], options: DecodeOptions | None, wish: dict[str, Any], name: str) -> None:
    backend = choose_backend(lively(changes), options, **wish)
    assert backend.name == name
    assert len(backend.generate([Request([3, 4])], options or DecodeOptions(max_len=5))) == 1


@pytest.mark.parametrize(
    ("changes", "options", "wish", "reason"),
    [
        ({}, DRAWING, {"engine": "ctranslate2"}, "CTranslate2 cannot run this: it cannot draw with a seed"),
        (STRANGE, None, {"engine": "ctranslate2"}, "CTranslate2 cannot run this: it knows no token types"),
        ({}, DRAWING, {"engine": "c++"}, "C.. engine cannot run this: it cannot draw"),
        ({}, None, {"engine": "c++", "precision": "fp32"}, "C.. engine cannot run this: it has whole numbers only"),
        pytest.param(ROTARY, None, {"engine": "c++"}, "cannot run this: .*rotary", marks=needs_compiler),
    ],
)
def test_a_named_engine_is_taken_or_refused(
    changes: dict[str, Any], options: DecodeOptions | None, wish: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UserError, match=rf"{reason}.*torch, or to auto"):
        choose_backend(lively(changes), options, **wish)


@pytest.mark.parametrize("wish", [{}, {"precision": "fp32"}, {"engine": "torch"}, {"engine": "ctranslate2"}])
@pytest.mark.parametrize("path", ["source.embedding.weight", "decoder.blocks.1.feed_forward_residual.norm.weight"])
def test_weights_that_are_no_numbers_are_told_by_every_engine(wish: dict[str, Any], path: str) -> None:
    model = lively({})
    with torch.no_grad():
        model.get_parameter(path).view(-1)[3] = math.nan
    with pytest.raises(UserError, match=r"not finite.*lower learning rate"):
        choose_backend(model, **wish)


def test_without_a_compiler_it_is_ctranslate2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "why_no_native", lambda: "there is no compiler (g++)")
    assert choose_backend(lively({})).name == "CTranslate2 int8"
    with pytest.raises(UserError, match=r"no compiler \(g\+\+\).*torch, or to auto"):
        choose_backend(lively({}), engine="c++")
