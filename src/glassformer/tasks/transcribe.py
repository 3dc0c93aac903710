"""Transcription as a job for the training loop: recordings in, word error rate out."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jiwer
import numpy as np
import torch
from torch import Tensor

from glassformer.data.audio import Series
from glassformer.data.audio_augment import (
    AugmentSettings,
    augment_vectors,
    augment_wave,
    change_speed,
    change_tempo,
    cross,
    draw_speed,
    draw_tempo,
    hide_parts,
    pairs_to_join,
)
from glassformer.data.audio_store import AudioStore
from glassformer.data.batch import Planned, Rows, by_length, cut, pad, plan_epoch, spread
from glassformer.data.features import FeatureSettings, extract, loudness, pad_features
from glassformer.data.store import TokenStore
from glassformer.data.tokenizer import END, PAD, START, Tokenizer
from glassformer.decode.options import DecodeOptions
from glassformer.errors import require
from glassformer.model import EncoderDecoder
from glassformer.model.settings import FramesSettings, Settings
from glassformer.tasks.pauses import Part, parts_of
from glassformer.tasks.run import Recipe
from glassformer.tasks.transcribe_backend import TranscribeBackend
from glassformer.train.ctc import ctc_loss, disagreement
from glassformer.train.loop import Validation
from glassformer.train.loss import cross_entropy

Said = tuple[int, Part]  # a row of a batch, and a part of its recording

ROOM = 10  # tokens that a validation answer may be longer than the longest transcript


@dataclass(frozen=True, kw_only=True)
class TranscriptSettings(Settings):
    # char, bpe, word, or the path of a tokenizer.json; characters need the least data.
    kind: str = "char"
    # None: grows with the text.
    size: int | None = None


@dataclass(frozen=True, kw_only=True)
class TranscribeRecipe(Recipe):
    # tiny, small, base, big, any name from `glassformer sizes`, or auto: from the hours.
    size: str = "auto"
    # Changes to the size, in its own words.
    model: dict[str, Any] = field(default_factory=dict)
    # One dial for the front-ends and both stacks; None leaves the size's own.
    dropout: float | None = None
    tokenizer: TranscriptSettings = field(default_factory=TranscriptSettings)
    # None: what suits the rate of the recordings.
    features: FeatureSettings | None = None
    augment: AugmentSettings = field(default_factory=AugmentSettings)
    # The share of CTC in the loss and in the search; the rest is attention.
    ctc: float = 0.3
    # Each recording is heard in two ways at once, differently changed and hidden, and CTC is to say the same of both:
    # how much that counts beside its loss (consistency regularisation; 0.2 is published). 0: one way, half the time.
    agreement: float = 0.0
    # Longer recordings, or transcripts of more tokens, are left out of training.
    max_seconds: float = 30.0
    max_tokens: int = 400

    def __post_init__(self) -> None:
        self._at_least(1, "max_tokens")
        self._share("ctc")
        require(
            0 <= self.agreement < math.inf, f"agreement is {self.agreement}.", "Set it to 0 for none; 0.2 is usual."
        )
        require(
            not self.agreement or self.ctc > 0,
            "agreement is asked of CTC, but ctc is 0.",
            "Set ctc=0.3, or leave it out.",
        )
        require(self.max_seconds > 0, f"max_seconds is {self.max_seconds}.", "It must be above 0; 30 is usual.")

    @property
    def n_views(self) -> int:
        return 2 if self.agreement else 1


def automatic_transcribe_size(seconds: float) -> str:
    hours = seconds / 3600
    return "tiny" if hours < 5 else "small" if hours < 50 else "base"


@dataclass(frozen=True)
class RecordingData:
    """Recordings on disk and the tokens of their transcripts."""

    audio: AudioStore
    tokens: TokenStore
    tokenizer: Tokenizer

    def __post_init__(self) -> None:
        n, m = len(self.audio), len(self.tokens)
        require(n == m, f"There are {n} recordings but {m} transcripts.", "Prepare the data again.")
        require(n > 0, "No recording is left to use.", "Raise max_seconds or max_tokens, or cut the recordings.")


@dataclass(frozen=True)
class SpeechBatch:
    features: Tensor  # (b, n, f)
    keep: Tensor | None  # (b, n)
    target_in: Tensor  # (b, m) <s> x y z
    target_out: Tensor  # (b, m) x y z </s>, padding is PAD
    n_tokens: int

    def to(self, device: torch.device) -> "SpeechBatch":
        keep = None if self.keep is None else self.keep.to(device)
        tensors = (t.to(device) for t in (self.features, self.target_in, self.target_out))
        features, target_in, target_out = tensors
        return SpeechBatch(features, keep, target_in, target_out, self.n_tokens)


class TranscribeJob:
    """What the training loop asks of transcription."""

    def __init__(
        self,
        model: EncoderDecoder,
        train: RecordingData,
        valid: RecordingData,
        recipe: TranscribeRecipe,
        features: FeatureSettings,
    ) -> None:
        self.model, self.train, self.valid = model, train, valid
        self.recipe, self.settings, self.features = recipe, recipe.train, features
        self.device = next(model.parameters()).device
        self.lengths = self._lengths(train)
        self.parts = self._parts() if recipe.augment.crossed else None

    def _lengths(self, data: RecordingData) -> list[Rows]:
        """Positions of the encoder, and tokens with their end."""
        source = self.model.settings.source
        assert isinstance(source, FramesSettings)
        stride = int(np.prod(source.strides, dtype=np.int64))
        vectors = self.features.kind == "vectors"
        frames = data.audio.lengths if vectors else np.maximum(1, data.audio.lengths // self.features.hop_samples)
        return [-(-frames // stride), data.tokens.lengths + 1]

    def plan_epoch(self, epoch: int) -> list[Planned]:
        budget = max(1, self.settings.batch_tokens // self.recipe.n_views)
        return plan_epoch(self.lengths, budget, self.settings.seed, epoch)

    def load(self, planned: Planned) -> SpeechBatch:
        """All views of a batch have the same words at the same times; the rest of chance is each view's own."""
        random, augment = planned.random, self.recipe.augment
        rate = None if self.features.kind == "vectors" else self.features.rate
        series = [change_speed(self.train.audio[i], draw_speed(augment, random), rate) for i in planned.rows]
        tempos = [draw_tempo(augment, random) for _ in series]
        said = cross([self._said(row, i) for row, i in enumerate(planned.rows.tolist())], augment, random)
        said = [[each for i in pair for each in said[i]] for pair in pairs_to_join(len(said), augment, random)]
        features = [f for _ in range(self.recipe.n_views) for f in self._view(series, tempos, said, random)]
        targets = [self._joined([part.tokens for _, part in parts]) for parts in said]
        return self._batch(features, targets * self.recipe.n_views)

    def _view(
        self, series: list[Series], tempos: list[float], said: list[list[Said]], random: np.random.Generator
    ) -> list[Tensor]:
        """The features of what is said one after the other, heard in one of many ways."""
        change = augment_vectors if self.features.kind == "vectors" else augment_wave
        heard = extract([change(each, self.recipe.augment, random) for each in series], self.features)
        heard = [change_tempo(f, tempo) for f, tempo in zip(heard, tempos, strict=True)]
        heard = [hide_parts(f, self.recipe.augment, random) for f in heard]
        return [torch.cat([part.of(heard[row]) for row, part in parts]) for parts in said]

    def _said(self, row: int, i: int) -> list[Said]:
        """Recording i, a batch's row, in as many parts as it can be cut into."""
        parts = [Part(0.0, 1.0, self.train.tokens[i])] if self.parts is None else self.parts[i]
        return [(row, part) for part in parts]

    @torch.inference_mode()
    def _parts(self) -> list[list[Part]]:
        """Where each recording can be cut, by the model as it is now."""
        model, data = self.model.eval(), self.train
        assert model.ctc is not None
        found: dict[int, list[Part]] = {}
        for rows, features in self._alike(data):
            batch, keep = pad_features(features)
            memory = model.encode(batch.to(self.device), keep if keep is None else keep.to(self.device))
            log_p = model.ctc(memory.x).double().log_softmax(dim=-1).cpu().numpy()
            n_frames = [log_p.shape[1]] * len(rows) if memory.keep is None else memory.keep.sum(dim=1).tolist()
            for row, i in enumerate(rows.tolist()):
                loud = loudness(features[row], self.features).double().numpy()
                found[i] = parts_of(log_p[row, : n_frames[row]], loud, data.tokens[i].tolist(), data.tokenizer)
        return [found[i] for i in range(len(found))]

    def _alike(self, data: RecordingData) -> Iterator[tuple[Rows, list[Tensor]]]:
        """All recordings' features, in batches of like length."""
        lengths = self._lengths(data)
        rows = by_length(lengths, np.arange(len(data.tokens)))
        for part in cut(rows, np.max([side[rows] for side in lengths], axis=0), self.settings.batch_tokens):
            yield part, extract([data.audio[i] for i in part], self.features)

    def _joined(self, targets: list[Rows]) -> Rows:
        """The tokens of transcripts that are said one after the other."""
        if len(targets) == 1:
            return targets[0]
        tokenizer = self.train.tokenizer
        text = " ".join(tokenizer.decode(target.tolist()) for target in targets)
        return np.array(tokenizer.encode(text), dtype=np.int64)

    def _batch(self, features: list[Tensor], targets: list[Rows]) -> SpeechBatch:
        batch, keep = pad_features(features)
        target_in, _ = pad(targets, before=START)
        target_out, real = pad(targets, after=END)
        return SpeechBatch(batch, keep, target_in, target_out, int(real.sum())).to(self.device)

    def n_tokens(self, batch: SpeechBatch) -> int:
        return batch.n_tokens

    def loss(self, batch: SpeechBatch) -> Tensor:
        return self.loss_of(batch, self.settings.label_smoothing)

    def loss_of(self, batch: SpeechBatch, smoothing: float) -> Tensor:
        """(1 - ctc) times the attention's loss + ctc times CTC's, summed over the batch."""
        model, share = self.model, self.recipe.ctc
        memory = model.encode(batch.features, batch.keep)
        states = model.decode(batch.target_in, memory)
        answers = batch.target_out.flatten()
        real = (answers != PAD).nonzero()[:, 0]
        rows = model.head.prepare(states.flatten(0, 1)[real])
        loss = cross_entropy(rows, model.head.w.weight, model.head.w.bias, answers[real], smoothing)
        if share == 0:
            return loss
        assert model.ctc is not None
        log_p = model.ctc(memory.x).float().log_softmax(dim=-1)
        ctc = ctc_loss(log_p, memory.keep, batch.target_out)
        if self.recipe.agreement and model.training:
            ctc = ctc + self.recipe.agreement * disagreement(log_p, memory.keep)
        return (1 - share) * loss + share * ctc

    @torch.inference_mode()
    def validate(self) -> Validation:
        """The loss on all of the validation set, word and character errors by joint greedy search on some of it."""
        data, settings = self.valid, self.settings
        rows = spread(len(data.tokens), settings.n_translated).tolist()
        total, n_tokens = 0.0, 0
        heard: dict[int, Tensor] = {}
        for part, features in self._alike(data):
            heard |= {i: f for i, f in zip(part.tolist(), features, strict=True) if i in rows}
            batch = self._batch(features, [data.tokens[i] for i in part])
            total += float(self.loss_of(batch, 0.0))
            n_tokens += batch.n_tokens
        loss = total / n_tokens
        if not rows:
            return Validation(-loss, {"valid_loss": loss})
        n = len(rows)
        backend = TranscribeBackend(self.model, self.recipe.ctc, settings.batch_tokens)
        options = DecodeOptions(beam=1, max_len=int(data.tokens.lengths[rows].max()) + ROOM)
        found = backend.generate([heard[i] for i in rows], options)
        guesses = [data.tokenizer.decode(best[0].ids) if best else "" for best in found]
        answers = [data.tokenizer.decode(data.tokens[i].tolist()) for i in rows]
        wer, cer = 100 * jiwer.wer(answers, guesses), 100 * jiwer.cer(answers, guesses)
        exact = 100 * sum(guess == answer for guess, answer in zip(guesses, answers, strict=True)) / n
        samples = [f"{guesses[i] or '(nothing)'}  (wanted: {answers[i]})" for i in sorted({0, n // 2, n - 1})]
        metrics = {"valid_loss": loss, "wer": wer, "cer": cer, "exact": exact}
        # A model that babbles has rates above 100, and is still not worse than one that says nothing. The loss decides
        # where few recordings make few mistakes.
        return Validation(100 - (min(100.0, wer) + min(100.0, cer)) / 2 - loss, metrics, samples)
