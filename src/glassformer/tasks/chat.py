"""A talk with a model that carries a chat template: messages in, the answer as it comes."""

from collections.abc import Iterator

from glassformer.data.documents import Message
from glassformer.decode.complete_options import CompleteOptions
from glassformer.errors import require
from glassformer.tasks.completer import Completer
from glassformer.tasks.template import talk_ids, talk_text


class Chat:
    """Remembers what was said."""

    def __init__(self, completer: Completer, system: str = "") -> None:
        require(
            completer.tokenizer.marks.chat_template is not None,
            f"{completer.loaded.path} carries no chat template.",
            "Use it without --chat, or import an instruction-tuned model.",
        )
        self.completer = completer
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
        return talk_text(self.completer.tokenizer, self.messages, answering=True)

    def ids(self) -> list[int]:
        """The same in tokens."""
        return talk_ids(self.completer.tokenizer, self.messages, answering=True)
