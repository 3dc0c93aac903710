"""Where a recording can be parted: CTC says when each word is said, and what is quiet between two words is a pause."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from glassformer.data.batch import Rows
from glassformer.data.tokenizer import Tokenizer
from glassformer.decode.ctc import likeliest_path
from glassformer.tasks.word_times import words_of

Numbers = NDArray[np.float64]

QUIET = 0.35  # a pause is among the quietest frames, which are this share of a recording
SHORTEST = 12  # frames of a part
SMOOTH = 5  # frames whose mean is how loud the middle one is


@dataclass(frozen=True)
class Part:
    """What is said from one pause to the next; the places are shares of the recording."""

    begin: float
    end: float
    tokens: Rows

    def of(self, features: Tensor) -> Tensor:
        """The part's frames."""
        n = len(features)
        return features[round(self.begin * n) : round(self.end * n)]


def parts_of(log_p: Numbers, loud: Numbers, ids: list[int], tokenizer: Tokenizer) -> list[Part]:
    """The parts of a recording with these tokens; CTC's frames (t, N) and those of the loudness (n,) may differ."""
    n, frames = len(loud), likeliest_path(log_p, ids)
    words = words_of(tokenizer, ids) if frames else []
    loud = np.convolve(np.pad(loud, SMOOTH // 2, mode="edge"), np.ones(SMOOTH) / SMOOTH, mode="valid")
    quiet, scale = np.quantile(loud, QUIET), n / len(log_p)
    places, texts = [0], [""]
    for (word, _, last), (_, following, _) in pairwise(words):
        texts[-1] += f" {word}"
        low = max(round((frames[last][1] - 1) * scale), places[-1] + SHORTEST)
        high = min(round((frames[following][0] + 1) * scale), n - SHORTEST)
        if low < high and loud[place := low + int(loud[low:high].argmin())] <= quiet:
            places.append(place)
            texts.append("")
    if len(places) == 1:
        return [Part(0.0, 1.0, np.array(ids, dtype=np.int64))]
    texts[-1] += f" {words[-1][0]}"
    tokens = [np.array(tokenizer.encode(text[1:]), dtype=np.int64) for text in texts]
    shares = [place / n for place in (*places, n)]
    return [Part(*place, said) for place, said in zip(pairwise(shares), tokens, strict=True)]
