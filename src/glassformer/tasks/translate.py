"""Translation as a job for the training loop: pairs in, BLEU out."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from torch import Tensor

from glassformer.data.batch import PairBatch, Planned, Rows, by_length, cut, pair_batch, plan_epoch, spread
from glassformer.data.store import TokenStore
from glassformer.data.tokenizer import PAD, SMALLEST, Tokenizer
from glassformer.decode.options import DecodeOptions
from glassformer.errors import require
from glassformer.model import EncoderDecoder
from glassformer.model.settings import Settings
from glassformer.tasks.backend import Request, TorchBackend
from glassformer.tasks.run import Recipe
from glassformer.tasks.scores import usual_tokenize
from glassformer.train.loop import Validation
from glassformer.train.loss import cross_entropy
from glassformer.train.settings import TrainSettings

KINDS = ("bpe", "word", "char")  # of vocabularies that are learned from the pairs


@dataclass(frozen=True, kw_only=True)
class TokenizerSettings(Settings):
    # bpe, word, char, or the path of a tokenizer.json.
    kind: str = "bpe"
    # None: grows with the text.
    size: int | None = None
    # One vocabulary for both sides lets names and numbers be copied and all tables be one.
    joint: bool = True

    def __post_init__(self) -> None:
        require(
            self.size is None or self.size >= SMALLEST,
            f"tokenizer.size is {self.size}, but the single bytes alone need {SMALLEST} tokens.",
            f"Ask for {SMALLEST} or more, or leave it out: it grows with the text.",
        )
        if self.file is not None:
            given = f"tokenizer.size = {self.size}" if self.size is not None else "tokenizer.joint = false"
            require(
                self.size is None and self.joint,
                f"The tokenizer {self.file} is a file, taken as it is for both sides: {given} would have no effect.",
                f"Leave that out, or let a vocabulary be learned ({', '.join(KINDS)}).",
            )

    @property
    def file(self) -> Path | None:
        """The tokenizer.json to take; None: a vocabulary is learned."""
        return None if self.kind in KINDS else Path(self.kind)


@dataclass(frozen=True, kw_only=True)
class TranslateRecipe(Recipe):
    # tiny, small, base, big, any name from `glassformer sizes`, or auto: from the number of pairs.
    size: str = "auto"
    # Changes to the size, in its own words.
    model: dict[str, Any] = field(default_factory=dict)
    # One dial for the front-ends and both stacks; None leaves the size's own. Less data, or more time, wants more.
    dropout: float | None = None
    tokenizer: TokenizerSettings = field(default_factory=TokenizerSettings)
    # Epochs at the beginning in which every other batch is read the other way round; few pairs teach more so.
    both_ways: int = 0
    # Pairs with more tokens than this on a side are left out of training.
    max_tokens: int = 250

    def __post_init__(self) -> None:
        self._at_least(1, "max_tokens")
        self._at_least(0, "both_ways")


def automatic_translate_size(n_pairs: int) -> str:
    """Larger models need more pairs than they have time to forget."""
    return "tiny" if n_pairs < 100_000 else "small" if n_pairs < 1_000_000 else "base"


@dataclass(frozen=True)
class Side:
    """One language of a data set: its tokens on disk and the tokenizer that made them."""

    tokens: TokenStore
    tokenizer: Tokenizer


@dataclass(frozen=True)
class PairData:
    source: Side
    target: Side

    def __post_init__(self) -> None:
        n_source, n_target = len(self.source.tokens), len(self.target.tokens)
        require(
            n_source == n_target, f"There are {n_source} sources but {n_target} targets.", "Prepare the data again."
        )

    def __len__(self) -> int:
        return len(self.source.tokens)

    def batch(self, rows: Rows) -> PairBatch:
        return pair_batch([self.source.tokens[i] for i in rows], [self.target.tokens[i] for i in rows])

    @property
    def lengths(self) -> list[NDArray[np.int64]]:
        """Of both sides, with the end token."""
        return [self.source.tokens.lengths + 1, self.target.tokens.lengths + 1]

    @property
    def turned(self) -> "PairData":
        """The same pairs, to be translated the other way round."""
        return PairData(self.target, self.source)


class TranslateJob:
    """What the training loop asks of translation."""

    def __init__(
        self, model: EncoderDecoder, train: PairData, valid: PairData, settings: TrainSettings, both_ways: int = 0
    ) -> None:
        require(
            train.source.tokenizer is train.target.tokenizer or not both_ways,
            "Pairs can be read both ways with one vocabulary for both sides only.",
            "Set both_ways = 0; or for a new model tokenizer.joint = true.",
        )
        self.model, self.train, self.valid, self.settings, self.both_ways = model, train, valid, settings, both_ways
        self.device = next(model.parameters()).device
        self.lengths = train.lengths

    def plan_epoch(self, epoch: int) -> list[Planned]:
        return plan_epoch(self.lengths, self.settings.batch_tokens, self.settings.seed, epoch)

    def load(self, planned: Planned) -> PairBatch:
        _, epoch, number = planned.place
        turned = epoch < self.both_ways and number % 2 == 1
        return (self.train.turned if turned else self.train).batch(planned.rows).to(self.device)

    def n_tokens(self, batch: PairBatch) -> int:
        return batch.n_tokens

    def loss(self, batch: PairBatch) -> Tensor:
        return self.loss_of(self.model, batch, self.settings.label_smoothing)

    @staticmethod
    def loss_of(model: EncoderDecoder, batch: PairBatch, smoothing: float) -> Tensor:
        """Summed over the real target tokens; padding costs neither scores nor gradients."""
        states = model.decode(batch.target_in, model.encode(batch.source, batch.source_keep))
        answers = batch.target_out.flatten()
        real = (answers != PAD).nonzero()[:, 0]
        head = model.head
        rows = head.prepare(states.flatten(0, 1)[real])
        return cross_entropy(rows, head.w.weight, head.w.bias, answers[real], smoothing)

    @torch.inference_mode()
    def validate(self) -> Validation:
        """Perplexity on all of the validation set, BLEU, chrF and exact answers by greedy search on some of it."""
        loss = self._valid_loss()
        n = min(self.settings.n_translated, len(self.valid))
        if n == 0:
            return Validation(-loss, {"valid_loss": loss})
        scores, samples = self._translated(spread(len(self.valid), n))
        # BLEU alone says nothing about targets of a word or two.
        return Validation((scores["bleu"] + scores["chrf"]) / 2, {"valid_loss": loss, **scores}, samples)

    def _valid_loss(self) -> float:
        """For each target token, without smoothing."""
        lengths = self.valid.lengths
        rows = by_length(lengths, np.arange(len(self.valid)))
        total, n_tokens = 0.0, 0
        # A short target may have a long source, which fills the memory as well.
        for part in cut(rows, np.maximum(*lengths)[rows], self.settings.batch_tokens):
            batch = self.valid.batch(part).to(self.device)
            total += float(self.loss_of(self.model, batch, 0.0))
            n_tokens += batch.n_tokens
        return total / n_tokens

    def _translated(self, rows: Rows) -> tuple[dict[str, float], list[str]]:
        """How well these pairs are translated, and three samples."""
        source, target = self.valid.source, self.valid.target
        sources = [source.tokens[i].tolist() for i in rows]
        answers = [target.tokenizer.decode(target.tokens[i].tolist()) for i in rows]
        longest = int(target.tokens.lengths[rows].max()) + 10
        backend = TorchBackend(self.model, self.settings.batch_tokens)
        found = backend.generate([Request(ids) for ids in sources], DecodeOptions(beam=1, max_len=longest))
        guesses = [target.tokenizer.decode(hypotheses[0].ids) for hypotheses in found]
        n = len(rows)
        scores = {
            "bleu": BLEU(tokenize=usual_tokenize(answers), force=True).corpus_score(guesses, [answers]).score,
            "chrf": CHRF().corpus_score(guesses, [answers]).score,
            "exact": 100 * sum(guess == answer for guess, answer in zip(guesses, answers, strict=True)) / n,
        }
        samples = [
            f"{source.tokenizer.decode(sources[i])} → {guesses[i] or '(nothing)'}  (wanted: {answers[i]})"
            for i in sorted({0, n // 2, n - 1})
        ]
        return scores, samples
