"""CTC as a second opinion in a search: how likely the sound is, given how an answer begins.

At every frame CTC says a token or the blank; an answer is what is left when repeats are joined and blanks dropped. The
prefix score of h is the probability of all answers that begin with h, summed over all paths. (Graves, 2006; the joint
search after Watanabe et al., 2017.) Products over frames are cumulated sums of logarithms: no loop is needed.

s sentences, k rows of each, r = s * k rows, t frames, N vocabulary
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer.decode.steps import Steps

BLANK = 0  # padding, which no text contains, says nothing here
LOW = -1e10  # stands for a probability of zero, and can be subtracted
_NEVER = -1e5  # the same for one frame: so many frames of it can be added up


class CtcPrefixes:
    """The prefix scores of some rows while they grow."""

    def __init__(self, log_p: Tensor, keep: Tensor | None, width: int, end: int) -> None:
        """`log_p` (s, t, N) are log-probabilities of the frames; `width` rows belong to each sentence."""
        self.end, self.width = end, width
        x = log_p.double().clamp(min=_NEVER)
        if keep is not None:  # beyond the end only the blank is said, for sure
            silent = torch.full_like(x[0, 0], _NEVER)
            silent[BLANK] = 0.0
            x = torch.where(keep[:, :, None], x, silent)
        self.x, self.p = x, x.exp()
        blanks = x[:, :, BLANK].cumsum(dim=1).repeat_interleave(width, dim=0)  # (r, t)
        self.blanks = blanks
        # Paths so far that end in the last token, and in a blank; `total` is the prefix score itself.
        self.in_token, self.in_blank = torch.full_like(blanks, LOW), blanks.clone()
        self.total = torch.zeros(len(blanks), dtype=x.dtype, device=x.device)
        self.last = torch.full((len(blanks),), -1, device=x.device)

    def scores(self) -> Tensor:
        """log p(token | prefix) for every token, (r, N); over the vocabulary they add up to one."""
        s, k = self.x.shape[0], self.width
        before = self._before(torch.logaddexp(self.in_token, self.in_blank))
        peak = before.amax(dim=1, keepdim=True)
        weights = (before - peak).exp().view(s, k, -1)  # (s, k, t)
        sums = torch.bmm(weights, self.p).flatten(0, 1)  # (r, N)
        found = sums.log() + peak
        rows = (self.last >= 0).nonzero()[:, 0]
        if len(rows):  # the same token again needs a blank between
            again = self._before(self.in_blank)[rows] + self._column(rows, self.last[rows])
            found[rows, self.last[rows]] = torch.logsumexp(again, dim=1)
        found[:, self.end] = torch.logaddexp(self.in_token[:, -1], self.in_blank[:, -1])
        found[:, BLANK] = LOW
        return found.clamp(min=LOW) - self.total[:, None]

    def extend(self, ids: Tensor) -> None:
        """Row i goes on with `ids[i]`."""
        rows = torch.arange(len(ids), device=ids.device)
        both = torch.logaddexp(self.in_token, self.in_blank)
        before = torch.where((ids == self.last)[:, None], self._before(self.in_blank), self._before(both))
        x = self._column(rows, ids)
        self.total = torch.logsumexp(before + x, dim=1).clamp(min=LOW)
        token = _cumulate(before + x, x.cumsum(dim=1))
        blank = _cumulate(_shift(token, LOW) + self._column(rows, torch.zeros_like(ids)), self.blanks)
        self.in_token, self.in_blank, self.last = token.clamp(min=LOW), blank.clamp(min=LOW), ids

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """Row i becomes what row `rows[i]` was; only these sentences are left."""
        self.in_token, self.in_blank, self.blanks = self.in_token[rows], self.in_blank[rows], self.blanks[rows]
        self.total, self.last = self.total[rows], self.last[rows]
        if sentences is not None:
            self.x, self.p = self.x[sentences], self.p[sentences]

    def _before(self, paths: Tensor) -> Tensor:
        """The paths (r, t) one frame earlier; before the first frame there is only the empty prefix."""
        shifted = _shift(paths, LOW)
        shifted[:, 0] = torch.where(self.last < 0, 0.0, LOW)
        return shifted

    def _column(self, rows: Tensor, ids: Tensor) -> Tensor:
        """Of each of the rows the log-probabilities (…, t) of its own token."""
        found: Tensor = self.x[rows // self.width, :, ids]
        return found


def _shift(paths: Tensor, first: float) -> Tensor:
    return torch.cat([torch.full_like(paths[:, :1], first), paths[:, :-1]], dim=1)


def _cumulate(entries: Tensor, stays: Tensor) -> Tensor:
    """What entered by frame t and stayed until t: the sum over s <= t of entries(s) times the stays from s + 1 to t."""
    return stays + torch.logcumsumexp(entries - stays, dim=1)


class JointSteps:
    """A running decoder and CTC together: (1 - weight) log p of the one + weight log p of the other.

    The scores are log-probabilities already: search with `normalise=False`.
    """

    def __init__(self, steps: Steps, ctc: CtcPrefixes, weight: float) -> None:
        self.steps, self.ctc, self.weight = steps, ctc, weight
        self.begun = False

    def step(self, ids: Tensor) -> Tensor:
        attention = self.steps.step(ids).double().log_softmax(dim=-1)
        if self.begun:
            self.ctc.extend(ids[:, -1])
        self.begun = True
        return ((1 - self.weight) * attention + self.weight * self.ctc.scores()).float()

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        self.steps.select(rows, sentences)
        self.ctc.select(rows, sentences)


def likeliest_path(log_p: NDArray[np.float64], ids: list[int]) -> list[tuple[int, int]]:
    """Where each token begins and ends among the frames (t, N) of the likeliest path that says them all.

    Nothing if there is no such path: each token needs a frame, and equal neighbours a blank between them.
    """
    states = np.full(2 * len(ids) + 1, BLANK)  # blank, x, blank, y, blank
    states[1::2] = ids
    leaps = np.zeros(len(states), dtype=bool)  # from x to another y, with no blank between
    leaps[3::2] = states[3::2] != states[1:-2:2]
    said = log_p[:, states]
    best = np.full(len(states), -np.inf)
    best[:2] = said[0, :2]
    back = np.zeros(said.shape, dtype=np.int64)
    for t in range(1, len(said)):
        ways = np.full((3, len(states)), -np.inf)
        ways[0], ways[1, 1:], ways[2, leaps] = best, best[:-1], best[:-2][leaps[2:]]
        back[t] = ways.argmax(axis=0)
        best = ways.max(axis=0) + said[t]
    if not ids or not np.isfinite(best[-2:].max()):
        return []
    path = [len(states) - 2 + int(best[-2:].argmax())]
    for row in back[:0:-1]:
        path.append(path[-1] - int(row[path[-1]]))
    path.reverse()
    begins = np.searchsorted(path, 2 * np.arange(len(ids)) + 1, side="left")
    ends = np.searchsorted(path, 2 * np.arange(len(ids)) + 1, side="right")
    return list(zip(begins.tolist(), ends.tolist(), strict=True))
