"""A language model in use: prompts in, texts out, as they come or when they are whole."""

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch

from glassformer.data.tokenizer import Tokenizer
from glassformer.decode.choose import SEEDS_APART, Chosen
from glassformer.decode.complete_options import CompleteOptions
from glassformer.errors import UserError, require
from glassformer.model import DecoderOnly
from glassformer.model.positions import LearnedPositions
from glassformer.tasks.beginning import begin_prompt
from glassformer.tasks.generator import Generator, check_lengths
from glassformer.tasks.model_dir import LoadedModel
from glassformer.tasks.speculative import SpeculativeGenerator, check_draft

ROWS = 32  # answers that are made at once
HELD = 8  # tokens before a new one that its text may depend on: spaces, and bytes of one character

Finish = Literal["end", "stop", "length"]


@dataclass
class Completion:
    """One answer to one prompt, growing as it is made; `finish` says why it ended."""

    text: str = ""
    finish: Finish = "length"
    tokens: list[str] = field(default_factory=list)
    log_p: list[float] = field(default_factory=list)
    alternatives: list[list[tuple[str, float]]] = field(default_factory=list)


class TextWriter:
    """Tokens into text as they come: whole characters only, and nothing that may yet become a stop string.

    Tokens that are single bytes of a longer character are joined here, since a tokenizer gives up a whole run of them
    where one is missing; among the newest tokens a letter stands for each.
    """

    def __init__(self, tokenizer: Tokenizer, prompt: list[int], stop: tuple[str, ...]) -> None:
        self.tokenizer, self.stop = tokenizer, stop
        self.bytes = codecs.getincrementaldecoder("utf-8")("replace")
        self.ids: list[int] = []
        self.shown, self.held = 0, ""
        self.stopped = False
        for token in prompt[-HELD:]:
            self._read(token)
        self.shown = len(tokenizer.decode(self.ids))

    def add(self, token: int) -> str:
        """The text that is certain now."""
        return self._without_stop(self._read(token))

    def rest(self) -> str:
        """What was held back and is due at the end."""
        unfinished = self._unsure() + self.bytes.decode(b"", final=True)
        return "" if self.stopped else self._without_stop(unfinished) + self.held

    def _read(self, token: int) -> str:
        byte, letter = self.tokenizer.byte(token), self.tokenizer.letter
        if byte is None or letter is None or byte < 0x80:
            text = self.bytes.decode(b"", final=True)
            self.ids.append(token)
        else:
            text = self._unsure() + self.bytes.decode(bytes([byte]))
            self.ids.append(letter)
            self.shown = len(self.tokenizer.decode(self.ids))
        whole = self.tokenizer.decode(self.ids)
        # What looks broken at the end may be the first bytes of a character.
        n_sure = max(self.shown, len(whole) - whole.endswith("\N{REPLACEMENT CHARACTER}"))
        text += whole[self.shown : n_sure]
        self.shown = n_sure
        if n_sure == len(whole):
            self.ids = self.ids[-HELD:]
            self.shown = len(self.tokenizer.decode(self.ids))
        return text

    def _unsure(self) -> str:
        return self.tokenizer.decode(self.ids)[self.shown :]

    def _without_stop(self, new: str) -> str:
        text = self.held + new
        places = [place for place in (text.find(s) for s in self.stop) if place >= 0]
        if places:
            self.stopped, self.held = True, ""
            return text[: min(places)]
        begun = max((n for s in self.stop for n in range(1, len(s)) if text.endswith(s[:n])), default=0)
        self.held = text[len(text) - begun :]
        return text[: len(text) - begun]


class Completer:
    """Holds a loaded model and its tokenizer."""

    def __init__(
        self,
        loaded: LoadedModel,
        model: DecoderOnly | None = None,
        engine: str = "torch fp32",
        draft: "Completer | None" = None,
    ) -> None:
        """`model` is what runs, where it is not the loaded one itself: in int8, say; a `draft` runs ahead of it."""
        require(
            loaded.task == "complete" and isinstance(loaded.model, DecoderOnly),
            f"{loaded.path} is a model for {loaded.task}, not for completion.",
            f"Use `glassformer {loaded.task}`.",
        )
        assert isinstance(loaded.model, DecoderOnly)
        self.loaded, self.engine = loaded, engine
        self.model = model or loaded.model
        self.tokenizer = loaded.tokenizer
        self.draft = draft
        if draft is not None:
            check_draft(self.tokenizer, draft.tokenizer)

    @property
    def context(self) -> int | None:
        """The most tokens that the model sees at once; None where nothing limits it."""
        positions = self.model.source.positions
        if isinstance(positions, LearnedPositions):
            return int(positions.table.shape[0])
        trained = self.loaded.about.get("context")
        return trained if isinstance(trained, int) and trained > 1 else None

    def prompt_ids(self, prompt: str) -> list[int]:
        """The prompt as the model reads it, with the mark that texts begin with, if it knows it."""
        return begin_prompt(self.tokenizer, self.tokenizer.encode(prompt), self.loaded.about.get("starts", True))

    def complete(self, prompts: Sequence[str], **options: object) -> list[str]:
        """One answer to each prompt; options as in CompleteOptions."""
        given = CompleteOptions(**options)  # type: ignore[arg-type]
        return [answers[0].text for answers in self.complete_all(prompts, given)]

    def complete_all(self, prompts: Sequence[str], options: CompleteOptions | None = None) -> list[list[Completion]]:
        """The `n` answers to each prompt, with tokens and log-probabilities."""
        if isinstance(prompts, str):
            raise UserError("complete got one string.", "Give a list of prompts.")
        for prompt in prompts:
            require(isinstance(prompt, str), f"complete got {prompt!r}, which is no text.", "Give a list of strings.")
        return self.complete_ids([self.prompt_ids(prompt) for prompt in prompts], options or CompleteOptions())

    def complete_ids(self, prompts: list[list[int]], options: CompleteOptions) -> list[list[Completion]]:
        """The same for prompts in tokens."""
        if self.context is not None and not options.slide:
            check_lengths(prompts, self.context)  # before any is answered
        rows = [ids for ids in prompts for _ in range(options.n)]
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))  # of similar lengths together
        answers: list[Completion] = [Completion() for _ in rows]
        at_once = ROWS if self.draft is None else 1
        for begin in range(0, len(rows), at_once):
            part = order[begin : begin + at_once]
            for _ in self._stream([rows[j] for j in part], part, options, answers):
                pass
        return [answers[i : i + options.n] for i in range(0, len(rows), options.n)]

    def stream(self, prompt: str | list[int], options: CompleteOptions) -> Iterator[str]:
        """One answer, a piece at a time."""
        ids = self.prompt_ids(prompt) if isinstance(prompt, str) else prompt
        for _, text in self._stream([ids], [0], options, [Completion()]):
            yield text

    def _stream(
        self, prompts: list[list[int]], rows: list[int], options: CompleteOptions, answers: list[Completion]
    ) -> Iterator[tuple[int, str]]:
        """Make the answers of these rows, telling (row, text) on the way."""
        first = int(torch.randint(2**31, ())) if options.seed is None else options.seed
        # A seed means the same draw for a prompt alone and in a batch; without one, every row has its own.
        seeds = [first + SEEDS_APART * (row if options.seed is None else row % options.n) for row in rows]
        writers = [TextWriter(self.tokenizer, ids, options.stop) for ids in prompts]
        generator = self._generator(prompts, options, seeds)
        for step in generator:
            for row, chosen in step:
                text = self._take(chosen, answers[rows[row]], writers[row])
                if writers[row].stopped:
                    generator.stop(row)
                if text:
                    yield rows[row], text
        for row, writer in enumerate(writers):
            answer, text = answers[rows[row]], writer.rest()
            answer.text += text
            answer.finish = "stop" if writer.stopped else answer.finish
            if text:
                yield rows[row], text

    def _generator(
        self, prompts: list[list[int]], options: CompleteOptions, seeds: list[int]
    ) -> Generator | SpeculativeGenerator:
        ends = self.tokenizer.marks.ends
        if self.draft is None:
            return Generator(self.model, prompts, options, ends, self.context, seeds)
        limits = [n for n in (self.context, self.draft.context) if n is not None]
        context = min(limits, default=None)
        return SpeculativeGenerator(self.model, self.draft.model, prompts[0], options, ends, context, seeds[0])

    def _take(self, chosen: Chosen, answer: Completion, writer: TextWriter) -> str:
        """One token into the answer; the text that it adds."""
        if chosen.id in self.tokenizer.marks.ends:
            answer.finish = "end"
            return ""
        answer.tokens += self.tokenizer.tokens([chosen.id])
        answer.log_p.append(chosen.log_p)
        if chosen.alternatives:
            names = self.tokenizer.tokens([i for i, _ in chosen.alternatives])
            answer.alternatives.append([(name, p) for name, (_, p) in zip(names, chosen.alternatives, strict=True)])
        text = writer.add(chosen.id)
        answer.text += text
        if writer.stopped:
            answer.finish = "stop"
        return text
