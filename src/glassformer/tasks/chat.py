"""A talk with a model that carries a chat template: messages in, the answer as it comes.

Templates are Jinja programs from other people's files. They run in Jinja's sandbox, in which they can change and reach
nothing, without what could fill the memory, and what they make is checked for size.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from jinja2 import TemplateError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from glassformer.decode.complete_options import CompleteOptions
from glassformer.errors import UserError, require
from glassformer.tasks.completer import Completer

Message = dict[str, str]
MOST = 1 << 22  # characters of a rendered talk
GROWING = {"center", "ljust", "rjust", "zfill", "expandtabs", "format", "format_map", "join", "indent"}
PLACE = "\ue000{}\ue001"  # stands for a message while the template runs


class Chat:
    """Remembers what was said."""

    def __init__(self, completer: Completer, system: str = "") -> None:
        template = completer.tokenizer.marks.chat_template
        if template is None:
            raise UserError(
                f"{completer.loaded.path} carries no chat template.",
                "Use it without --chat, or import an instruction-tuned model.",
            )
        self.completer, self.template = completer, template
        self.messages: list[Message] = [{"role": "system", "content": system}] if system else []

    def answer(self, message: str, options: CompleteOptions) -> Iterator[str]:
        """The answer to the next message, a piece at a time."""
        self.messages.append({"role": "user", "content": message})
        said = ""
        for piece in self.completer.stream(self.ids(), options):
            said += piece
            yield piece
        self.messages.append({"role": "assistant", "content": said})

    def text(self) -> str:
        """All messages as the model was trained to read them, and the beginning of its answer."""
        return self._render(self.messages)

    def ids(self) -> list[int]:
        """The same in tokens. Marks that a person typed stay text, so that nobody speaks with another's voice."""
        tokenizer = self.completer.tokenizer
        marks = [tokenizer.piece(i) for i in tokenizer.special]
        contents = [message["content"] for message in self.messages]
        if not any(mark in content for content in contents for mark in marks):
            return tokenizer.encode_marked(self.text())
        places = [PLACE.format(i) for i in range(len(contents))]
        hidden = [{**m, "content": place} for m, place in zip(self.messages, places, strict=True)]
        ids, rest = [], self._render(hidden)
        for place, content in zip(places, contents, strict=True):
            before, found, rest = rest.partition(place)
            ids += tokenizer.encode_marked(before) + (tokenizer.encode(content) if found else [])
        return ids + tokenizer.encode_marked(rest)

    def _render(self, messages: list[Message]) -> str:
        tokenizer = self.completer.tokenizer
        marks = tokenizer.marks
        start = tokenizer.piece(marks.start) if marks.start is not None else ""
        return render(self.template, messages, start, tokenizer.piece(marks.ends[0]))


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, without what makes much out of little."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ARG002
        if operator == "*" and isinstance(left, int) and isinstance(right, int):
            return left * right
        raise ValueError(f"it may not use {operator} here")

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return attr not in GROWING and super().is_safe_attribute(obj, attr, value)


def render(template: str, messages: list[Message], start: str, end: str) -> str:
    """The messages in the template, which is told to begin the model's answer."""

    def refuse(reason: str) -> None:
        raise UserError(f"The chat template refuses this talk: {reason}.", "Say it otherwise.")

    environment = _Environment(trim_blocks=True, lstrip_blocks=True)
    environment.filters = {n: f for n, f in environment.filters.items() if n not in GROWING - {"join"}}
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.now(UTC).strftime(form)
    try:
        text = environment.from_string(template).render(
            messages=messages, add_generation_prompt=True, bos_token=start, eos_token=end
        )
    except (TemplateError, TypeError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise UserError(f"The chat template cannot be used: {error}.", "Import the model again.") from None
    require(len(text) <= MOST, "The talk has become too long.", "Begin a new one.")
    return text
