"""Draws where each word of a translation looks: `python demos/attention.py MODEL TEXT --out picture.png`."""

import argparse
from pathlib import Path

import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import glassformer
from glassformer.tasks.alignment import cross_weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    translator = glassformer.load(arguments.model)
    loaded = translator.loaded
    answer = translator.translate([arguments.text])[0]
    source, target = loaded.source_tokenizer.encode(arguments.text), loaded.tokenizer.encode(answer)
    weights = cross_weights(translator.model, source, target)
    draw(weights, loaded.source_tokenizer.tokens(source), loaded.tokenizer.tokens(target), arguments.out)
    print(answer)


def draw(weights: torch.Tensor, source: list[str], target: list[str], out: Path) -> None:
    figure = Figure(figsize=(0.75 * len(source) + 1.6, 0.5 * len(target) + 1.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.imshow(weights[:, : len(source)], cmap="viridis", vmin=0, aspect="auto")
    axes.set_xticks(range(len(source)), source, fontsize=12)
    axes.set_yticks(range(len(target)), target, fontsize=12)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for row, values in enumerate(weights[:, : len(source)].tolist()):
        for column, value in enumerate(values):
            colour = "black" if value > 0.5 * float(weights.max()) else "white"
            axes.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour, fontsize=9)
    figure.savefig(out, dpi=110)


if __name__ == "__main__":
    main()
