"""Going through the lesson in a terminal: a step, its question, the next step."""

from collections.abc import Callable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from glassformer.learn.sentences import Sentences
from glassformer.learn.step import Shown, Step
from glassformer.learn.steps import STEPS
from glassformer.learn.terminal import draw_question, draw_step

WIDEST = 100


def print_steps(console: Console, steps: Sequence[Step], sentences: Sentences | None) -> None:
    """All of them without asking, each with its answer at the end."""
    for shown in _show_each(console, steps, sentences):
        console.print(Text.assemble(("Answer: ", "bold"), shown.question.answer))


def walk(console: Console, steps: Sequence[Step], sentences: Sentences | None, ask: Callable[[str], str]) -> None:
    """One step after the other until the end or a q."""
    for shown in _show_each(console, steps, sentences):
        if not _ask_until_done(console, shown, ask):
            return


def _show_each(console: Console, steps: Sequence[Step], sentences: Sentences | None) -> Iterator[Shown]:
    """Each step with its question, a line between them."""
    for i, step in enumerate(steps):
        if i:
            console.print()
            console.rule(style="dim")
        shown = _show(console, step, sentences)
        console.print(draw_question(shown))
        yield shown


def _show(console: Console, step: Step, sentences: Sentences | None) -> Shown:
    with console.status("One moment: this step needs a trained model …" if not step.live else "One moment …"):
        shown = step.show(sentences)
    width = min(console.width, WIDEST)
    console.print(draw_step(STEPS.index(step) + 1, len(STEPS), step, shown, width), width=width)
    return shown


def _ask_until_done(console: Console, shown: Shown, ask: Callable[[str], str]) -> bool:
    """Until the answer is right or Enter gives up; False when the reader leaves."""
    while True:
        try:
            given = ask("Your answer (Enter shows it, q leaves): ").strip()
        except EOFError:
            return False
        if given.lower() in ("q", "quit"):
            return False
        if not given:
            console.print(Text(f"It is {shown.question.answer}."))
            return True
        if shown.question.accepts(given):
            console.print(Text("Right!", style="bold green"))
            return True
        console.print(Text(f"Not quite. {shown.question.hint}", style="yellow"))
