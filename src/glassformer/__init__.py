"""Glassformer: a Transformer you can see through.

import glassformer
model = glassformer.load("runs/en-de")
print(model.translate(["Where is the station?"]))
"""

import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from glassformer.errors import UserError

if TYPE_CHECKING:
    from glassformer.api import Face
    from glassformer.fast.choose import Engine, Precision

# Threads that wait for each other spin for a moment, then sleep. The default is to spin on, which beside one other busy
# process made training many times slower (docs/log.md). OpenMP reads this when torch is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

__version__ = version("glassformer")
__all__ = ["UserError", "__version__", "load"]


def load(
    model: str | Path, engine: "Engine" = "auto", precision: "Precision" = "auto", others: Sequence[str | Path] = ()
) -> "Face":
    """A model directory, or a built-in model by name, ready to use; translators also together with `others`."""
    from glassformer.api import load  # torch takes seconds to load: only those who need it wait

    return load(model, engine, precision, others)
