"""Figures as data: a step makes them, the terminal and the page draw them.

What is no number (minus infinity before a softmax) is None.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Rows = list[list[float | None]]


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """Numbers with a word for each row and column; deeper colours mean larger values."""

    rows: list[str]
    columns: list[str]
    values: Rows
    caption: str
    corner: str = ""
    # Cells (row, column) to look at first.
    highlight: list[tuple[int, int]] | None = None
    kind: Literal["matrix"] = "matrix"


@dataclass(frozen=True, kw_only=True)
class Bars:
    """One bar for each label; none is below zero."""

    labels: list[str]
    values: list[float]
    caption: str
    kind: Literal["bars"] = "bars"


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Some series over the same places."""

    labels: list[str]
    values: list[list[float]]
    caption: str
    across: str
    kind: Literal["lines"] = "lines"


@dataclass(frozen=True, kw_only=True)
class Pieces:
    """Rows of tokens, each row with its name."""

    rows: list[str]
    tokens: list[list[str]]
    caption: str
    kind: Literal["pieces"] = "pieces"


@dataclass(frozen=True, kw_only=True)
class Points:
    """Words as places in a plane."""

    labels: list[str]
    x: list[float]
    y: list[float]
    caption: str
    kind: Literal["points"] = "points"


Figure = Matrix | Bars | Lines | Pieces | Points


def rows_of(values: Tensor | NDArray[Any] | Sequence[Sequence[float]]) -> Rows:
    """Plain rows of a two-dimensional tensor or array."""
    plain = values.detach().double().numpy() if isinstance(values, Tensor) else np.asarray(values, dtype=np.float64)
    assert plain.ndim == 2
    return [[None if math.isinf(v) else v for v in row] for row in plain.tolist()]


def numbers_of(values: Tensor | NDArray[Any] | Sequence[float]) -> list[float]:
    """Plain numbers of a one-dimensional tensor or array."""
    plain = values.detach().double().numpy() if isinstance(values, Tensor) else np.asarray(values, dtype=np.float64)
    assert plain.ndim == 1
    out: list[float] = plain.tolist()
    return out


def to_data(figure: Figure) -> dict[str, Any]:
    """What the page draws from."""
    return asdict(figure)


def write_number(value: float | None, digits: int = 2) -> str:
    """Whole numbers whole, others rounded, with a true minus sign."""
    if value is None:
        return "−∞"
    value = round(value, 9)  # what is left of a sum that should be whole
    if value == round(value) and abs(value) < 1e15:
        return f"{value or 0.0:,.0f}".replace("-", "−")
    text = f"{value:,.{digits}f}"
    return text.lstrip("-") if float(text.replace(",", "")) == 0 else text.replace("-", "−")
