"""Steps by number or name."""

import difflib
from collections.abc import Iterable

from glassformer.errors import UserError
from glassformer.learn.step import Step
from glassformer.learn.steps import STEPS


def find_step(wanted: str) -> Step:
    """By its number, its name, or its name with spaces."""
    name = "-".join(wanted.lower().split())
    if name.isdecimal() and 1 <= int(name) <= len(STEPS):
        return STEPS[int(name) - 1]
    names = {step.name: step for step in STEPS}
    if name in names:
        return names[name]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"There are 1 to {len(STEPS)}; see `glassformer learn --list`."
    raise UserError(f"There is no step {wanted!r}.", hint)


def list_steps(steps: Iterable[Step]) -> str:
    widest = max(len(step.name) for step in STEPS)
    return "\n".join(f"{STEPS.index(step) + 1:>2}  {step.name:<{widest}}  {step.title}" for step in steps)
