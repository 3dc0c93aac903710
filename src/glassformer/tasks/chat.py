"""A talk with a model that carries a chat template: messages in, the answer as it comes.

Templates are Jinja programs from other people's files. They run in Jinja's sandbox, which lets them neither change nor
reach anything, and what they make is checked for size.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from glassformer.decode.complete_options import CompleteOptions
from glassformer.errors import UserError, require
from glassformer.tasks.completer import Completer

Message = dict[str, str]
MOST = 1 << 22  # characters of a rendered talk


class Chat:
    """Remembers what was said."""

    def __init__(self, completer: Completer, system: str = "") -> None:
        template = completer.tokenizer.marks.chat_template
        require(
            template is not None,
            f"{completer.loaded.path} carries no chat template.",
            "Use it without --chat, or import an instruction-tuned model.",
        )
        assert template is not None
        self.completer, self.template = completer, template
        self.messages: list[Message] = [{"role": "system", "content": system}] if system else []

    def answer(self, message: str, options: CompleteOptions) -> Iterator[str]:
        """The answer to the next message, a piece at a time."""
        self.messages.append({"role": "user", "content": message})
        ids = self.completer.tokenizer.encode_marked(self.text())
        said = ""
        for piece in self.completer.stream(ids, options):
            said += piece
            yield piece
        self.messages.append({"role": "assistant", "content": said})

    def text(self) -> str:
        """All messages as the model was trained to read them, and the beginning of its answer."""
        tokenizer = self.completer.tokenizer
        marks = tokenizer.marks
        start = tokenizer.piece(marks.start) if marks.start is not None else ""
        return render(self.template, self.messages, start, tokenizer.piece(marks.ends[0]))


def render(template: str, messages: list[Message], start: str, end: str) -> str:
    """The messages in the template; a message cannot contain marks, so that no one speaks with another's voice."""
    from jinja2 import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(reason: str) -> None:
        raise UserError(f"The chat template refuses this talk: {reason}", "Say it otherwise.")

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.now(UTC).strftime(form)
    try:
        text = environment.from_string(template).render(
            messages=messages, add_generation_prompt=True, bos_token=start, eos_token=end
        )
    except (TemplateError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UserError(f"The chat template cannot be used: {error}.", "Import the model again.") from None
    require(len(text) <= MOST, "The talk has become too long.", "Begin a new one.")
    return text
