"""Whisper's rules of speech, as steps of a search, and the torch engine that runs them.

Times come in pairs around each sentence, never go back, and are said where they are together likelier than any word.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from glassformer.data.features import pad_to
from glassformer.decode.beam import beam_search
from glassformer.decode.options import DecodeOptions, Hypothesis
from glassformer.decode.sample import sample_search
from glassformer.decode.steps import Steps
from glassformer.model import EncoderDecoder, Memory
from glassformer.tasks.backend import DecoderSteps
from glassformer.tasks.whisper_marks import WhisperMarks

FIRST_TIME = 50  # the first time is at most one second
N_FRAMES = 3000  # of a window of 30 seconds


@dataclass(frozen=True)
class Said:
    """What was said in a window: ids with times but without the end, log-probability per token, silence's share."""

    ids: list[int]
    average: float
    no_speech: float


class WhisperEngine(Protocol):
    name: str

    def say(self, window: Tensor, prompt: list[int], options: DecodeOptions) -> Said:
        """The best answer to one window of features (n, f) after a prompt."""
        ...

    def language(self, window: Tensor) -> str:
        """The language that is most likely spoken."""
        ...


class RuledSteps:
    """Steps whose scores leave out what the rules forbid; `n_prompt` tokens come before the answer."""

    def __init__(self, steps: Steps, marks: WhisperMarks, n_rows: int, with_times: bool) -> None:
        self.steps, self.marks, self.with_times = steps, marks, with_times
        self.said: list[list[int]] = [[] for _ in range(n_rows)]
        self.begun = False

    def step(self, ids: Tensor) -> Tensor:
        scores = self.steps.step(ids).float().clone()
        if self.begun:
            self.said = [[*row, int(new)] for row, new in zip(self.said, ids[:, -1], strict=True)]
        self.begun = True
        scores[:, list(self.marks.silent)] = -math.inf
        for row, said in enumerate(self.said):
            if not said:
                scores[row, list(self.marks.blank)] = -math.inf
            if self.with_times:
                self._rule(scores[row], said)
        return scores

    def _rule(self, scores: Tensor, said: list[int]) -> None:
        """Changes the scores of one row."""
        marks, first = self.marks, self.marks.times
        scores[marks.no_times] = -math.inf
        after_time = bool(said) and said[-1] >= first
        after_two = len(said) < 2 or said[-2] >= first
        if after_time and after_two:
            scores[first:] = -math.inf
        elif after_time:
            scores[: marks.end] = -math.inf
        times = [i for i in said if i >= first]
        if times:  # a sentence may end when it begins, but the next begins later
            scores[first : times[-1] + (0 if after_time and not after_two else 1)] = -math.inf
        if not said:
            scores[:first] = -math.inf
            scores[first + FIRST_TIME + 1 :] = -math.inf
        log_p = scores.log_softmax(dim=-1)
        if float(log_p[first:].logsumexp(dim=-1)) > float(log_p[:first].max()):
            scores[:first] = -math.inf

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        self.steps.select(rows, sentences)
        self.said = [self.said[i] for i in rows.tolist()]


class TorchWhisper:
    """The model itself."""

    def __init__(self, model: EncoderDecoder, marks: WhisperMarks) -> None:
        self.model, self.marks, self.name = model.eval(), marks, "torch fp32"
        self.heard: tuple[Tensor, Memory] | None = None  # the last window: a second try need not hear it again

    @torch.inference_mode()
    def say(self, window: Tensor, prompt: list[int], options: DecodeOptions) -> Said:
        memory = self._encode(window)
        ids = torch.tensor([prompt], device=memory.x.device)
        before = prompt.index(self.marks.start) + 1
        first = self.model.head(self.model.decode(ids[:, :before], memory)[:, -1]).float().softmax(dim=-1)
        no_speech = float(first[0, self.marks.no_speech])
        width = options.nbest if options.sample else options.beam
        capacity = len(prompt) + options.max_len
        with_times = self.marks.no_times not in prompt
        steps = RuledSteps(DecoderSteps(self.model, memory, width, capacity), self.marks, width, with_times)
        if options.sample:
            seeds = [(options.seed or 0) + i for i in range(width)]
            [found] = sample_search(steps, ids, options, self.marks.end, seeds)
        else:
            found = self.search(steps, ids, options)
        best = found[0]
        # The search counts the prompt in the length; Whisper does not.
        length = len(prompt) - 1 + len(best.ids) + (len(best.ids) < options.max_len)
        total = best.score * length**options.length_penalty
        return Said(best.ids, total / (len(best.ids) + 1), no_speech)

    def search(self, steps: Steps, prompt: Tensor, options: DecodeOptions) -> list[Hypothesis]:
        """The best answers after a prompt (1, n)."""
        return beam_search(steps, prompt, options, self.marks.end)[0]

    @torch.inference_mode()
    def language(self, window: Tensor) -> str:
        memory = self._encode(window)
        start = torch.tensor([[self.marks.start]], device=memory.x.device)
        scores = self.model.head(self.model.decode(start, memory)[:, -1])[0]
        return max(self.marks.languages, key=lambda code: float(scores[self.marks.languages[code]]))

    def _encode(self, window: Tensor) -> Memory:
        if self.heard is None or self.heard[0] is not window:
            device = next(self.model.parameters()).device
            self.heard = (window, self.model.encode(pad_to(window, N_FRAMES)[None].to(device)))
        return self.heard[1]
