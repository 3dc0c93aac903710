"""Beam search for an answer that must contain given phrases (terminology).

The beam is shared out among hypotheses by how many of the wanted tokens they have: those that have the most, those with
one less, and so on, each group keeping its best. So a phrase that the model finds unlikely is still tried in good time,
at the place where it costs least. (After Post and Vilar, 2018.) One sentence at a time.
"""

import math
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from glassformer.decode.filters import forbid_repeats
from glassformer.decode.options import DecodeOptions, Hypothesis
from glassformer.decode.steps import Steps

Phrase = tuple[int, ...]


@dataclass(frozen=True)
class Wanted:
    """Which phrases are still to come, and how much of one is just being said."""

    left: tuple[Phrase, ...]
    current: Phrase = ()  # what is left of the phrase being said
    whole: Phrase = ()  # that phrase

    def next_ids(self) -> set[int]:
        return {self.current[0]} if self.current else {phrase[0] for phrase in self.left}

    def after(self, token: int) -> "Wanted":
        """A phrase that is broken off must be said anew."""
        if self.current:
            if token != self.current[0]:
                return Wanted((*self.left, self.whole)).after(token)
            rest = self.current[1:]
            return replace(self, current=rest) if rest else Wanted(self.left)
        for i, phrase in enumerate(self.left):
            if phrase[0] == token:
                others = self.left[:i] + self.left[i + 1 :]
                return Wanted(others, phrase[1:], phrase) if len(phrase) > 1 else Wanted(others)
        return self

    @property
    def n_missing(self) -> int:
        return len(self.current) + sum(len(phrase) for phrase in self.left)


@dataclass(frozen=True)
class _Open:
    ids: list[int] = field(default_factory=list)
    total: float = 0.0
    row: int = 0
    wanted: Wanted = Wanted(())


def phrase_search(
    steps: Steps, prefix: Tensor, phrases: tuple[Phrase, ...], options: DecodeOptions, end: int
) -> list[Hypothesis]:
    """The `nbest` answers to one sentence that contain all phrases; `steps` has at least `beam` rows for it."""
    k = options.beam
    beam = [_Open(wanted=Wanted(tuple(phrase for phrase in phrases if phrase)))]
    ended: list[Hypothesis] = []
    new = prefix.expand(k, -1)
    for _ in range(options.max_len + beam[0].wanted.n_missing):
        scores = steps.step(new).float().log_softmax(dim=-1)
        history = torch.tensor([h.ids for h in beam], dtype=torch.long)
        log_p = forbid_repeats(scores[: len(beam)], history.to(scores.device), options.no_repeat).cpu()
        candidates = _candidates(beam, log_p, k, end)
        stopped = [h for h in _share_out(candidates, k) if h.ids[-1] == end]
        ended += [Hypothesis(h.ids[:-1], h.total / len(h.ids) ** options.length_penalty) for h in stopped]
        beam = _share_out([h for h in candidates if h.ids[-1] != end], k)
        if not beam or len(ended) >= k:
            break
        rows = [h.row for h in beam] + [0] * (k - len(beam))
        steps.select(torch.tensor(rows, device=prefix.device))
        new = torch.tensor([[h.ids[-1]] for h in beam] + [[end]] * (k - len(beam)), device=prefix.device)
    if not ended:  # the greatest length came first: what misses least
        least = min(h.wanted.n_missing for h in beam)
        complete = [h for h in beam if h.wanted.n_missing == least]
        ended = [Hypothesis(h.ids, h.total / len(h.ids) ** options.length_penalty) for h in complete]
    return sorted(ended, key=lambda h: -h.score)[: options.nbest]


def _candidates(beam: list[_Open], log_p: Tensor, k: int, end: int) -> list[_Open]:
    """For each hypothesis its best continuations and those that a phrase asks for; none ends before all are said."""
    found = []
    for row, h in enumerate(beam):
        likely = set(log_p[row].topk(min(2 * k, log_p.shape[1])).indices.tolist())
        for token in likely | h.wanted.next_ids():
            if token == end and h.wanted.n_missing:
                continue
            p = float(log_p[row, token])
            if not math.isinf(p):
                found.append(_Open([*h.ids, token], h.total + p, row, h.wanted.after(token)))
    return sorted(found, key=lambda h: -h.total)


def _share_out(candidates: list[_Open], k: int) -> list[_Open]:
    """The best of each group, in turn, beginning with those that miss least, until the beam is full."""
    groups: dict[int, list[_Open]] = {}
    for h in candidates:
        groups.setdefault(h.wanted.n_missing, []).append(h)
    chosen: list[_Open] = []
    ordered = [groups[n] for n in sorted(groups)]
    while len(chosen) < k and any(ordered):
        for group in ordered:
            if group and len(chosen) < k:
                chosen.append(group.pop(0))
    return chosen
