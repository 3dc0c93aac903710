"""Beam search; a beam of one is greedy search.

Each sentence keeps its `beam` best open hypotheses. One that ends is put aside and the next best open candidate takes
its place; when as many as the beam is wide have ended, the best by score over length ** penalty are the answer.
CTranslate2 searches the same way, so that both engines give the same answers.

s sentences, k beam, N vocabulary
"""

import math

import torch
from torch import Tensor

from glassformer.decode.filters import forbid_repeats
from glassformer.decode.options import DecodeOptions, Hypothesis
from glassformer.decode.steps import Steps


def beam_search(steps: Steps, prefix: Tensor, options: DecodeOptions, end: int) -> list[list[Hypothesis]]:
    """The `nbest` answers to each sentence, best first. `prefix` (s, n) is what each answer starts with."""
    n_sentences, k = prefix.shape[0], options.beam
    device = prefix.device
    alive = list(range(n_sentences))
    ended: list[list[Hypothesis]] = [[] for _ in range(n_sentences)]
    history = prefix.repeat_interleave(k, dim=0)  # (s * k, length)
    begin = history.shape[1]
    # All rows of a sentence start alike: only the first counts, or the beam would hold k copies.
    totals = torch.full((n_sentences, k), -math.inf, device=device)
    totals[:, 0] = 0.0
    new = history
    for length in range(1, options.max_len + 1):
        log_p = steps.step(new).float().log_softmax(dim=-1)  # (s * k, N)
        log_p = forbid_repeats(log_p, history[:, begin:], options.no_repeat)
        n_words = log_p.shape[-1]
        candidates = (totals.view(-1, 1) + log_p).view(len(alive), k * n_words)
        scores, places = candidates.topk(min(2 * k, candidates.shape[1]), dim=-1)  # 2k: even if k end, k go on
        words, parents = places % n_words, places.div(n_words, rounding_mode="floor")
        last = length == options.max_len
        going = _sort_out(words, scores, end, k, last)
        _collect(ended, alive, history[:, begin:], words, parents, scores, end, length, options, last)
        left = [i for i, sentence in enumerate(alive) if not last and len(ended[sentence]) < k]
        if not left:
            break
        sentences = torch.tensor(left, device=device)
        chosen = going[sentences]  # (s, k) places among the candidates
        totals = scores[sentences].gather(1, chosen)
        rows = (parents[sentences].gather(1, chosen) + k * sentences[:, None]).flatten()
        new = words[sentences].gather(1, chosen).view(-1, 1)
        history = torch.cat([history[rows], new], dim=1)
        steps.select(rows, None if len(left) == len(alive) else sentences)
        alive = [alive[i] for i in left]
    return [sorted(found, key=lambda h: -h.score)[: options.nbest] for found in ended]


def _sort_out(words: Tensor, scores: Tensor, end: int, k: int, last: bool) -> Tensor:
    """Of each sentence's candidates, best first, the k best that do not end."""
    if last:
        return torch.zeros(len(words), k, dtype=torch.long, device=words.device)
    open_first = (words == end) | scores.isneginf()
    return open_first.to(torch.int8).argsort(dim=-1, stable=True)[:, :k]


def _collect(
    ended: list[list[Hypothesis]],
    alive: list[int],
    history: Tensor,
    words: Tensor,
    parents: Tensor,
    scores: Tensor,
    end: int,
    length: int,
    options: DecodeOptions,
    last: bool,
) -> None:
    """Put aside what ended among the k best; at the greatest length everything ends."""
    k = options.beam
    stops = (words[:, :k] == end) | last
    for i, j in (stops & ~scores[:, :k].isneginf()).nonzero().tolist():
        ids = history[i * k + int(parents[i, j])].tolist()
        if int(words[i, j]) != end:
            ids.append(int(words[i, j]))
        ended[alive[i]].append(Hypothesis(ids, float(scores[i, j]) / length**options.length_penalty))
