"""The end of a run: the best of what was saved, alone or as a mean, and a picture of how it came about."""

import math
from pathlib import Path

from glassformer.data.files import writing
from glassformer.train.average import mean_of
from glassformer.train.checkpoint import load_parameters, read_checkpoint
from glassformer.train.loop import Trainer, Validation
from glassformer.train.report import read_metrics

CLOSE = 0.002  # of the score; more would let a near miss pass where all is nearly right

SCORES = {"bleu": "BLEU", "accuracy": "accuracy", "spearman": "Spearman"}  # what stands beside the losses


def choose_weights(trainer: Trainer) -> tuple[Validation, str]:
    """Put the best saved weights into the model: one alone, or the mean of several if that validates better.

    The best score is the luckiest of many noisy ones. A mean that comes close to it and has the lower loss is better;
    of equal scores (BLEU 0 for one) the higher loss must not win.
    """
    saved, s = trainer.progress.saved, trainer.settings
    if not saved:  # they were damaged; what the run ended with is left
        load_parameters(trainer.job.model, trainer.moving.weights)
        return trainer.validated(None), f"of step {trainer.progress.step}"
    by_score = trainer.progress.best_first
    best_step, best_score = by_score[0]
    best = read_checkpoint(trainer.files.weights_file(best_step)).tensors
    members = sorted(by_score[: s.average] if s.average_of == "best" else saved[-s.average :])
    if len(members) > 1:
        mean = mean_of([read_checkpoint(trainer.files.weights_file(step)).tensors for step, _ in members])
        found = trainer.validated(mean)
        close = found.score >= best_score - CLOSE * abs(best_score)
        if found.score > best_score or (close and _rank(found) <= _rank(trainer.validated(best))):
            load_parameters(trainer.job.model, mean)
            return found, f"the mean of steps {', '.join(str(step) for step, _ in members)}"
    load_parameters(trainer.job.model, best)
    return trainer.validated(None), f"of step {best_step}"


def _rank(found: Validation) -> tuple[float, float]:
    """By the loss, the lowest first; where there is none, by the score."""
    return found.metrics.get("valid_loss", math.inf), -found.score


def draw_losses(metrics: Path, picture: Path) -> None:
    """Training and validation loss over the steps, as metrics.jsonl tells them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    entries = read_metrics(metrics)
    figure = Figure(figsize=(7, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for key, label in (("loss", "training"), ("valid_loss", "validation")):
        points = [(e["step"], e[key]) for e in entries if key in e]
        if points:
            axes.plot(*zip(*points, strict=True), label=label)
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    key, name = next(((k, n) for k, n in SCORES.items() if any(k in e for e in entries)), ("", ""))
    if scores := [(e["step"], e[key]) for e in entries if key in e]:
        right = axes.twinx()
        right.plot(*zip(*scores, strict=True), color="tab:green", linestyle="--", label=f"{name} (right)")
        right.set_ylabel(name)
        right.set_ylim(bottom=0)
        right.legend(loc="lower right", frameon=False)
    if axes.lines:
        axes.legend(loc="upper right", frameon=False)
    with writing(picture) as file:
        figure.savefig(file, format="png", dpi=110)
