"""What is looked at: one input made ready for a model, the answer that it gives, and names for all positions."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import Tensor

from glassformer.errors import require
from glassformer.look.beam_tree import Node
from glassformer.look.joining import Join

LONGEST = 256  # positions; a picture of more is no picture, and attention's numbers grow with the square
MOST_PATCHES = 600  # the reader cannot choose fewer, and they lie on a plane

# What an answer is: one of many, all that fit, or a number.
AnswerKind = Literal["choice", "choices", "number"]


@dataclass(frozen=True, kw_only=True)
class LookOptions:
    # Hypotheses that a search holds.
    beam: int = 4
    # Tokens of the answer at most; None: a translation to its end, and of a completion its beginning.
    max_tokens: int | None = None
    # What the model is made to say, instead of its own answer.
    answer: str | None = None

    def __post_init__(self) -> None:
        for name, value in (("beam", self.beam), ("max_tokens", self.max_tokens)):
            require(value is None or value >= 1, f"{name} is {value}.", "It must be 1 or more.")


@dataclass(frozen=True)
class Subject:
    text: str
    inputs: tuple[Tensor | None, ...]  # what the model is called with
    source: list[str]  # a name for each position of the source
    target: list[str]  # the same for the decoder of an encoder-decoder
    answer: str
    # For each position of the answering stack what followed it, −1 for none; one entry for a whole sequence.
    answers: list[int]
    name: Callable[[int], str]  # of an answer
    kind: AnswerKind = "choice"
    beam: list[Node] = field(default_factory=list)
    best: list[int] = field(default_factory=list)  # the nodes of the answer
    ctc: float = 0.0  # the weight of CTC in the beam's scores, which then are no plain log-probabilities
    n_prompt: int = 0  # positions whose answer was given, since the model reads on in its own input
    sense: dict[str, Any] | None = None  # how positions lie on a picture or a recording
    join: Join | None = None  # where `source` has fewer positions than the model
    ruled: bool = False  # rules besides the model's own shares chose the answer

    @property
    def positions(self) -> list[str]:
        """Names of the answering stack's positions."""
        return self.target or self.source

    @property
    def own_answers(self) -> list[int]:
        """Without what stood in the input already."""
        return [-1] * self.n_prompt + self.answers[self.n_prompt :]


def check_length(n: int) -> None:
    require(n <= LONGEST, f"The input has {n} positions, but look shows at most {LONGEST}.", "Give a shorter one.")


def check_patches(n: int) -> None:
    """As many as the model cuts every picture into, so that no other picture would have fewer."""
    said = f"The model cuts a picture into {n} positions, but look shows at most {MOST_PATCHES}."
    require(n <= MOST_PATCHES, said, "Look at a model of larger patches or smaller pictures.")


def refuse_answer(options: LookOptions) -> None:
    require(options.answer is None, "--answer is for models that write.", "Leave it out.")


def show_tokens(tokens: list[str]) -> list[str]:
    """Tokens with their line ends to be seen."""
    return [token.replace("\n", "⏎").replace("\t", "⇥") or "∅" for token in tokens]
