"""The fastest engine that can; a named one or none."""

from typing import Any

import pytest

from glassformer.decode.options import DecodeOptions
from glassformer.errors import UserError
from glassformer.fast.choose import choose_backend
from glassformer.tasks.backend import Request
from tests.builders import tokens
from tests.fast.models import lively

DRAWING = DecodeOptions(sample=True, seed=1, max_len=5)
STRANGE = {"source": tokens(n_types=2), "tie_source_target": False}


@pytest.mark.parametrize(
    ("changes", "options", "wish", "name"),
    [
        ({}, None, {}, "CTranslate2 int8"),
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
    ("changes", "options", "reason"), [({}, DRAWING, "draw with a seed"), (STRANGE, None, "no token types")]
)
def test_a_named_engine_is_taken_or_refused(
    changes: dict[str, Any], options: DecodeOptions | None, reason: str
) -> None:
    with pytest.raises(UserError, match=rf"CTranslate2 cannot run this: .*{reason}.*torch, or to auto"):
        choose_backend(lively(changes), options, engine="ctranslate2")
