"""A text, or a pair of texts, as one row of ids with the marks that its model knows: BERT's way.

    start a end            or            start a end b end

Types say which text an id belongs to: 0 for the first with its marks, 1 for the second. Where a model has no start
mark (GPT-2), the row begins with the text.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glassformer.data.tokenizer import Marks

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Framing:
    marks: Marks
    max_tokens: int  # of a row, its marks included; of what is longer the end is lost, first of the longer text

    def n_marks(self, n_texts: int) -> int:
        return n_texts + (self.marks.start is not None)

    def lengths(self, sides: Sequence[Ids]) -> Ids:
        """Of rows, from the lengths of their texts."""
        return np.minimum(self.whole(sides), self.max_tokens)

    def whole(self, sides: Sequence[Ids]) -> Ids:
        """The same before anything is cut."""
        total: Ids = np.sum(sides, axis=0) + self.n_marks(len(sides))
        return total

    def frame(self, texts: Sequence[Ids]) -> tuple[Ids, Ids]:
        """The ids of the row, and their types."""
        cut = self._fit([len(ids) for ids in texts], self.max_tokens - self.n_marks(len(texts)))
        start = [] if self.marks.start is None else [self.marks.start]
        rows = [[*ids[:n].tolist(), self.marks.ends[0]] for ids, n in zip(texts, cut, strict=True)]
        rows[0] = start + rows[0]
        types = [number for number, row in enumerate(rows) for _ in row]
        return np.array([i for row in rows for i in row], dtype=np.int64), np.array(types, dtype=np.int64)

    @staticmethod
    def _fit(lengths: list[int], room: int) -> list[int]:
        """Lengths that fit; the longer text gives way first."""
        if len(lengths) == 1:
            return [min(lengths[0], room)]
        first, second = lengths
        if first + second <= room:
            return lengths
        short = min(first, second, room // 2)
        return [short, room - short] if first <= second else [room - short, short]
