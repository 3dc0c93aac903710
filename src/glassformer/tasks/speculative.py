"""One prompt, two models: a draft runs ahead by a few tokens, and the model itself reads them in one pass.

Deliberately not here: the rule by which a proposed token is taken (`decode/speculative.py`).
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from glassformer.data.tokenizer import Tokenizer
from glassformer.decode.choose import Chosen, Said, choose_next, distribution, draw
from glassformer.decode.complete_options import CompleteOptions
from glassformer.decode.speculative import judge
from glassformer.errors import require
from glassformer.model import DecoderOnly
from glassformer.tasks.generator import CHUNK

AHEAD = 4  # tokens that the draft proposes at once


class Reader:
    """A model and what it has read; it can forget the end of it."""

    def __init__(self, model: DecoderOnly, capacity: int) -> None:
        self.model, self.cache = model.eval(), model.new_cache(1, capacity)

    def read(self, ids: list[int], n: int) -> Tensor:
        """The scores (n, N) after each of the last n tokens; what was read before is not read again."""
        self.cache.truncate(min(self.cache.length, len(ids) - n))
        device = next(self.model.parameters()).device
        new = torch.tensor([ids[self.cache.length :]], device=device)
        states = [self.model.states(part, cache=self.cache) for part in torch.split(new, CHUNK, dim=1)]
        scores: Tensor = self.model.head(torch.cat(states, dim=1)[0, -n:])
        return scores.float()

    def forget(self, length: int) -> None:
        """All but the first `length` tokens."""
        self.cache.truncate(min(self.cache.length, length))


class SpeculativeGenerator:
    """Iterate over it as over a `Generator` with one row; `n_taken` of `n_proposed` tokens were the draft's."""

    def __init__(
        self,
        model: DecoderOnly,
        draft: DecoderOnly,
        prompt: list[int],
        options: CompleteOptions,
        ends: tuple[int, ...] = (),
        context: int | None = None,
        seed: int = 0,
    ) -> None:
        """`context` is the most that both models can see."""
        require(not options.slide, "A draft cannot go with a sliding window.", "Leave out the draft or --slide.")
        n_most = len(prompt) + options.max_tokens
        self.room = n_most if context is None else min(n_most, context)
        require(
            len(prompt) < self.room,
            f"The prompt has {len(prompt):,} tokens, but the models see only {self.room:,} at once, with the answer.",
            "Shorten it.",
        )
        self.ids, self.n_prompt, self.options, self.ends = list(prompt), len(prompt), options, ends
        self.model, self.draft = Reader(model, self.room), Reader(draft, self.room)
        self.random = torch.Generator().manual_seed(seed)
        self.stopped = False
        self.n_proposed = self.n_taken = 0

    def stop(self, row: int = 0) -> None:  # noqa: ARG002 (the face of a Generator)
        self.stopped = True

    @torch.inference_mode()
    def __iter__(self) -> Iterator[list[tuple[int, Chosen]]]:
        n_most = self.n_prompt + self.options.max_tokens
        while len(self.ids) < n_most and len(self.ids) <= self.room:
            proposed, shares = self._propose(min(AHEAD, n_most - len(self.ids) - 1, self.room - len(self.ids)))
            scores = self.model.read([*self.ids, *proposed], len(proposed) + 1)
            for i in range(len(proposed) + 1):
                token, taken = self._settle(scores[i], proposed[i : i + 1], shares[i : i + 1])
                self.ids.append(token.id)
                self.stopped |= token.id in self.ends
                yield [(0, token)]
                if self.stopped:
                    return
                if not taken:
                    break
            self.model.forget(len(self.ids) - 1)
            self.draft.forget(len(self.ids) - 1)

    def _propose(self, n: int) -> tuple[list[int], list[Tensor | None]]:
        """What the draft would say next, and the probabilities that it drew from."""
        proposed: list[int] = []
        shares: list[Tensor | None] = []
        for _ in range(n):
            ids = [*self.ids, *proposed]
            scores = self.draft.read(ids, 1)
            found = distribution(scores, [Said(ids, self.n_prompt)], self.options)
            if found is None:
                proposed.append(self._chosen(scores[0], ids).id)
            else:
                proposed.append(int(draw(found[0], self.random)))
            shares.append(None if found is None else found[0])
            if proposed[-1] in self.ends:
                break
        self.n_proposed += len(proposed)
        return proposed, shares

    def _settle(self, scores: Tensor, proposed: list[int], shares: list[Tensor | None]) -> tuple[Chosen, bool]:
        """The next token by the model's own scores (N), and whether the draft had it."""
        own = distribution(scores[None], [Said(self.ids, self.n_prompt)], self.options)
        if not proposed or own is None or shares[0] is None:
            chosen = self._chosen(scores, self.ids)
            taken = proposed == [chosen.id]
        else:
            token, taken = judge(own[0], shares[0], proposed[0], self.random)
            chosen = self._chosen(scores, self.ids, token)
        self.n_taken += taken
        return chosen, taken

    def _chosen(self, scores: Tensor, ids: list[int], token: int | None = None) -> Chosen:
        return choose_next(scores[None], [Said(ids, self.n_prompt)], self.options, [self.random], token)[0]


def check_draft(own: Tokenizer, draft: Tokenizer) -> None:
    """Both must mean the same by every id."""
    require(
        own.core.get_vocab() == draft.core.get_vocab() and own.marks.ends == draft.marks.ends,
        "The draft has another vocabulary than the model.",
        "Take a draft of the same family, or one trained with --tokenizer MODEL/tokenizer.json.",
    )
