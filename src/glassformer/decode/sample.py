"""Drawing: the next token from the model's distribution, narrowed by the filters."""

import torch
from torch import Tensor

from glassformer.decode.filters import forbid_repeats, keep_min_p, keep_top_k, keep_top_p
from glassformer.decode.options import DecodeOptions, Hypothesis, finish
from glassformer.decode.steps import Steps


def sample_search(
    steps: Steps, prefix: Tensor, options: DecodeOptions, end: int, seeds: list[int]
) -> list[list[Hypothesis]]:
    """For each sentence `nbest` drawn answers, best first; a seed a row, so that a batch draws as its rows alone do.

    Scores count as in `beam_search`: the model's own, before temperature and filters.
    """
    n_sentences, width = prefix.shape[0], options.nbest
    rows = n_sentences * width
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    history = prefix.repeat_interleave(width, dim=0)
    begin = history.shape[1]
    totals = torch.zeros(rows)
    ended = torch.zeros(rows, dtype=torch.bool)
    new = history
    for _ in range(options.max_len):
        allowed = forbid_repeats(steps.step(new).float(), history[:, 1:], options.no_repeat)
        log_p = allowed.log_softmax(dim=-1)
        scores = log_p / options.temperature
        scores = keep_min_p(keep_top_p(keep_top_k(scores, options.top_k), options.top_p), options.min_p)
        chosen = torch.stack([_draw(row, g) for row, g in zip(scores.cpu(), generators, strict=True)])
        chosen = torch.where(ended, end, chosen)[:, None].to(prefix)
        totals += torch.where(ended, 0.0, log_p.gather(1, chosen).cpu()[:, 0])
        ended |= chosen[:, 0].cpu() == end
        history = torch.cat([history, chosen], dim=1)
        if bool(ended.all()):
            break
        new = chosen
    answers = zip(history[:, begin:].tolist(), totals.tolist(), strict=True)
    found = [finish(_until(end, ids), total, begin - 1, options, end) for ids, total in answers]
    groups = [found[s * width : (s + 1) * width] for s in range(n_sentences)]
    return [sorted(group, key=lambda h: -h.score) for group in groups]


def _draw(scores: Tensor, generator: torch.Generator) -> Tensor:
    """One draw by inverting the cumulated probabilities, in float64: the same on every machine."""
    cumulated = scores.double().softmax(dim=-1).cumsum(dim=-1)
    at = torch.rand((), generator=generator, dtype=torch.float64) * cumulated[-1]
    return torch.searchsorted(cumulated, at, right=True).clamp(max=len(scores) - 1)


def _until(end: int, ids: list[int]) -> list[int]:
    return ids[: ids.index(end) + 1] if end in ids else ids
