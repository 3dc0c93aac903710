"""A confusion table as a picture: rows are true classes, columns what was said; the darker, the more of the row."""

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from glassformer.data.files import writing
from glassformer.errors import require

WIDE_FONTS = ("Noto Sans CJK", "WenQuanYi", "Droid Sans Fallback", "Source Han Sans", "Microsoft YaHei", "PingFang")
MOST_NUMBERS = 30  # classes up to which the numbers are written into the cells


def draw_confusion(table: Sequence[Sequence[int]], names: Sequence[str], title: str, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    require(path.suffix == ".png", f"The picture {path} is to be a PNG.", "Give a name that ends with .png.")
    counts = np.array(table)
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    n = len(names)
    side = min(14.0, 2.6 + 0.45 * max(n, 4))
    figure = Figure(figsize=(side, side), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    shown = [name if len(name) <= 20 else f"{name[:19]}…" for name in names]
    axes.set_xticks(
        range(n), shown, rotation=45 if n > 3 or max(map(len, shown)) > 6 else 0, ha="right" if n > 3 else "center"
    )
    axes.set_yticks(range(n), shown)
    axes.set_xlabel("said")
    axes.set_ylabel("true")
    axes.set_title(title, fontsize=10)
    if n <= MOST_NUMBERS:
        for i, j in np.argwhere(counts > 0).tolist():
            colour = "white" if shares[i, j] > 0.55 else "black"
            axes.text(j, i, f"{counts[i, j]:,}", ha="center", va="center", color=colour, fontsize=8)
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels(), axes.title):
        label.set_fontfamily(_fonts())
    with writing(path) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a script that no font here has shows as boxes
        figure.savefig(file, format="png", dpi=120)


def _fonts() -> list[str]:
    """The usual font, and those of this machine that have more scripts."""
    from matplotlib.font_manager import fontManager

    return ["DejaVu Sans", *sorted({font.name for font in fontManager.ttflist if font.name.startswith(WIDE_FONTS)})]
