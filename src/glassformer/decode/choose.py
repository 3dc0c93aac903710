"""The next token of each row: penalties, filters, then the best or a draw.

r rows, N vocabulary
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from glassformer.decode.complete_options import CompleteOptions
from glassformer.decode.filters import keep_min_p, keep_top_k, keep_top_p
from glassformer.model.heads import log_totals

SEEDS_APART = 7919  # between the seeds of rows that one was given for


@dataclass(frozen=True)
class Chosen:
    """A token, its log-probability by the model itself, and what else it might have been."""

    id: int
    log_p: float
    alternatives: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Said:
    """What a row holds so far: all its tokens, and how many of them came with the prompt."""

    ids: list[int]
    n_prompt: int


def choose_next(
    scores: Tensor,
    said: list[Said],
    options: CompleteOptions,
    generators: list[torch.Generator],
    settled: int | None = None,
    totals: Callable[[Tensor], Tensor] = log_totals,
) -> list[Chosen]:
    """One token for each row of scores (r, N); a generator a row, so that a batch draws as its rows alone do.

    One that is `settled` already is only told with its probability. `totals` is the model's own way to sum scores up.
    """
    scores = scores.float()
    shares = distribution(scores, said, options) if settled is None else None
    if settled is not None:
        ids = torch.full((len(said),), settled, device=scores.device)
    elif shares is None:
        ids = best_of(penalised(scores, said, options))
    else:
        ids = torch.stack([draw(row, g) for row, g in zip(shares, generators, strict=True)])
    # Of all that may come only what is told is made log-probabilities of: the vocabulary is large.
    total = totals(scores)
    found = (scores.gather(1, ids[:, None])[:, 0] - total).tolist()
    alternatives: list[tuple[tuple[int, float], ...]] = [()] * len(said)
    if options.alternatives:
        values, places = scores.topk(min(options.alternatives, scores.shape[1]), dim=-1)
        values = values - total[:, None]
        alternatives = [tuple(zip(*row, strict=True)) for row in zip(places.tolist(), values.tolist(), strict=True)]
    return [Chosen(*each) for each in zip(ids.tolist(), found, alternatives, strict=True)]


def best_of(scores: Tensor) -> Tensor:
    """The place of the highest of each row; on a CPU numpy finds it ten times as fast as torch."""
    if scores.device.type == "cpu":
        return torch.from_numpy(scores.numpy().argmax(axis=-1))
    return scores.argmax(dim=-1)


def distribution(scores: Tensor, said: list[Said], options: CompleteOptions) -> Tensor | None:
    """The probabilities (r, N) that a token is drawn from, in float64; None where the best is taken."""
    if options.temperature == 0:
        return None
    scores = penalised(scores.float(), said, options) / options.temperature
    scores = keep_min_p(keep_top_p(keep_top_k(scores, options.top_k), options.top_p), options.min_p)
    return scores.double().softmax(dim=-1).cpu()


def penalised(scores: Tensor, said: list[Said], options: CompleteOptions) -> Tensor:
    """Scores less what repetition costs."""
    repetition, frequency, presence = (
        options.repetition_penalty,
        options.frequency_penalty,
        options.presence_penalty,
    )
    if (repetition, frequency, presence) == (1.0, 0.0, 0.0):
        return scores
    scores = scores.clone()
    for row, before in enumerate(said):
        used = torch.tensor(sorted(set(before.ids)), dtype=torch.long, device=scores.device)
        old = scores[row, used]
        scores[row, used] = torch.where(old > 0, old / repetition, old * repetition)
        answer = torch.tensor(before.ids[before.n_prompt :], dtype=torch.long, device=scores.device)
        ids, counts = torch.unique(answer, return_counts=True)
        scores[row, ids] -= frequency * counts + presence
    return scores


def draw(shares: Tensor, generator: torch.Generator) -> Tensor:
    """One draw by inverting the cumulated probabilities (N), in float64: the same on every machine."""
    cumulated = shares.cumsum(dim=-1)
    at = torch.rand((), generator=generator, dtype=torch.float64) * cumulated[-1]
    return torch.searchsorted(cumulated, at, right=True).clamp(max=len(shares) - 1)
