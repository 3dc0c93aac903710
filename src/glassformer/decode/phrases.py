"""Beam search for an answer that must contain given phrases (terminology).

Hypotheses stand in groups by how many of the wanted tokens they lack, and each group is a beam of its own. So a phrase
that the model finds unlikely is tried at every place, and the one where it costs least wins. (Grid beam search: Hokamp
and Liu, 2017.) What has no room left for its phrases is given up. One sentence at a time.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

from glassformer.decode.filters import forbid_repeats
from glassformer.decode.options import DecodeOptions, Hypothesis, finish
from glassformer.decode.steps import Steps
from glassformer.errors import UserError, require

Phrase = tuple[int, ...]

MOST_ROWS = 1024  # of all groups together; the beams of very many are narrower


@dataclass(frozen=True)
class Wanted:
    """Phrases that are still to come, each with as many of its tokens as were just said; they may overlap."""

    left: tuple[tuple[Phrase, int], ...] = ()

    @classmethod
    def of(cls, phrases: Iterable[Phrase]) -> "Wanted":
        return cls(tuple((phrase, 0) for phrase in dict.fromkeys(phrases) if phrase))

    def next_ids(self) -> set[int]:
        return {phrase[said] for phrase, said in self.left}

    def after(self, token: int) -> "Wanted":
        """One that is broken off goes on from the longest beginning of it that was just said."""
        said = ((phrase, _longest_beginning(phrase, (*phrase[:n], token))) for phrase, n in self.left)
        return Wanted(tuple((phrase, n) for phrase, n in said if n < len(phrase)))

    @property
    def n_missing(self) -> int:
        """So many tokens are enough to say all: the phrase that has come furthest first, then the others."""
        return sum(len(phrase) for phrase, _ in self.left) - max((said for _, said in self.left), default=0)


def _longest_beginning(phrase: Phrase, said: tuple[int, ...]) -> int:
    return next(n for n in range(len(said), -1, -1) if said[len(said) - n :] == phrase[:n])


@dataclass(frozen=True)
class _Open:
    ids: list[int]
    wanted: Wanted
    total: float = 0.0
    row: int = 0

    def says(self, end: int) -> bool:
        return self.ids[-1:] == [end]


def phrase_search(
    steps: Steps, prefix: Tensor, phrases: tuple[Phrase, ...], options: DecodeOptions, end: int
) -> list[Hypothesis]:
    """The `nbest` answers to one sentence that contain all phrases; `steps` has `n_rows` for it.

    The prefix counts as in `beam_search`; a phrase may stand in it or begin there.
    """
    rows, given = n_rows(phrases, options), prefix[0, 1:].tolist()
    k = rows // _n_groups(phrases)
    beam = [_Open([], reduce(Wanted.after, given, Wanted.of(phrases)))]
    require(
        beam[0].wanted.n_missing <= options.max_len,
        f"The phrases have {beam[0].wanted.n_missing} tokens, but the answer may have no more than {options.max_len}.",
        "Ask for fewer phrases, or allow more with max_len.",
    )
    ended: list[Hypothesis] = []
    new = prefix.expand(rows, -1)
    for length in range(1, options.max_len + 1):
        scores = steps.step(new)[: len(beam)].float()
        history = torch.tensor([given + h.ids for h in beam], dtype=torch.long, device=scores.device)
        log_p = forbid_repeats(scores, history, options.no_repeat).log_softmax(dim=-1).cpu()
        candidates = _candidates(beam, log_p, k, end, may_end=not given or length > 1)
        candidates = [h for h in candidates if h.wanted.n_missing <= options.max_len - length]
        is_last = length == options.max_len
        stopped = [h for h in _best_of_each(candidates, k) if is_last or h.says(end)]
        ended += [finish(h.ids, h.total, len(given), options, end) for h in stopped]
        ended = sorted(ended, key=lambda h: -h.score)[:k]
        beam = _best_of_each([h for h in candidates if not h.says(end)], k)
        # One that still lacks something may come to a better end than those that said it in the wrong place.
        hopes = (finish(h.ids, h.total, len(given), options, end).score for h in beam if h.wanted.left)
        is_over = len(ended) == k and all(hope <= ended[-1].score for hope in hopes)
        if not beam or is_over or is_last:
            break
        idle = rows - len(beam)
        steps.select(torch.tensor([h.row for h in beam] + [0] * idle, device=prefix.device))
        new = torch.tensor([[h.ids[-1]] for h in beam] + [[end]] * idle, device=prefix.device)
    if not ended:
        raise UserError(
            "No answer was found that contains all phrases.", "Allow repeats (no_repeat 0), or give a wider beam."
        )
    return ended[: options.nbest]


def n_rows(phrases: tuple[Phrase, ...], options: DecodeOptions) -> int:
    """A beam for each number of tokens that may be lacking."""
    n = _n_groups(phrases)
    return n * max(1, min(options.beam, MOST_ROWS // n))


def _n_groups(phrases: tuple[Phrase, ...]) -> int:
    return Wanted.of(phrases).n_missing + 1


def _candidates(beam: list[_Open], log_p: Tensor, k: int, end: int, may_end: bool) -> list[_Open]:
    """For each hypothesis its best continuations and those that a phrase asks for.

    None ends before all is said, nor right after a given prefix, unless that is the best of all.
    """
    found = []
    for row, h in enumerate(beam):
        likely = log_p[row].topk(min(2 * k, log_p.shape[1])).indices.tolist()
        for token in {*likely, *h.wanted.next_ids()}:
            p = float(log_p[row, token])
            is_early = token == end and (h.wanted.left or not (may_end or token == likely[0]))
            if not is_early and math.isfinite(p):  # where all is forbidden, the share of each is no number
                found.append(_Open([*h.ids, token], h.wanted.after(token), h.total + p, row))
    return sorted(found, key=lambda h: -h.total)


def _best_of_each(candidates: list[_Open], k: int) -> list[_Open]:
    """The k best of each group."""
    groups: dict[int, list[_Open]] = {}
    for h in candidates:
        groups.setdefault(h.wanted.n_missing, []).append(h)
    return [h for group in groups.values() for h in group[:k]]
