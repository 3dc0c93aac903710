"""Direct logit attribution: how much each part of the model put into one logit by itself.

The stream is a sum of what all parts wrote into it, and a norm with its divisor held fast is a linear map. So one
logit is a sum over the input, every head (and every position that it looked at) and every hidden unit; going back
through the norms gives the direction in which each part must have pushed. What a part does by way of later parts is
not counted: that is what ablation is for.

n positions, m keys, d width, h heads
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from glassformer.errors import require
from glassformer.look.readings.answering import answering
from glassformer.look.trace import Trace
from glassformer.model import Transformer
from glassformer.model.attention import MultiHeadAttention
from glassformer.model.heads import EmbeddingHead, TokenHead
from glassformer.model.inputs import Tokens
from glassformer.model.layers import FeedForward
from glassformer.model.stack import Block


@dataclass
class Attribution:
    """Shares of one logit, by the paths of the modules that gave them; all together they are the logit."""

    inputs: dict[str, float] = field(default_factory=dict)  # embedding, positions, …
    keys: dict[str, Tensor] = field(default_factory=dict)  # attention -> (h, m): head, and position that it looked at
    hidden: dict[str, Tensor] = field(default_factory=dict)  # feed-forward -> (d_ff)
    biases: float = 0.0  # of all linear maps and norms

    @property
    def heads(self) -> dict[str, Tensor]:
        """Each attention's heads (h)."""
        return {name: keys.sum(dim=1) for name, keys in self.keys.items()}

    @property
    def parts(self) -> dict[str, float]:
        """One number a part: inputs, attentions, feed-forward parts, biases."""
        attentions = {name: float(keys.sum()) for name, keys in self.keys.items()}
        feed_forward = {name: float(units.sum()) for name, units in self.hidden.items()}
        return {**self.inputs, **attentions, **feed_forward, "biases": self.biases}

    @property
    def total(self) -> float:
        return sum(self.parts.values())

    def by_token(self, kind: str = "self") -> Tensor:
        """What all heads brought from each position (m)."""
        return torch.stack([keys.sum(dim=0) for name, keys in self.keys.items() if f".{kind}_" in name]).sum(dim=0)


@torch.no_grad()
def attribute(
    model: Transformer, seen: Trace, answer: int, position: int = -1, against: int | None = None, row: int = 0
) -> Attribution:
    """Shares of the logit of `answer`, or of its lead over `against`; `position` counts for token heads only."""
    where, found = answering(model), Attribution()
    direction, bias = _direction(model, seen, answer, position, row)
    if against is not None:
        other, other_bias = _direction(model, seen, against, position, row)
        direction, bias = direction - other, bias - other_bias
    found.biases = bias
    # A token head reads one position, and no other has to be gone back from.
    at = [position] if isinstance(model.head, TokenHead) else list(range(len(direction)))
    walk = _Walk(seen, row, at, found, direction[at])
    walk.norm(where.stack.norm, where.stack_name)
    for i in reversed(range(len(where.stack.blocks))):
        block = where.stack.blocks[i]
        assert isinstance(block, Block)
        walk.block(block, f"{where.stack_name}.blocks.{i}")
    walk.front_end(where.front_end, where.front_end_name)
    return found


def _direction(model: Transformer, seen: Trace, answer: int, position: int, row: int) -> tuple[Tensor, float]:
    """What the logit is a product with, for each position's last state (n, d), and the bias beside it."""
    head, out = model.head, seen[f"{answering(model).stack_name}.out"][row].double()
    linear = not isinstance(head, EmbeddingHead) and head.transform is None
    require(linear, "The head is not linear in its input, so that a logit is no sum.", "Use gradient_times_input.")
    assert not isinstance(head, EmbeddingHead)
    w = head.w.weight[answer].double()
    bias = 0.0 if head.w.bias is None else float(head.w.bias[answer])
    if isinstance(head, TokenHead):
        direction = torch.zeros_like(out)
        direction[position] = w
        return direction, bias
    keep = f"{answering(model).front_end_name}.keep"
    with torch.enable_grad():  # pooling is linear: its gradient is the share of each position
        states = out[None].clone().requires_grad_()
        pooled = head.pool(states, seen[keep][row : row + 1] if keep in seen else None)
        (direction,) = torch.autograd.grad((pooled @ w).sum(), states)
    return direction[0], bias


class _Walk:
    """Goes from the logit back to the input with a direction for each position that is read (n, d)."""

    def __init__(self, seen: Trace, row: int, at: list[int], found: Attribution, direction: Tensor) -> None:
        self.seen, self.row, self.at, self.found, self.direction = seen, row, at, found, direction

    def tensor(self, name: str) -> Tensor:
        """What was seen at these positions (…, n, ·)."""
        return self.seen[name][self.row][..., self.at, :].double()

    def norm(self, norm: nn.Module | None, owner: str) -> None:
        """Back through a norm whose divisor is held fast."""
        if norm is None:
            return
        assert isinstance(norm, nn.LayerNorm | nn.RMSNorm)
        g = self.direction
        if isinstance(norm, nn.LayerNorm) and norm.bias is not None:
            self.found.biases += float((g * norm.bias.double()).sum())
        g = g * norm.weight.double()
        if isinstance(norm, nn.LayerNorm):
            g = g - g.mean(dim=-1, keepdim=True)
        self.direction = g / self.tensor(f"{owner}.scale")

    def block(self, block: Block, path: str) -> None:
        parts = (("feed_forward", block.feed_forward), ("cross", block.cross_attention), ("self", block.self_attention))
        for name, part in parts:
            if part is None:
                continue
            residual = getattr(block, f"{name}_residual")
            if not residual.pre:
                self.norm(residual.norm, f"{path}.{name}_residual")
            if isinstance(part, FeedForward):
                self.feed_forward(part, f"{path}.feed_forward")
            else:
                self.attention(part, f"{path}.{name}_attention")

    def attention(self, part: MultiHeadAttention, path: str) -> None:
        w_o = part.w_o.weight.double().view(-1, part.n_heads, part.d_v)  # (d, h, d_v)
        g = torch.einsum("nd,dhv->hnv", self.direction, w_o)
        v = self.seen[f"{path}.v"][self.row].double()
        v = v.repeat_interleave(part.n_heads // v.shape[0], dim=0)  # (h, m, d_v)
        self.found.keys[path] = torch.einsum("hnm,hmv,hnv->hm", self.tensor(f"{path}.weights"), v, g)
        self.bias(part.w_o)

    def feed_forward(self, part: FeedForward, path: str) -> None:
        g = self.direction @ part.w_2.weight.double()  # (n, d_ff)
        self.found.hidden[path] = (self.tensor(f"{path}.hidden") * g).sum(dim=0)
        self.bias(part.w_2)

    def bias(self, linear: nn.Linear) -> None:
        if linear.bias is not None:
            self.found.biases += float((self.direction @ linear.bias.double()).sum())

    def front_end(self, front_end: nn.Module, path: str) -> None:
        if not isinstance(front_end, Tokens):
            self.found.inputs[f"{path}.x"] = float((self.tensor(f"{path}.x") * self.direction).sum())
            return
        self.norm(front_end.norm, path)
        for name in ("embedding", "types"):
            if f"{path}.{name}" in self.seen:
                self.found.inputs[f"{path}.{name}"] = float((self.tensor(f"{path}.{name}") * self.direction).sum())
        if f"{path}.positions" in self.seen:
            positions = self.seen[f"{path}.positions"].double()
            positions = positions[self.row] if positions.dim() == 3 else positions  # each row's own where padded
            positions = positions[self.at]
            self.found.inputs[f"{path}.positions"] = float((positions * self.direction).sum())
