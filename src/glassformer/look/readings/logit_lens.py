"""The logit lens: what the model would answer if it stopped after each layer.

L layers, n positions, N answers
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from glassformer.look.readings.answering import answering
from glassformer.look.trace import Trace
from glassformer.model import Transformer


@dataclass(frozen=True)
class Lens:
    """The best answers after the front-end and after each layer, with their probabilities."""

    ids: Tensor  # (L + 1, n, k), or (L + 1, k) for one answer to the whole sequence
    probabilities: Tensor


@torch.no_grad()
def lens_logits(model: Transformer, seen: Trace, layer: int, row: int = 0) -> Tensor:
    """The logits read off after `layer` layers; 0 is the front-end alone."""
    where = answering(model)
    first = f"{where.stack_name}.blocks.0.self_residual.before"
    name = first if layer == 0 else f"{where.stack_name}.blocks.{layer - 1}.feed_forward_residual.after"
    states = seen[name][row : row + 1]
    states = states if where.stack.norm is None else where.stack.norm(states)
    keep = f"{where.front_end_name}.keep"
    logits: Tensor = model.head(states, seen[keep][row : row + 1] if keep in seen else None)
    return logits[0]  # (n, N) or (N)


def logit_lens(model: Transformer, seen: Trace, k: int = 5, row: int = 0) -> Lens:
    """The k best answers after each layer; one layer at a time, so that a large vocabulary fits."""
    n_layers = len(answering(model).stack.blocks)
    best = []
    for layer in range(n_layers + 1):
        logits = lens_logits(model, seen, layer, row)
        best.append(logits.float().softmax(dim=-1).topk(min(k, logits.shape[-1]), dim=-1))
    return Lens(torch.stack([b.indices for b in best]), torch.stack([b.values for b in best]))
