"""Blanks in rows of tokens, as BERT makes them: some tokens are chosen, and most of these hidden.

Of the chosen, 80 % become the mask, 10 % any other token and 10 % stay: the model cannot know which of the words that
it sees are true, and must have an opinion on all. Who asks again gets other blanks (dynamic masking).

b batch, n length
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import models

from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import require

Ids = NDArray[np.int64]
Places = NDArray[np.bool_]
HIDDEN, EXCHANGED = 0.8, 0.1  # of the chosen; the rest stays as it is


@dataclass(frozen=True)
class Masking:
    """How blanks are made for one vocabulary."""

    mark: int
    ordinary: Ids  # the ids that are words or pieces, not marks
    share: float  # of the tokens that are chosen
    joined: "Joined | None" = None  # None: each token for itself, else whole words

    def choose(self, ids: Ids, random: np.random.Generator) -> Places:
        """Which tokens are to be guessed; at least one where there is a choice."""
        free = np.isin(ids, self.ordinary)
        begins = np.ones(ids.shape, dtype=bool) if self.joined is None else ~self.joined.places(ids)
        word = np.cumsum(begins, axis=1, dtype=np.int64) - 1
        drawn = random.random(ids.shape) < self.share  # (b, n) by word number
        chosen = np.take_along_axis(drawn, word, axis=1) & free
        if not chosen.any() and free.any():
            rows, places = np.nonzero(free)
            i = int(random.integers(len(rows)))
            chosen[rows[i], places[i]] = True
        return chosen

    def hide(self, ids: Ids, chosen: Places, random: np.random.Generator) -> Ids:
        """The rows as the model sees them."""
        how = random.random(ids.shape)
        seen = np.where(chosen & (how < HIDDEN), self.mark, ids)
        other = self.ordinary[random.integers(len(self.ordinary), size=ids.shape)]
        return np.where(chosen & (how >= HIDDEN) & (how < HIDDEN + EXCHANGED), other, seen)


@dataclass(frozen=True)
class Joined:
    """Which tokens go on with the word of the token before, by how their pieces begin and end."""

    begins: Places  # by id
    ends: Places

    def places(self, ids: Ids) -> Places:
        on = np.zeros(ids.shape, dtype=bool)
        on[:, 1:] = self.begins[ids[:, 1:]] & self.ends[ids[:, :-1]]
        return on


def make_masking(tokenizer: Tokenizer, share: float = 0.15, whole_words: bool = False) -> Masking:
    mark = tokenizer.marks.mask
    require(mark is not None, "The vocabulary has no mark for blanks.", "Use a model made by `glassformer train fill`.")
    assert mark is not None
    ordinary = np.array([i for i in range(tokenizer.vocab_size) if i not in tokenizer.special], dtype=np.int64)
    return Masking(mark, ordinary, share, join_words(tokenizer) if whole_words else None)


def join_words(tokenizer: Tokenizer) -> Joined:
    """WordPiece marks the pieces that go on; elsewhere letters after letters do."""
    pieces = [tokenizer.piece(i) for i in range(tokenizer.vocab_size)]
    if isinstance(tokenizer.core.model, models.WordPiece):
        begins = [piece.startswith("##") for piece in pieces]
        ends = [i not in tokenizer.special for i in range(len(pieces))]
    else:
        texts = ["" if i in tokenizer.special else t for i, t in enumerate(tokenizer.tokens(list(range(len(pieces)))))]
        # A lone byte of a longer character belongs to its neighbours.
        begins = [text[:1].isalnum() or text[:1] == "\N{REPLACEMENT CHARACTER}" for text in texts]
        ends = [text[-1:].isalnum() or text[-1:] == "\N{REPLACEMENT CHARACTER}" for text in texts]
    return Joined(np.array(begins), np.array(ends))
