"""How to complete a text: one frozen dataclass, used alike by shell, Python and HTTP."""

from dataclasses import dataclass

from glassformer.decode.options import COLDEST, check_seed
from glassformer.errors import require


@dataclass(frozen=True, kw_only=True)
class CompleteOptions:
    # Tokens to add at most.
    max_tokens: int = 200
    # 0 always takes the best token; 1 draws from the model's own distribution.
    temperature: float = 0.8
    # Draw from the k best only; 0 is all.
    top_k: int = 0
    # Draw from the best that make up this share.
    top_p: float = 1.0
    # Draw from what is at least this share of the best.
    min_p: float = 0.0
    # Tokens that the prompt or the answer has already: their scores are divided by it if positive, else multiplied.
    repetition_penalty: float = 1.0
    # Taken from a token's score for each time that the answer has it, and once if it has it at all.
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    # The answer ends before the first of these.
    stop: tuple[str, ...] = ()
    # The same seed draws the same answer, alone or in a batch.
    seed: int | None = None
    # Answers for each prompt.
    n: int = 1
    # The best so many alternatives of each token, with their log-probabilities.
    alternatives: int = 0
    # Where the context is full, forget the older half and go on.
    slide: bool = False

    def __post_init__(self) -> None:
        for name, least in (("max_tokens", 1), ("top_k", 0), ("n", 1), ("alternatives", 0), ("temperature", 0)):
            value = getattr(self, name)
            require(value >= least, f"{name} is {value}.", f"It must be {least} or more.")
        if self.temperature < COLDEST:
            object.__setattr__(self, "temperature", 0.0)  # all but the best are as good as impossible
        require(0 < self.top_p <= 1, f"top_p is {self.top_p}.", "It must be above 0 and at most 1.")
        require(0 <= self.min_p < 1, f"min_p is {self.min_p}.", "It must be 0 or more and below 1.")
        require(
            self.repetition_penalty > 0,
            f"repetition_penalty is {self.repetition_penalty}.",
            "It must be above 0; 1 does nothing.",
        )
        check_seed(self.seed)
        require(all(self.stop), "A stop string is empty.", "Give at least one character.")
