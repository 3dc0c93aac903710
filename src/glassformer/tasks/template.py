"""Chat templates: messages as a model was trained to read them.

Templates are Jinja programs from other people's files. They run in Jinja's sandbox, in which they can change and reach
nothing, without what could fill the memory, and what they make is checked for size.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from jinja2 import TemplateError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from glassformer.data.documents import Message
from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import UserError, require

MOST = 1 << 22  # characters of a rendered talk
GROWING = {"center", "ljust", "rjust", "zfill", "expandtabs", "format", "format_map", "join", "indent"}
PLACE = "\ue000{}\ue001"  # stands for a message while the template runs


def talk_text(tokenizer: Tokenizer, messages: Sequence[Message], answering: bool = False) -> str:
    """The messages in the model's template; `answering` adds the beginning of its answer."""
    marks = tokenizer.marks
    if marks.chat_template is None:
        raise UserError(
            "There are messages, but the model carries no chat template to read them by.",
            "Start from an instruction-tuned model that was imported, or give plain text.",
        )
    start = tokenizer.piece(marks.start) if marks.start is not None else ""
    return render(marks.chat_template, list(messages), start, tokenizer.piece(marks.ends[0]), answering)


def talk_ids(tokenizer: Tokenizer, messages: Sequence[Message], answering: bool = False) -> list[int]:
    """The same in tokens. Marks that a person typed stay text, so that nobody speaks with another's voice."""
    names = [tokenizer.piece(i) for i in tokenizer.special]
    contents = [message["content"] for message in messages]
    if not any(name in content for content in contents for name in names):
        return tokenizer.encode_marked(talk_text(tokenizer, messages, answering))
    places = [PLACE.format(i) for i in range(len(contents))]
    hidden = [{**m, "content": place} for m, place in zip(messages, places, strict=True)]
    ids, rest = list[int](), talk_text(tokenizer, hidden, answering)
    for place, content in zip(places, contents, strict=True):
        before, found, rest = rest.partition(place)
        ids += tokenizer.encode_marked(before) + (tokenizer.encode(content) if found else [])
    return ids + tokenizer.encode_marked(rest)


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, without what makes much out of little."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ARG002
        if operator == "*" and isinstance(left, int) and isinstance(right, int):
            return left * right
        raise ValueError(f"it may not use {operator} here")

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return attr not in GROWING and super().is_safe_attribute(obj, attr, value)


def render(template: str, messages: list[Message], start: str, end: str, answering: bool = True) -> str:
    """The messages in the template, which is told whether to begin the model's answer."""

    def refuse(reason: str) -> None:
        raise UserError(f"The chat template refuses this talk: {reason}.", "Say it otherwise.")

    environment = _Environment(trim_blocks=True, lstrip_blocks=True)
    environment.filters = {n: f for n, f in environment.filters.items() if n not in GROWING - {"join"}}
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.now(UTC).strftime(form)
    try:
        text = environment.from_string(template).render(
            messages=messages, add_generation_prompt=answering, bos_token=start, eos_token=end
        )
    except (TemplateError, TypeError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise UserError(f"The chat template cannot be used: {error}.", "Import the model again.") from None
    require(len(text) <= MOST, "The talk has become too long.", "Begin a new one.")
    return text
