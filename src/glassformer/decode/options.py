"""How to search: one frozen dataclass, used alike by shell, Python and HTTP."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from glassformer.errors import require

COLDEST = 1e-6  # of temperatures: scores over less than this overflow
WIDEST = 1000  # beam; more would take minutes for a sentence and find nothing better
MOST_SEED = 2**62  # so that a seed for each answer fits into 64 bits


@dataclass(frozen=True, kw_only=True)
class DecodeOptions:
    # Of the validator: unknown names are refused.
    __pydantic_config__: ClassVar[Mapping[str, object]] = {"extra": "forbid"}

    # 1 is greedy; 4 is the paper's, and gains about one BLEU.
    beam: int = 4
    # How many answers to give, best first.
    nbest: int = 1
    # Scores are divided by length ** length_penalty; 0 prefers short answers, 1 is the mean per token.
    length_penalty: float = 1.0
    # Tokens of an answer at most, its end not counted.
    max_len: int = 256
    # Draw from the distribution instead of searching it; the following apply to drawing only.
    sample: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int | None = None
    # No n-gram of this length comes twice in an answer; 0 allows all.
    no_repeat: int = 0

    def __post_init__(self) -> None:
        for name, least in (("beam", 1), ("nbest", 1), ("max_len", 1), ("top_k", 0), ("no_repeat", 0)):
            value = getattr(self, name)
            require(value >= least, f"{name} is {value}.", f"It must be {least} or more.")
        for name in ("nbest", "beam"):
            value = getattr(self, name)
            require(value <= WIDEST, f"{name} is {value}.", f"It must be 1 to {WIDEST:,}.")
        require(0 <= self.length_penalty <= 10, f"length_penalty is {self.length_penalty}.", "It must be 0 to 10.")
        require(
            COLDEST <= self.temperature < math.inf,
            f"temperature is {self.temperature}.",
            f"It must be {COLDEST:.6f} or more, and finite; for greedy use beam 1.",
        )
        check_seed(self.seed)
        require(0 < self.top_p <= 1, f"top_p is {self.top_p}.", "It must be above 0 and at most 1.")
        require(0 <= self.min_p < 1, f"min_p is {self.min_p}.", "It must be 0 or more and below 1.")
        require(
            self.sample or self.nbest <= self.beam,
            f"nbest is {self.nbest}, but the beam keeps only {self.beam}.",
            f"Set beam to {self.nbest} or more.",
        )


def check_seed(seed: int | None) -> None:
    require(
        seed is None or 0 <= seed < MOST_SEED,
        f"seed is {seed}.",
        "It must be 0 or more and below 2 to the power of 62.",
    )


@dataclass(frozen=True)
class Hypothesis:
    """One answer: its ids without start and end, its score (log-probability over length ** penalty)."""

    ids: list[int]
    score: float


def finish(ids: list[int], total: float, n_prefix: int, options: DecodeOptions, end: int) -> Hypothesis:
    """An answer that is over, with its end or without; the prefix before it counts in the length only."""
    score = total / (n_prefix + len(ids)) ** options.length_penalty
    return Hypothesis(ids[:-1] if ids[-1] == end else ids, score)
