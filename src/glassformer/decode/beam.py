"""Beam search; a beam of one is greedy search.

Each sentence keeps its `beam` best open hypotheses. One that ends is put aside and the next best open candidate takes
its place; when as many as the beam is wide have ended, the best by score over length ** penalty are the answer.
Without a penalty no longer answer can overtake: there the search is over when the best candidate of all has ended.
CTranslate2 searches the same way in every detail, so that both engines give the same answers.

s sentences, k beam, N vocabulary
"""

import math

import torch
from torch import Tensor

from glassformer.decode.filters import forbid_repeats
from glassformer.decode.options import DecodeOptions, Hypothesis, finish
from glassformer.decode.steps import Steps


def beam_search(
    steps: Steps, prefix: Tensor, options: DecodeOptions, end: int, normalise: bool = True
) -> list[list[Hypothesis]]:
    """The `nbest` answers to each sentence, best first, each without its `prefix` (s, n), which begins with a start.

    The prefix counts in the length and in what is not to be repeated, but not in the score. Steps that give
    log-probabilities, or some of them only, are not to be normalised again.
    """
    n_sentences, k = prefix.shape[0], options.beam
    device, begin = prefix.device, prefix.shape[1]
    alive = list(range(n_sentences))
    ended: list[list[Hypothesis]] = [[] for _ in range(n_sentences)]
    best_ended = [False] * n_sentences
    new = history = prefix.repeat_interleave(k, dim=0)  # (s * k, length)
    # All rows of a sentence start alike: only the first counts, or the beam would hold k copies.
    totals = torch.full((n_sentences, k), -math.inf, device=device)
    totals[:, 0] = 0.0
    for length in range(1, options.max_len + 1):
        allowed = forbid_repeats(steps.step(new).float(), history[:, 1:], options.no_repeat)
        log_p = allowed.log_softmax(dim=-1) if normalise else allowed  # (s * k, N)
        if options.no_repeat:  # where all is forbidden, the share of each is no number
            log_p = log_p.nan_to_num(nan=-math.inf)
        candidates = (totals.view(-1, 1) + log_p).view(len(alive), -1)  # (s, k * N)
        scores, places = candidates.topk(min(2 * k, candidates.shape[1]), dim=-1)  # 2k: even if k end, k go on
        words, parents = places % log_p.shape[-1], places.div(log_p.shape[-1], rounding_mode="floor")
        if length == 1 and begin > 1:
            words, scores = _go_on(words, scores, end)
        ends = (words == end) | (length == options.max_len)
        for i, j in (ends[:, :k] & ~scores[:, :k].isneginf()).nonzero().tolist():
            best_ended[alive[i]] |= j == 0
            ids = [*history[i * k + int(parents[i, j]), begin:].tolist(), int(words[i, j])]
            ended[alive[i]].append(finish(ids, float(scores[i, j]), begin - 1, options, end))
        chosen = ends.to(torch.int8).argsort(dim=-1, stable=True)[:, :k]  # (s, k) the k best that go on
        totals = scores.gather(1, chosen)
        hopeless = totals.isneginf().all(dim=1).tolist()
        left = [i for i, s in enumerate(alive) if not (hopeless[i] or _is_over(ended[s], best_ended[s], options))]
        if not left or length == options.max_len:
            break
        sentences = torch.tensor(left, device=device)
        totals, chosen = totals[sentences], chosen[sentences]
        rows = (parents[sentences].gather(1, chosen) + k * sentences[:, None]).flatten()
        new = words[sentences].gather(1, chosen).view(-1, 1)
        history = torch.cat([history[rows], new], dim=1)
        steps.select(rows, None if len(left) == len(alive) else sentences)
        alive = [alive[i] for i in left]
    return [sorted(found, key=lambda h: -h.score)[: options.nbest] for found in ended]


def _is_over(ended: list[Hypothesis], best_ended: bool, options: DecodeOptions) -> bool:
    if options.length_penalty == 0:
        return best_ended and len(ended) >= options.nbest
    return len(ended) >= options.beam


def _go_on(words: Tensor, scores: Tensor, end: int) -> tuple[Tensor, Tensor]:
    """Right after a given prefix, an answer may end only where that is the best of all.

    With a wide beam the end is always among the candidates there, and would win by its shortness.
    """
    early = words == end
    early[:, 0] = False
    return words.masked_fill(early, int(end == 0)), scores.masked_fill(early, -math.inf)
