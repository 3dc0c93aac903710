"""How a GGUF file slows rotary positions, as fields of a config.json: as llama.cpp reads it.

All turns alike by a factor, or each by a number of a table. Llama 3.1 and its kin have a table that comes of a formula;
such a table is read as the formula, and any other is refused.
"""

import math
from typing import Any

import torch

from glassformer.errors import require
from glassformer.exchange.gguf_file import GgufFile
from glassformer.model.positions import turns
from glassformer.model.settings import RotarySettings
from glassformer.model.settings.stack import RotaryScaling

TABLE = "rope_freqs.weight"
COPY = "Copy it again from where it came."


def read_rope(file: GgufFile, d_head: int) -> dict[str, Any]:
    """The base of the turns, and how they are slowed where they are."""
    base = file.get("llama.rope.freq_base", float, 10_000.0)
    require(math.isfinite(base) and base > 1, f"{file.path} is not a sound GGUF file: rope.freq_base is {base}.", COPY)
    factor = _factor(file)
    rope: dict[str, Any] = {"rope_theta": base}
    if TABLE in file.tensors:
        return rope | _from_table(file, base, d_head, factor)
    return rope if factor == 1 else rope | {"rope_type": "linear", "factor": factor}


def _factor(file: GgufFile) -> float:
    """A factor without a kind is a linear one, and so is the key of older files; 0 says nothing."""
    kind = file.get("llama.rope.scaling.type", str, "linear")
    require(
        kind in ("none", "linear"),
        f"{file.path} holds a model with rotary positions scaled by {kind[:40]!r}, which Glassformer lacks.",
        "Take a model without.",
    )
    old = file.get("llama.rope.scale_linear", float, 0.0)
    factor = float(file.get("llama.rope.scaling.factor", float, old)) or 1.0
    require(
        kind == "none" or 1 <= factor < math.inf,
        f"{file.path} slows rotary positions by {factor}, which is less than not at all.",
        COPY,
    )
    return 1.0 if kind == "none" else factor


def _from_table(file: GgufFile, base: float, d_head: int, factor: float) -> dict[str, Any]:
    shape = file.tensors[TABLE].shape
    require(shape == (d_head // 2,), f"{TABLE} in {file.path} has the shape {shape}, not {(d_head // 2,)}.", COPY)
    table = file.read(TABLE)  # what each turn is divided by
    most = float(table.max())
    same = factor == 1 and 1 <= most < math.inf
    if same:
        plain = RotarySettings(base=base)
        slowed = RotarySettings(base=base, scaling=RotaryScaling(kind="llama3", factor=most))
        wanted = turns(plain, d_head) / turns(slowed, d_head)
        same = torch.allclose(table, wanted, rtol=1e-3, atol=0)
    require(
        same,
        f"{file.path} holds a model with rotary positions scaled by a table other than Llama 3's, which Glassformer "
        "lacks.",
        "Take a model without.",
    )
    scaling = RotaryScaling()
    return {
        "rope_type": "llama3",
        "factor": most,
        "low_freq_factor": scaling.slow,
        "high_freq_factor": scaling.quick,
        "original_max_position_embeddings": scaling.original,
    }
