"""The road not taken: cells that read one word after the other and keep what they need in a state of fixed size.

Nothing is looked up: whatever a later word will ask for must have been carried along, and each word waits for the
one before it. The equations stand in the cells; torch's fused LSTM runs the same weights faster.

b rows, n words of a window, d width of word and state
"""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor, nn

from glassformer.errors import require
from glassformer.ladder.learned import LearnedRung

State = tuple[Tensor, ...]  # the first is what the cell says, (b, d)


class PlainCell(nn.Module):
    """h = tanh(W [x; h] + b)"""

    n_states = 1

    def __init__(self, d: int) -> None:
        super().__init__()
        self.w = nn.Linear(2 * d, d)

    def forward(self, x: Tensor, state: State) -> State:
        (h,) = state
        return (torch.tanh(self.w(torch.cat([x, h], dim=-1))),)


class LSTMCell(nn.Module):
    """Gates decide what the memory c takes in (i), keeps (f) and shows (o):

    i, f, g, o = W [x; h] + b;   c = σ(f) c + σ(i) tanh(g);   h = σ(o) tanh(c)
    """

    n_states = 2

    def __init__(self, d: int) -> None:
        super().__init__()
        self.w = nn.Linear(2 * d, 4 * d)
        with torch.no_grad():
            self.w.bias[d : 2 * d] = 1.0  # a new memory keeps: what it forgets, it must learn to forget

    def forward(self, x: Tensor, state: State) -> State:
        h, c = state
        i, f, g, o = self.w(torch.cat([x, h], dim=-1)).chunk(4, dim=-1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c


Cell = PlainCell | LSTMCell


def unroll(cell: Cell, x: Tensor) -> Tensor:
    """The cell along a row (b, n, d), from a state of zeros."""
    state: State = tuple(x.new_zeros(x.shape[0], x.shape[2]) for _ in range(cell.n_states))
    said = []
    for x_t in x.unbind(dim=1):
        state = cell(x_t, state)
        said.append(state[0])
    return torch.stack(said, dim=1)  # (b, n, d)


def unroll_fused(cell: LSTMCell, x: Tensor) -> Tensor:
    """The same for an LSTM by torch's kernel, about twice as fast."""
    d = x.shape[2]
    w_x, w_h = cell.w.weight.chunk(2, dim=1)
    zeros = x.new_zeros(1, x.shape[0], d)
    weights = [w_x.contiguous(), w_h.contiguous(), cell.w.bias, torch.zeros_like(cell.w.bias)]
    said: Tensor = torch.lstm(
        x, (zeros, zeros), weights, True, 1, 0.0, torch.is_grad_enabled(), False, batch_first=True
    )[0]
    return said


class RecurrentNetwork(nn.Module):
    """words ─ embed ─ cell after cell ─ de-embed ─ scores"""

    def __init__(self, n_ids: int, d: int, cell: Cell) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_ids, d)
        self.cell = cell
        self.de_embedding = nn.Linear(d, n_ids)

    def forward(self, ids: Tensor) -> Tensor:
        return self.read(self.embedding(ids))

    def read(self, x: Tensor) -> Tensor:
        said = unroll_fused(self.cell, x) if isinstance(self.cell, LSTMCell) else unroll(self.cell, x)
        scores: Tensor = self.de_embedding(said)
        return scores  # (b, n, N)


class RecurrentRung(LearnedRung):
    """What both recurrent rungs share: no attention to show, so they show gradient × input."""

    width: int
    how = "gradient × input"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.width >= 1, f"width is {self.width}.", "Give 1 or more numbers a word.")

    @abstractmethod
    def new_cell(self) -> Cell: ...

    def build(self, n_words: int) -> RecurrentNetwork:
        return RecurrentNetwork(n_words + 1, self.width, self.new_cell())

    def weigh(self, ids: Tensor) -> Tensor:
        """To first order, what each word's embedding adds to log p of the best word."""
        network = self.network
        assert isinstance(network, RecurrentNetwork)
        x = network.embedding(ids[None]).detach().requires_grad_()  # (1, n, d)
        best = network.read(x)[0, -1, : len(self.vocabulary)].log_softmax(dim=-1).max()
        (gradient,) = torch.autograd.grad(best, x)
        weights: Tensor = (gradient * x).sum(dim=-1)[0].detach()
        return weights  # (n)


@dataclass(eq=False)
class Recurrent(RecurrentRung):
    """The plain cell, `width` numbers wide."""

    width: int = 64

    name = "recurrent cell"

    def new_cell(self) -> PlainCell:
        return PlainCell(self.width)


@dataclass(eq=False)
class LSTM(RecurrentRung):
    """Long short-term memory, `width` numbers wide."""

    width: int = 64
    _: KW_ONLY
    lr: float = 1e-2

    name = "LSTM"

    def new_cell(self) -> LSTMCell:
        return LSTMCell(self.width)
