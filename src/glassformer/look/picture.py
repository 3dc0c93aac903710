"""Attention as a picture for papers: PNG or SVG."""

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from torch import Tensor

from glassformer.data.files import writing

NUMBERS = 400  # cells; more are drawn without their values


def draw_map(weights: Tensor, rows: list[str], columns: list[str], title: str, path: Path) -> None:
    """One map (n, m): who looks (rows) at whom (columns); the ending of the path says which kind of file."""
    size = (min(40.0, 0.55 * len(columns) + 1.8), min(40.0, 0.42 * len(rows) + 1.4))
    figure = Figure(figsize=size, layout="constrained")
    axes, most = figure.subplots(), float(weights.max()) or 1.0
    axes.imshow(weights.cpu().numpy(), cmap="cividis", vmin=0, vmax=most, aspect="auto")
    axes.set_xticks(range(len(columns)), [_plain(c) for c in columns], rotation=45, ha="left", rotation_mode="anchor")
    axes.set_yticks(range(len(rows)), [_plain(r) for r in rows])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_xlabel(title, fontsize=9)
    if weights.numel() <= NUMBERS:
        for i, values in enumerate(weights.tolist()):
            for j, value in enumerate(values):
                colour = "black" if value > 0.55 * most else "white"
                axes.text(j, i, f"{value:.2f}", ha="center", va="center", color=colour, fontsize=7)
    kind = path.suffix.lower().removeprefix(".")
    # The same input gives the same file: no date, no random names.
    metadata = {"Date": None} if kind == "svg" else {}
    with matplotlib.rc_context({"svg.hashsalt": "glassformer", "svg.fonttype": "none"}), writing(path) as file:
        figure.savefig(file, format=kind, dpi=150, metadata=metadata)


def _plain(token: str) -> str:
    """A dollar sign begins a formula in matplotlib."""
    return token.replace("$", r"\$")
