"""What may not or shall rarely follow: each filter takes scores (rows, N) and gives scores.

Deliberately not here: the search itself.
"""

import math

import torch
from torch import Tensor


def forbid_repeats(scores: Tensor, history: Tensor, n: int) -> Tensor:
    """Forbid whatever would complete an n-gram that a row's history (rows, length) already has."""
    length = history.shape[1]
    if n == 0 or length < n:
        return scores
    if n == 1:
        return scores.scatter(1, history, -math.inf)
    grams = history.unfold(1, n, 1)  # (rows, length - n + 1, n)
    same = (grams[:, :, :-1] == history[:, None, length - n + 1 :]).all(dim=-1)
    banned = torch.zeros_like(scores, dtype=torch.bool)
    rows, places = same.nonzero(as_tuple=True)
    banned[rows, grams[rows, places, -1]] = True
    return scores.masked_fill(banned, -math.inf)


def keep_top_k(scores: Tensor, k: int) -> Tensor:
    """Only the k best; 0 keeps all."""
    if k == 0 or k >= scores.shape[-1]:
        return scores
    least = scores.topk(k, dim=-1).values[:, -1:]
    return scores.masked_fill(scores < least, -math.inf)


def keep_top_p(scores: Tensor, p: float) -> Tensor:
    """Only the smallest set of best words whose probabilities reach p; never none."""
    if p >= 1:
        return scores
    ordered, places = scores.sort(dim=-1, descending=True)
    before = ordered.softmax(dim=-1).cumsum(dim=-1) - ordered.softmax(dim=-1)
    dropped = torch.zeros_like(scores, dtype=torch.bool).scatter(1, places, before >= p)
    return scores.masked_fill(dropped, -math.inf)


def keep_min_p(scores: Tensor, p: float) -> Tensor:
    """Only what is at least p times as likely as the best."""
    if p <= 0:
        return scores
    return scores.masked_fill(scores < scores.amax(dim=-1, keepdim=True) + math.log(p), -math.inf)
