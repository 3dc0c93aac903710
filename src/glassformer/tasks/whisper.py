"""Whisper in use: windows of 30 seconds, one after the other, each beginning where the last whole sentence ended.

A window whose answer looks wrong (it repeats itself, or is unlikely) is tried again, drawing more and more freely.
"""

import itertools
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from glassformer import config
from glassformer.data.audio import Series, read_sound
from glassformer.data.features import FeatureSettings, extract
from glassformer.decode.options import DecodeOptions
from glassformer.errors import UserError, require
from glassformer.model import EncoderDecoder
from glassformer.tasks.model_dir import LoadedModel
from glassformer.tasks.transcriber import DEFAULT, Answer, Segment, Transcript, texts_of
from glassformer.tasks.whisper_marks import STEP, WhisperMarks, find_marks
from glassformer.tasks.whisper_steps import N_FRAMES, Said, TorchWhisper, WhisperEngine
from glassformer.tasks.word_times import Word, word_times

TEMPERATURES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
DRAWN = 5  # answers drawn at a time
MOST_PACKED = 2.4  # text that packs better than this repeats itself
LEAST_AVERAGE = -1.0  # log-probability per token below which an answer is not believed
SILENT = 0.6  # the share of silence above which an unlikely answer is none
FORGET = 0.5  # above this temperature the next window does not hear what was said before
FRAME = 0.01  # seconds


@dataclass
class _Reading:
    """Where the reading of one recording stands."""

    segments: list[Segment] = field(default_factory=list)
    said: list[int] = field(default_factory=list)
    forgotten: int = 0  # tokens at the beginning that the model is not reminded of
    place: int = 0  # the frame where the next window begins


class WhisperTranscriber:
    """Holds an imported Whisper and the engine that runs it."""

    def __init__(
        self,
        loaded: LoadedModel,
        engine: WhisperEngine | None = None,
        language: str | None = None,
        task: str = "transcribe",
    ) -> None:
        require(
            loaded.task == "transcribe" and "whisper" in loaded.about and isinstance(loaded.model, EncoderDecoder),
            f"{loaded.path} is no Whisper.",
            f"Use `glassformer {loaded.task}`.",
        )
        assert isinstance(loaded.model, EncoderDecoder)
        self.loaded, self.model = loaded, loaded.model
        self.marks = whisper_marks(loaded)
        self.backend = engine or TorchWhisper(self.model, self.marks)
        self.features: FeatureSettings = config.parse(FeatureSettings, loaded.about.get("features", {}))
        self.language, self.task = language, task
        if language is not None or not self.marks.languages:
            self.marks.prompt(language, task)  # says what is wrong
        self.n_context = self.model.settings.target.positions.max_len  # type: ignore[union-attr]

    @property
    def engine(self) -> str:
        return self.backend.name

    def transcribe(self, files: Sequence[str | Path], **options: object) -> list[str]:
        """The text of each file; options as in DecodeOptions. The first bad file is an error."""
        return texts_of(self.transcribe_files(files, DecodeOptions(**options)))  # type: ignore[arg-type]

    def transcribe_files(
        self, files: Sequence[str | Path], options: DecodeOptions = DEFAULT, details: bool = False
    ) -> Iterator[Answer]:
        """One answer for each file, in order; what is wrong with a file is its answer."""
        for file in files:
            try:
                yield self.hear(read_sound(Path(file), self.features.rate), str(file), options, details)
            except UserError as error:
                yield error

    def hear(
        self, wave: Series, file: str = "", options: DecodeOptions | None = None, details: bool = False
    ) -> Transcript:
        """The transcript of samples at 16,000 a second."""
        options = self.fit(options or DecodeOptions(beam=5))
        rate = self.features.rate
        features = self.extract(wave)
        reading = _Reading()
        prompt = self.prompt(features[:N_FRAMES]) if len(features) else []
        while reading.place < len(features):
            self._read_window(reading, features, prompt, options, details)
        text = "".join(segment.text for segment in reading.segments).strip()
        segments = [replace(s, text=s.text.strip()) for s in reading.segments]
        score = sum(s.score for s in segments) / len(segments) if segments else 0.0
        return Transcript(file, text, score, round(len(wave) / rate, 3), segments)

    def fit(self, options: DecodeOptions) -> DecodeOptions:
        """The options as Whisper searches."""
        return replace(options, length_penalty=1.0, max_len=min(options.max_len, self.n_context // 2))

    def extract(self, wave: Series) -> Tensor:
        """The features (n, f) of samples."""
        # Whisper measures loudness with a window of silence behind the sound.
        features = extract([np.pad(wave, (0, N_FRAMES * self.features.hop_samples))], self.features)[0]
        return features[: len(features) - N_FRAMES]

    def prompt(self, window: Tensor, times: bool = True) -> list[int]:
        """The marks that an answer begins with; which language is spoken is heard where it is not told."""
        language = self.language
        if self.marks.languages and language is None:
            language = self.backend.language(window)
        return self.marks.prompt(language, self.task, times)

    def _read_window(
        self, reading: _Reading, features: Tensor, prompt: list[int], options: DecodeOptions, details: bool
    ) -> None:
        window = features[reading.place : reading.place + N_FRAMES]
        reminder = reading.said[reading.forgotten :][-(self.n_context // 2 - 1) :]
        before = [self.marks.previous, *reminder] if reminder else []
        said, temperature = self.say(window, before + prompt, options)
        if is_silence(said):
            reading.place += len(window)
            return
        parts, n_frames = cut_at_times(said.ids, len(window), self.marks.times)
        for ids, begin, end in parts:
            words = [i for i in ids if i < self.marks.end]
            text = self.loaded.tokenizer.decode(words)
            if not text.strip() or begin == end:
                continue
            at = reading.place * FRAME
            timed = self._words(window, prompt, words, at) if details else []
            reading.segments.append(Segment(round(at + begin, 2), round(at + end, 2), text, said.average, timed))
            reading.said += ids
        if temperature > FORGET:
            reading.forgotten = len(reading.said)
        reading.place += max(1, n_frames)

    def say(self, window: Tensor, prompt: list[int], options: DecodeOptions) -> tuple[Said, float]:
        """The first answer that is believed, or the last, and the temperature that it was drawn at."""
        options = replace(options, max_len=min(options.max_len, self.n_context - len(prompt)))
        for temperature in TEMPERATURES:
            how = options
            if temperature > 0:
                how = replace(options, sample=True, temperature=temperature, nbest=DRAWN, beam=1, seed=0)
            said = self.backend.say(window, prompt, how)
            if is_silence(said):
                break
            if said.average >= LEAST_AVERAGE and self._packed(said) <= MOST_PACKED:
                break
        return said, temperature

    def text(self, ids: list[int]) -> str:
        """The words without the marks."""
        return self.loaded.tokenizer.decode([i for i in ids if i < self.marks.end]).strip()

    def _packed(self, said: Said) -> float:
        text = self.text(said.ids).encode()
        return len(text) / len(zlib.compress(text))

    def _words(self, window: Tensor, prompt: list[int], ids: list[int], offset: float) -> list[Word]:
        torch_engine = self.backend if isinstance(self.backend, TorchWhisper) else TorchWhisper(self.model, self.marks)
        with torch.inference_mode():
            memory = torch_engine._encode(window)
        used = -(-len(window) // 2)
        found = word_times(self.model, self.loaded.tokenizer, memory, ids, 2 * FRAME, start=prompt[0], n_positions=used)
        return [Word(w.word, round(w.start + offset, 2), round(w.end + offset, 2)) for w in found]


def is_silence(said: Said) -> bool:
    """Whether the model itself doubts that anything was said."""
    return said.no_speech > SILENT and said.average < LEAST_AVERAGE


def whisper_marks(loaded: LoadedModel) -> WhisperMarks:
    return find_marks(loaded.tokenizer, bool(loaded.about["whisper"].get("multilingual")))


def cut_at_times(ids: list[int], n_frames: int, first: int) -> tuple[list[tuple[list[int], float, float]], int]:
    """Sentences with begin and end in seconds, and how many frames of the window are done with.

    Two times side by side stand between sentences. If one time ends the answer, nothing is said after it, and the
    window is done; else the last sentence is not whole and is heard again.
    """
    is_time = [i >= first for i in ids]
    ends_alone = is_time[-2:] == [False, True]
    borders = [i for i in range(1, len(ids)) if is_time[i - 1] and is_time[i]]
    if not borders:
        times = [i - first for i in ids if i >= first]
        end = times[-1] * STEP if times and times[-1] > 0 else n_frames * FRAME
        return [(ids, 0.0, end)] if ids else [], n_frames
    cuts = [0, *borders, *([len(ids)] if ends_alone else [])]
    parts = []
    for begin, end in itertools.pairwise(cuts):
        part = ids[begin:end]
        parts.append((part, (part[0] - first) * STEP, (part[-1] - first) * STEP))
    done = n_frames if ends_alone else round((ids[borders[-1] - 1] - first) * STEP / FRAME)
    return parts, done
