"""A step of the lesson: one idea, its figures for some sentences, and a question."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from glassformer.learn.figures import Figure, to_data
from glassformer.learn.question import Question
from glassformer.learn.sentences import Sentences, Unfit, parse


@dataclass(frozen=True)
class Shown:
    """What a step makes of some sentences; `note` says why it used the example instead of the reader's text."""

    figures: Sequence[Figure]
    question: Question
    note: str = ""

    def to_data(self) -> dict[str, Any]:
        return {"figures": [to_data(f) for f in self.figures], "question": self.question.to_data(), "note": self.note}


Make = Callable[[Sentences], Shown]


@dataclass(frozen=True, kw_only=True)
class Step:
    """`live` steps are computed in the page too, by the function of the same name in static/*_steps.js."""

    name: str
    title: str
    text: str
    example: str
    make: Make
    live: bool = True

    def show(self, sentences: Sentences | None = None) -> Shown:
        """The step on the reader's sentences; on the example if there are none, or they do not fit."""
        if sentences is None:
            return _show_example(self)
        try:
            return self.make(sentences)
        except Unfit as reason:
            return replace(_show_example(self), note=f"{reason} So here is the example.")


@functools.cache  # some train a model, and the page asks again where a text did not fit
def _show_example(step: Step) -> Shown:
    return step.make(parse(step.example.split("\n")))
