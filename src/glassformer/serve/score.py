"""How likely each token of a prompt was, after those before it.

n length of a part, N vocabulary
"""

import torch

from glassformer.serve.openai_answers import Tokens
from glassformer.tasks.completer import Completer

PART = 128  # tokens at once: scores over a large vocabulary take half a megabyte each


@torch.inference_mode()
def score_prompt(completer: Completer, ids: list[int], n_others: int) -> Tokens:
    """The log-probabilities of all tokens but the first, each beside the best others."""
    model, names = completer.model, completer.tokenizer.tokens
    cache = model.new_cache(1, len(ids))
    log_p: list[float | None] = [None]
    others: list[list[tuple[str, float]]] = [[]]
    for begin in range(0, len(ids) - 1, PART):
        read = torch.tensor([ids[begin : begin + PART]])
        next_ids = torch.tensor(ids[begin + 1 : begin + 1 + PART])
        scores = model.head(model.states(read, None, cache)[0])[: len(next_ids)].float()  # (n, N)
        totals = model.log_totals(scores)
        log_p += (scores.gather(1, next_ids[:, None])[:, 0] - totals).tolist()
        values, places = scores.topk(min(n_others, scores.shape[1]), dim=-1)
        for row, best in zip(places.tolist(), (values - totals[:, None]).tolist(), strict=True):
            others.append(list(zip(names(row), best, strict=True)))
    return Tokens(names(ids), log_p, others if n_others else [])
