"""When each word was said, read off the cross-attention: tokens look at what they are made from.

The path that goes forward only, through tokens and frames, and gathers the most attention says when each token began.
(Whisper's way to tell times.)
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer.data.tokenizer import START, Tokenizer
from glassformer.model import EncoderDecoder, Memory
from glassformer.tasks.alignment import watching_cross


@dataclass(frozen=True)
class Word:
    word: str
    start: float
    end: float


@torch.inference_mode()
def word_times(
    model: EncoderDecoder,
    tokenizer: Tokenizer,
    memory: Memory,
    ids: list[int],
    seconds: float,
    start: int = START,
    n_positions: int | None = None,
) -> list[Word]:
    """The words of an answer to one recording, of whose encoder positions the first so many last `seconds` each."""
    if not ids:
        return []
    with watching_cross(model) as weights:
        model.decode(torch.tensor([[start, *ids]], device=memory.x.device), memory)
    looked = torch.stack(weights).mean(dim=0)[0, :, :n_positions]  # (n + 1, m): the last row is the state that ended
    begins = forward_path(_sharpened(looked))
    times = [float(seconds * begin) for begin in begins] + [seconds * looked.shape[1]]
    return [Word(word, times[first], times[last + 1]) for word, first, last in words_of(tokenizer, ids)]


def _sharpened(weights: Tensor) -> NDArray[np.float64]:
    """What a token looks at beyond what all tokens look at."""
    weights = weights.double()
    weights = (weights - weights.mean(dim=0)) / weights.std(dim=0, unbiased=False).clamp(min=1e-9)
    found: NDArray[np.float64] = weights.cpu().numpy()
    return found


def forward_path(gain: NDArray[np.float64]) -> list[int]:
    """For each row the column where the best path from corner to corner, which never goes back, enters it."""
    n, m = gain.shape
    best = np.full((n, m), -np.inf)
    came = np.zeros((n, m), dtype=np.int8)  # 0: from the left, 1: from above, 2: from both
    for i in range(n):
        for j in range(m):
            left = best[i, j - 1] if j else -np.inf
            above = best[i - 1, j] if i else -np.inf
            both = best[i - 1, j - 1] if i and j else -np.inf
            options = (left, above, both)
            which = int(np.argmax(options)) if i or j else 0
            best[i, j] = gain[i, j] + (options[which] if i or j else 0.0)
            came[i, j] = which
    entered = [0] * n
    i, j = n - 1, m - 1
    while i > 0 or j > 0:
        if came[i, j] == 0:
            j -= 1
            continue
        entered[i] = j
        j -= int(came[i, j] == 2)
        i -= 1
    return entered


def words_of(tokenizer: Tokenizer, ids: list[int]) -> list[tuple[str, int, int]]:
    """Each word of the text with its first and last token."""
    ends = [len(tokenizer.decode(ids[: i + 1])) for i in range(len(ids))]
    text = tokenizer.decode(ids)
    found = []
    place = 0
    for word in text.split():
        begin = text.index(word, place)
        place = begin + len(word)
        first = next(i for i, end in enumerate(ends) if end > begin)
        last = next((i for i, end in enumerate(ends) if end >= place), len(ids) - 1)
        found.append((word, first, last))
    return found
