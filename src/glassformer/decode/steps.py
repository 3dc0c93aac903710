"""What a search needs to know of a model: feed tokens, get scores, reorder rows."""

from typing import Protocol

from torch import Tensor


class Steps(Protocol):
    """A running decoder with a fixed number of rows for each of some sentences.

    Row `s * width + j` is the j-th row of sentence s.
    """

    def step(self, ids: Tensor) -> Tensor:
        """Feed (rows, n) more tokens and give the scores (rows, N) of what may follow the last of them."""
        ...

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """Row i becomes what row `rows[i]` was; `sentences` says which sentences are left, where some have ended."""
        ...
