"""A long source shown in fewer positions: neighbours are joined while a trace records, so that nothing whole is kept.

Every vector shown is a true one, that of the middle neighbour. Where attention looks at joined positions, their shares
are added up, and the score is the logarithm of the sum of their exponentials: the softmax of such scores gives these
shares exactly.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from glassformer.look.points import Place


@dataclass(frozen=True)
class Join:
    """How many neighbours each shown position stands for."""

    sizes: tuple[int, ...]

    @property
    def n_whole(self) -> int:
        return sum(self.sizes)

    @property
    def middles(self) -> list[int]:
        """The positions whose vectors are shown."""
        ends = torch.tensor(self.sizes).cumsum(0).tolist()
        return [end - size + size // 2 for end, size in zip(ends, self.sizes, strict=True)]

    def add(self, values: Tensor) -> Tensor:
        """Sums of neighbours along the last dimension."""
        sizes = torch.tensor(self.sizes, device=values.device)
        owner = torch.arange(len(sizes), device=values.device).repeat_interleave(sizes)
        return values.new_zeros(*values.shape[:-1], len(sizes)).index_add_(-1, owner, values)

    def shorten(self, place: Place, found: Tensor) -> Tensor:
        """What a trace keeps of a tensor; all but the source's positions stay as they are."""
        in_source = place.name.startswith(("source.", "encoder."))
        over_source = in_source or ".cross_attention." in place.name
        letters = place.point.shape.split()
        for axis, letter in enumerate(letters, start=-len(letters)):
            if letter == "m" and over_source and place.point.name == "weights":
                found = self.add(found)
            elif letter == "m" and over_source and place.point.name == "scores":
                found = self._join_scores(found)
            elif (letter == "m" and over_source) or (letter == "n" and in_source):
                found = self._choose(found, axis)
        return found

    def _join_scores(self, scores: Tensor) -> Tensor:
        highest = scores.amax(dim=-1, keepdim=True)
        return self.add((scores - highest).exp()).log() + highest

    def _choose(self, values: Tensor, axis: int) -> Tensor:
        """The middle ones; of frames, which are more, as many as lie beside the positions that are shown."""
        n = values.shape[axis]
        if n == self.n_whole:
            return values.index_select(axis, torch.tensor(self.middles, device=values.device))
        n_beside = n // self.n_whole * self.sizes[0] * len(self.sizes)
        return values.narrow(axis, 0, min(n, n_beside)).clone()


def join_sound(n_sound: int, n_whole: int, most: int) -> Join:
    """At most so many positions of one length for the sound, and one more for all silence behind it."""
    step = -(-n_sound // most)
    n = -(-n_sound // step)
    silence = n_whole - n * step
    if silence > 0:
        return Join((step,) * n + (silence,))
    return Join((step,) * (n - 1) + (step + silence,))
