"""One-hot attention with learned embeddings: the same steps, every table of it found by learning.

b rows, n words of a window, d width, N words of the vocabulary
"""

from dataclasses import KW_ONLY, dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from glassformer.errors import require
from glassformer.ladder.learned import LearnedRung
from glassformer.ladder.rung import Explanation, Reason, Words
from glassformer.model import attention


class EmbeddedNetwork(nn.Module):
    """words ─ embed ─ the last word's query finds earlier words ─ pairs (ReLU) ─ de-embed ─ scores

    No word knows its place: the earlier ones lie in a bag, as in the skip model.
    """

    def __init__(self, n_ids: int, width: int, n_pairs: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_ids, width)
        self.w_q = nn.Linear(width, width, bias=False)
        self.w_k = nn.Linear(width, width, bias=False)
        self.w_1 = nn.Linear(2 * width, n_pairs)
        self.w_2 = nn.Linear(n_pairs, width)
        self.de_embedding = nn.Linear(width, n_ids)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)  # (b, n, d)
        z, _ = self.look_up(x)
        return self.speak(z, x)  # (b, n, N)

    def look_up(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The soft mask softmax(QKᵀ/√d) over the words strictly before each one, and what it lets through."""
        n = x.shape[1]
        earlier = torch.ones(n, n, dtype=torch.bool, device=x.device).tril(-1)
        z, weights, _ = attention(self.w_q(x), self.w_k(x), x, earlier)
        return z, weights  # (b, n, d), (b, n, n)

    def speak(self, earlier: Tensor, last: Tensor) -> Tensor:
        """Pair features of what was found and the last word, and the scores that these give."""
        pairs = F.relu(self.w_1(torch.cat([earlier, last], dim=-1)))  # (b, n, n_pairs)
        scores: Tensor = self.de_embedding(self.w_2(pairs))
        return scores


@dataclass(eq=False)
class EmbeddedAttention(LearnedRung):
    """`width` numbers a word, and `n_pairs` features (four times the width if not given)."""

    width: int = 16
    n_pairs: int | None = None
    _: KW_ONLY
    lr: float = 1e-2

    name = "attention with embeddings"
    how = "attention"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.width >= 1, f"width is {self.width}.", "Give 1 or more numbers a word.")

    def build(self, n_words: int) -> EmbeddedNetwork:
        return EmbeddedNetwork(n_words + 1, self.width, self.n_pairs or 4 * self.width)

    @torch.no_grad()
    def weigh(self, ids: Tensor) -> Tensor:
        network = self.network
        assert isinstance(network, EmbeddedNetwork)
        return network.look_up(network.embedding(ids[None]))[1][0, -1]  # (n)

    @torch.no_grad()
    def explain(self, prefix: Words) -> Explanation:
        """Each earlier word, the start token too: its weight, and what would come if it were the only one looked at."""
        network, ids = self.network, self.window(prefix)
        assert isinstance(network, EmbeddedNetwork)
        x = network.embedding(ids)  # (n, d)
        alone = network.speak(x[:-1], x[-1:].expand(len(ids) - 1, -1))[:, : len(self.vocabulary)]
        *earlier, last = self.names(ids)
        rows = zip(earlier, self.weigh(ids).tolist(), alone.double().softmax(-1).numpy(), strict=False)
        reasons = [Reason(f"{word} … {last} ({self.how})", weight, scores) for word, weight, scores in rows]
        return Explanation(self.predict(prefix), reasons, adds_up=False)
