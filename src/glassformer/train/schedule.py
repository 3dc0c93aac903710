"""The learning rate of a step: up in a straight line, then down."""

import math

from glassformer.train.settings import TrainSettings


def warmup_steps(settings: TrainSettings, n_steps: int) -> int:
    return min(4000, max(1, n_steps // 10)) if settings.warmup is None else settings.warmup


def learning_rate(settings: TrainSettings, step: int, n_steps: int) -> float:
    """For step 1, 2 … n_steps. The peak is `lr` for every schedule."""
    warmup = warmup_steps(settings, n_steps)
    if step <= warmup:
        return settings.peak * step / warmup
    match settings.schedule:
        case "constant":
            return settings.peak
        case "paper":  # d^-0.5 * min(step^-0.5, step * warmup^-1.5), scaled to peak at lr
            return settings.peak * math.sqrt(max(warmup, 1) / step)
        case "cosine":
            progress = min(1.0, (step - warmup) / max(1, n_steps - warmup))
            return settings.peak * (0.01 + 0.99 * (1 + math.cos(math.pi * progress)) / 2)
