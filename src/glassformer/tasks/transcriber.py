"""A trained recogniser in use: files in, texts out, in order and number; a bad file does not stop the others."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from glassformer import config
from glassformer.data.audio import Series
from glassformer.data.audio_split import cut_at_silence
from glassformer.data.features import FeatureSettings, extract
from glassformer.data.recordings_check import VECTORS_A_SECOND
from glassformer.decode.options import DecodeOptions, Hypothesis
from glassformer.errors import UserError, require
from glassformer.model import EncoderDecoder
from glassformer.model.settings import FramesSettings
from glassformer.tasks.model_dir import LoadedModel
from glassformer.tasks.train_transcribe import read_series
from glassformer.tasks.transcribe_backend import TranscribeBackend
from glassformer.tasks.word_times import Word, word_times

CHUNK = 32  # files heard together
LONGEST = 30.0  # seconds heard at once, where a model does not say what it has learned from
# The mean per token would let a long answer make up for a wrong one; CTC already minds the length.
DEFAULT = DecodeOptions(beam=4, length_penalty=0.0, max_len=400)


@dataclass(frozen=True)
class Segment:
    """A stretch between silences, in seconds; `score` is the log-probability per token."""

    start: float
    end: float
    text: str
    score: float
    words: list[Word] = field(default_factory=list)


@dataclass(frozen=True)
class Transcript:
    file: str
    text: str
    score: float
    seconds: float
    segments: list[Segment]


Answer = Transcript | UserError


def texts_of(answers: Iterable[Answer]) -> list[str]:
    """The texts alone; the first file that has none is an error."""
    texts = []
    for answer in answers:
        if isinstance(answer, UserError):
            raise answer
        texts.append(answer.text)
    return texts


class Hearing(Protocol):
    """What all recognisers have in common."""

    @property
    def engine(self) -> str: ...

    def transcribe_files(
        self, files: Sequence[str | Path], options: DecodeOptions = DEFAULT, details: bool = False
    ) -> Iterator[Answer]: ...


class Transcriber:
    """Holds a loaded model."""

    def __init__(self, loaded: LoadedModel) -> None:
        require(
            loaded.task == "transcribe" and isinstance(loaded.model, EncoderDecoder),
            f"{loaded.path} is a model for {loaded.task}, not for transcription.",
            f"Use `glassformer {loaded.task}`.",
        )
        assert isinstance(loaded.model, EncoderDecoder)
        self.loaded, self.model = loaded, loaded.model
        where = f"{loaded.path / 'settings.json'}"
        self.features: FeatureSettings = config.parse(FeatureSettings, loaded.about.get("features", {}), where)
        self.backend = TranscribeBackend(self.model, float(loaded.about.get("ctc", 0.0)))
        self.longest = float(loaded.about.get("longest", LONGEST))
        source = self.model.settings.source
        require(
            isinstance(source, FramesSettings) and source.n_features == self.features.n_features,
            f"{where} names features that the model does not read.",
            "Put back the settings.json that belongs to the model.",
        )
        assert isinstance(source, FramesSettings)
        frame = 1 / VECTORS_A_SECOND if self.features.kind == "vectors" else self.features.hop / 1000
        self.position_seconds = frame
        for stride in source.strides:
            self.position_seconds *= stride

    @property
    def engine(self) -> str:
        return self.backend.name

    def transcribe(self, files: Sequence[str | Path], **options: object) -> list[str]:
        """The text of each file; options as in DecodeOptions. The first bad file is an error."""
        return texts_of(self.transcribe_files(files, DecodeOptions(**{**config.to_data(DEFAULT), **options})))

    def transcribe_files(
        self, files: Sequence[str | Path], options: DecodeOptions = DEFAULT, details: bool = False
    ) -> Iterator[Answer]:
        """One answer for each file, in order; what is wrong with a file is its answer. `details` adds words."""
        waiting = iter(files)
        while chunk := list(islice(waiting, CHUNK)):
            yield from self._chunk([Path(file) for file in chunk], options, details)

    def _chunk(self, files: list[Path], options: DecodeOptions, details: bool) -> list[Answer]:
        heard: dict[int, Series] = {}
        answers: list[Answer | None] = [None] * len(files)
        for i, file in enumerate(files):
            try:
                heard[i] = read_series(file, self.features)
            except UserError as error:
                answers[i] = error
        for i, transcript in zip(heard, self.hear(list(heard.values()), options, details), strict=True):
            answers[i] = Transcript(str(files[i]), *transcript)
        return [answer for answer in answers if answer is not None]

    def hear(
        self, waves: list[Series], options: DecodeOptions = DEFAULT, details: bool = False
    ) -> list[tuple[str, float, float, list[Segment]]]:
        """Text, score, seconds and segments of each series, which has the rate or width of the model's features."""
        places = [self.cut(wave) for wave in waves]
        parts = [wave[begin:end] for wave, cuts in zip(waves, places, strict=True) for begin, end in cuts]
        features = self.extract(parts)
        found = iter(self.backend.generate(features, options))
        inputs = iter(features)
        answers = []
        for wave, cuts in zip(waves, places, strict=True):
            segments = []
            for begin, end in cuts:
                best, feature = next(found), next(inputs)
                words = self._words(feature, best, begin / self.rate) if details else []
                segments.append(self._segment(begin, end, best, words))
            text = " ".join(s.text for s in segments if s.text)
            score = sum(s.score for s in segments) / len(segments) if segments else 0.0
            answers.append((text, score, round(len(wave) / self.rate, 3), segments))
        return answers

    def extract(self, waves: list[Series]) -> list[Tensor]:
        """The features that the model reads."""
        return extract(waves, self.features)

    @property
    def rate(self) -> float:
        return VECTORS_A_SECOND if self.features.kind == "vectors" else float(self.features.rate)

    def cut(self, wave: Series) -> list[tuple[int, int]]:
        if self.features.kind == "vectors":
            size = max(1, int(self.longest * self.rate))
            return [(begin, min(begin + size, len(wave))) for begin in range(0, len(wave), size)]
        return cut_at_silence(wave, self.features.rate, self.longest)

    def _segment(self, begin: int, end: int, best: list[Hypothesis], words: list[Word]) -> Segment:
        ids, total = (best[0].ids, best[0].score) if best else ([], 0.0)
        score = total / (len(ids) + 1)
        return Segment(
            round(begin / self.rate, 3), round(end / self.rate, 3), self.loaded.tokenizer.decode(ids), score, words
        )

    def _words(self, features: Tensor, best: list[Hypothesis], offset: float) -> list[Word]:
        with torch.inference_mode():
            memory = self.model.encode(features[None].to(next(self.model.parameters()).device))
        found = word_times(
            self.model, self.loaded.tokenizer, memory, best[0].ids if best else [], self.position_seconds
        )
        return [Word(w.word, round(w.start + offset, 3), round(w.end + offset, 3)) for w in found]
