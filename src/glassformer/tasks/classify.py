"""Classification as a job for the training loop: labelled examples in, loss and scores out.

b batch, n length, c classes
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from glassformer.data.batch import Rows, spread
from glassformer.data.labelled_batch import Inputs, LabelledBatch, LabelledData, plan_examples
from glassformer.data.labels import LabelKind, Labels, Targets
from glassformer.errors import require
from glassformer.model import DecoderOnly
from glassformer.model.heads import TokenHead
from glassformer.model.lora import LoraSettings
from glassformer.model.settings import Pooling
from glassformer.tasks.classify_answers import (
    Classifying,
    answer,
    as_probabilities,
    name_answer,
    name_target,
    score_rows,
    worst_first,
)
from glassformer.tasks.classify_scores import LESS_IS_BETTER, OF_KIND, Metric, measure
from glassformer.tasks.picture_settings import PictureSettings
from glassformer.tasks.run import Recipe
from glassformer.tasks.text import TextTokens
from glassformer.train.loop import Validation
from glassformer.train.loss import cross_entropy
from glassformer.train.settings import FineTuning

VALIDATED = 5000  # examples that validation looks at, evenly spread
SAMPLES = 3  # mistakes that are shown
TIE = 1e-3  # of two equal scores the one with the lower loss is better


@dataclass(frozen=True, kw_only=True)
class ClassifyTraining(FineTuning):
    """Training as classifiers are trained: batches of examples, weights that decay a little."""

    # Examples in one batch; fewer where they would fill more than batch_tokens places.
    batch_size: int = 32
    batch_tokens: int = 8192
    label_smoothing: float = 0.0
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    dropout_epochs: int = 0
    # Labels are soon known by heart; 6 of 15 validations without progress are enough to know.
    patience: int = 6
    average: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        self._at_least(1, "batch_size")


@dataclass(frozen=True, kw_only=True)
class ClassifyRecipe(Recipe):
    train: ClassifyTraining = field(default_factory=ClassifyTraining)
    # tiny, small, base, big, any name from `glassformer sizes`, or auto.
    size: str = "auto"
    # Changes to the size, in its own words.
    model: dict[str, Any] = field(default_factory=dict)
    # One dial for the front-end, the stack and the head; None leaves what the size or the model to start from has.
    dropout: float | None = None
    tokenizer: TextTokens = field(default_factory=TextTokens)
    # How pictures are read, and changed in training.
    pictures: PictureSettings = field(default_factory=PictureSettings)
    # Tokens of a text, or of a pair together, or vectors of a series; the end of what is longer is not read. None: 256
    # tokens, 4,096 vectors.
    max_tokens: int | None = None
    # Times that all examples are read, where neither steps nor minutes are given; None: what they are worth.
    epochs: float | None = None
    # What labels are; None: found from the data.
    labels: LabelKind | None = None
    # What parts several labels of one example; None: found from the data.
    separator: str | None = None
    # Train although a class was seen only once.
    allow_rare: bool = False
    # What the best weights are chosen by; None: accuracy, or what comes next to it for this kind of labels.
    metric: Metric | None = None
    # Rare classes count more, as much as common ones together.
    balance: bool = False
    # Where the class is read off; None: the mean, the last position of a decoder, or what the model to start from has.
    pooling: Pooling | None = None
    # With `start`: the front-end and so many layers above it stay as they are.
    freeze: int = 0
    # With `start`: leave its weights as they are and train narrow detours beside them, and the head.
    lora: LoraSettings | None = None
    # With `start` a language model: the weight of its own loss beside that of the labels (GPT's λ).
    lm_weight: float = 0.5

    def __post_init__(self) -> None:
        if self.max_tokens is not None:
            self._at_least(4, "max_tokens")
        self._at_least(0, "freeze", "lm_weight")
        for name, given in (("LoRA", self.lora is not None), ("freeze", self.freeze > 0)):
            require(
                not given or self.start is not None,
                f"{name} leaves a trained model as it is, but none is given to start from.",
                "Name one with --from.",
            )
        require(
            self.lora is None or not self.freeze,
            "LoRA leaves all layers as they are, so that freezing some has no meaning.",
            "Give one of them.",
        )
        require(self.epochs is None or self.epochs > 0, f"epochs is {self.epochs}.", "It must be above 0.")

    @property
    def gentle(self) -> bool:
        return self.start is not None and self.lora is None


class ClassifyJob:
    """What the training loop asks of classification."""

    def __init__(
        self,
        model: Classifying,
        train: LabelledData,
        valid: LabelledData,
        labels: Labels,
        recipe: ClassifyRecipe,
        speaker: TokenHead | None = None,
    ) -> None:
        """`speaker` is the head of the language model that the model was: its loss is minded too."""
        self.model, self.train, self.valid, self.labels = model, train, valid, labels
        self.recipe, self.settings, self.speaker = recipe, recipe.train, speaker
        self.device = next(model.parameters()).device
        self.metric = chosen_metric(recipe.metric, labels)
        self.rows = spread(len(valid.targets), VALIDATED)
        self.scale = Scale.of(train.targets) if labels.kind == "number" else Scale()
        self.weights = _class_weights(labels, train.targets).to(self.device) if recipe.balance else None

    def plan_epoch(self, epoch: int) -> list[Rows]:
        s = self.settings
        return plan_examples(self.train.lengths, s.batch_size, s.batch_tokens, s.seed, epoch)

    def load(self, planned: Rows) -> LabelledBatch:
        return self.train.train_batch(planned).to(self.device)

    def n_tokens(self, batch: LabelledBatch) -> int:
        """Examples, which is what the loss is summed over here."""
        return len(batch.targets)

    def loss(self, batch: LabelledBatch) -> Tensor:
        if self.speaker is None or not isinstance(self.model, DecoderOnly):
            return self._label_loss(answer(self.model, batch.inputs), batch.targets)
        states = self.model.states(batch.inputs.source, batch.inputs.keep)
        labels = self._label_loss(self.model.head(states, batch.inputs.keep), batch.targets)
        return labels + self.recipe.lm_weight * len(batch.targets) * language_loss(self.speaker, states, batch.inputs)

    def _label_loss(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Summed over the examples."""
        scores, smoothing = scores.float(), self.settings.label_smoothing
        if self.labels.kind == "number":
            return F.mse_loss(scores[:, 0], (targets - self.scale.mean) / self.scale.deviation, reduction="sum")
        if self.labels.kind == "classes":
            targets = targets * (1 - smoothing) + smoothing / 2
            each = F.binary_cross_entropy_with_logits(scores, targets, pos_weight=self.weights, reduction="sum")
            return each / scores.shape[1]
        return F.cross_entropy(scores, targets, self.weights, reduction="sum", label_smoothing=smoothing)

    @torch.inference_mode()
    def validate(self) -> Validation:
        """Loss and scores on the validation examples, and the mistakes that it is surest of."""
        raw = score_rows(self.model, self.valid, self.rows)
        targets = self.valid.targets[self.rows]
        smoothing_free = self._plain_loss(raw, targets)
        if self.labels.kind == "number":
            raw = raw * self.scale.deviation + self.scale.mean
        scores = as_probabilities(raw, self.labels.kind)
        metrics = measure(self.labels.kind, scores, targets)
        better = -1.0 if self.metric in LESS_IS_BETTER else 1.0
        score = better * metrics[self.metric] - TIE * min(smoothing_free, 10.0)
        return Validation(score, {"valid_loss": smoothing_free, **metrics}, self._mistakes(scores, targets))

    def _plain_loss(self, raw: NDArray[np.float32], targets: Targets) -> float:
        """Without smoothing and class weights, so that runs can be compared."""
        scores, wanted = torch.from_numpy(raw), torch.from_numpy(targets)
        match self.labels.kind:
            case "number":
                return float(F.mse_loss(scores[:, 0], (wanted - self.scale.mean) / self.scale.deviation))
            case "classes":
                return float(F.binary_cross_entropy_with_logits(scores, wanted))
            case "class":
                return float(F.cross_entropy(scores, wanted))

    def _mistakes(self, scores: NDArray[np.float32], targets: Targets) -> list[str]:
        wrong = worst_first(self.labels.kind, scores, targets)[: 10 * SAMPLES]
        shown = (
            f"said {name_answer(self.labels, scores[i])}, is {name_target(self.labels, targets[i])}: "
            f"{self.valid.show(int(self.rows[i]))}"
            for i in wrong
        )
        return list(dict.fromkeys(shown))[:SAMPLES]  # the same text may be there many times


@dataclass(frozen=True)
class Scale:
    """Numbers are learned as so many deviations from the mean."""

    mean: float = 0.0
    deviation: float = 1.0

    @classmethod
    def of(cls, targets: Targets) -> "Scale":
        return cls(float(targets.mean()), float(targets.std()) or 1.0)

    @torch.no_grad()
    def put_into(self, model: Classifying) -> None:
        """Let the head speak in the labels' own unit."""
        head: Any = model.head
        head.w.weight *= self.deviation
        head.w.bias.copy_(head.w.bias * self.deviation + self.mean)


def language_loss(speaker: TokenHead, states: Tensor, inputs: Inputs) -> Tensor:
    """The mean loss of the tokens after the first, each told from the ones before it."""
    ids, keep = inputs.source, inputs.keep
    told = torch.ones_like(ids[:, 1:], dtype=torch.bool) if keep is None else keep[:, 1:]
    rows = speaker.prepare(states[:, :-1][told])
    return cross_entropy(rows, speaker.w.weight, speaker.w.bias, ids[:, 1:][told]) / max(1, len(rows))


def chosen_metric(asked: Metric | None, labels: Labels) -> Metric:
    """What the best weights are chosen by."""
    known = OF_KIND[labels.kind] + (("f1_binary",) if labels.kind == "class" and labels.n_out == 2 else ())
    require(
        asked is None or asked in known,
        f"The metric {asked} is not for these labels ({labels.kind}, {labels.n_out}).",
        f"Choose {', '.join(known)}.",
    )
    return asked or known[0]


def _class_weights(labels: Labels, targets: Targets) -> Tensor:
    """So that all classes weigh the same together: n / (c · count); for many classes, noes to yeses."""
    if labels.kind == "classes":
        yes = targets.sum(axis=0)
        return torch.from_numpy(((len(targets) - yes) / np.maximum(1, yes)).astype(np.float32))
    counts = np.bincount(targets.astype(np.int64), minlength=labels.n_out)
    return torch.from_numpy((len(targets) / (labels.n_out * np.maximum(1, counts))).astype(np.float32))
