"""The end of a run: the best of what was saved, alone or as a mean, and a picture of how it came about."""

import json
from pathlib import Path

from torch import Tensor

from glassformer.data.files import writing
from glassformer.train.average import mean_of
from glassformer.train.checkpoint import load_parameters, read_checkpoint
from glassformer.train.loop import Trainer, Validation


def choose_weights(trainer: Trainer) -> tuple[Validation, str]:
    """Put the best saved weights into the model: one alone, or the mean of several if that validates better."""
    saved = sorted(trainer.progress.saved, key=lambda item: -item[1])
    best_step, best_score = saved[0]
    weights = {step: read_checkpoint(trainer.weights_file(step)).tensors for step, _ in saved}
    chosen: dict[str, Tensor] = weights[best_step]
    how, found = f"of step {best_step}", None
    if len(saved) > 1:
        mean = mean_of(list(weights.values()))
        found = trainer.validated(mean)
        if found.score >= best_score:
            chosen, how = mean, f"the mean of steps {', '.join(str(step) for step in sorted(weights))}"
        else:
            found = None
    load_parameters(trainer.job.model, chosen)
    found = trainer.validated(None) if found is None else found
    return found, how


def draw_losses(metrics: Path, picture: Path) -> None:
    """Training and validation loss over the steps, as metrics.jsonl tells them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    entries = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    figure = Figure(figsize=(7, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for key, label in (("loss", "training"), ("valid_loss", "validation")):
        points = [(e["step"], e[key]) for e in entries if key in e]
        if points:
            axes.plot(*zip(*points, strict=True), label=label)
    axes.set_xlabel("step")
    axes.set_ylabel("loss per token")
    if scores := [(e["step"], e["bleu"]) for e in entries if "bleu" in e]:
        right = axes.twinx()
        right.plot(*zip(*scores, strict=True), color="tab:green", linestyle="--", label="BLEU (right)")
        right.set_ylabel("BLEU")
        right.set_ylim(bottom=0)
        right.legend(loc="lower right", frameon=False)
    axes.legend(loc="upper right", frameon=False)
    with writing(picture) as file:
        figure.savefig(file, format="png", dpi=110)
