"""How to train, as data; every default with its reason."""

import math
from dataclasses import dataclass
from typing import Literal

from glassformer.errors import require
from glassformer.model.settings import Settings

MOST_SEED = 2**63
VALIDATIONS = 15  # of a run, if nothing else is said


@dataclass(frozen=True, kw_only=True)
class TrainSettings(Settings):
    seed: int = 1
    # Real and padding tokens of the wider side in one batch. Small batches make more of little time; much data and a
    # graphics card want more.
    batch_tokens: int = 2048
    # Batches added up to one step. As many as a CPU has cores, or more, are worked on side by side, a core each. None:
    # one, in translation and of plain text cut into one for each core.
    accumulate: int | None = None
    # The end: steps or minutes (planned from measured speed), what comes first; with neither, what the data is worth.
    steps: int | None = None
    minutes: float | None = None
    # muon evens out the steps of all matrices inside the stacks: fewer steps are needed, each a little dearer. It pays
    # where batches are large beside the model and the vocabulary is small.
    optimizer: Literal["adam", "muon"] = "adam"
    # The peak of the schedule; None is 0.4 / d_model, at most 5e-3: the wider, the less. That is near what is
    # published for many sizes: 3e-3 for 128, 1e-3 for 384, 8e-4 for 512, 5e-4 for 768.
    lr: float | None = None
    schedule: Literal["cosine", "paper", "constant"] = "cosine"
    # Steps of linear growth to the peak; None is a tenth of all steps, at most 4,000 (the paper's).
    warmup: int | None = None
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-9
    weight_decay: float = 0.0
    # Gradients longer than this are shortened to it; 0 leaves them.
    clip: float = 1.0
    label_smoothing: float = 0.1
    # Dropout grows to its full rate over so many epochs: what is new cannot be known by heart. 0: full at once.
    dropout_epochs: int = 20
    # Validate and save so many times over the whole run; by default not more often than every 5 steps.
    validations: int = VALIDATIONS
    # Stop when so many validations in a row brought nothing better; 0 never stops early.
    patience: int = 0
    # The model is the mean of so many saved ones, if that validates better than the best alone.
    average: int = 5
    average_of: Literal["last", "best"] = "best"
    # A running mean of the weights with this decay; 0 has none.
    ema: float = 0.0
    # bf16 pays only where the hardware multiplies in it.
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    # Sentences that validation translates for BLEU.
    n_translated: int = 300

    def __post_init__(self) -> None:
        self._at_least(1, "batch_tokens", "validations", "average")
        self._at_least(1, *(name for name in ("accumulate", "steps") if getattr(self, name) is not None))
        self._at_least(0, "seed", "clip", "patience", "weight_decay", "n_translated", "dropout_epochs")
        self._share("label_smoothing", "ema")
        require(
            self.lr is None or self.lr > 0,
            f"train.lr is {self.lr}, but it must be above 0.",
            "Leave it out for 0.4 / d_model.",
        )
        require(
            self.minutes is None or 0 < self.minutes < math.inf,
            f"train.minutes is {self.minutes}, but it must be above 0 and have an end.",
            "Give the minutes that training may take, such as 15.",
        )
        require(
            self.seed < MOST_SEED, f"train.seed is {self.seed}, which is too large.", f"Give less than {MOST_SEED}."
        )
        require(
            0 < self.eps < math.inf,
            f"train.eps is {self.eps}, but it must be a small number above 0.",
            "The default is 1e-9.",
        )
        require(
            self.warmup is None or self.warmup >= 0,
            f"train.warmup is {self.warmup}, but it must be 0 or more.",
            "Leave it out for a tenth of all steps.",
        )
        require(
            all(0 <= beta < 1 for beta in self.betas),
            f"train.betas is {self.betas}, but both are shares.",
            "The default is [0.9, 0.98].",
        )

    @property
    def n_batches(self) -> int:
        """Of a step."""
        return self.accumulate or 1

    @property
    def peak(self) -> float:
        """The learning rate, once it is settled for a model."""
        assert self.lr is not None
        return self.lr


@dataclass(frozen=True, kw_only=True)
class FineTuning(TrainSettings):
    """Training in which not all parts learn at the same speed."""

    # The learning rate of each layer is this share of that of the layer above: what is low is general and may stay.
    layer_decay: float = 1.0
    # The head's learning rate is that of the top layer times this: it is new, the others are not.
    head_speed: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            0 < self.layer_decay <= 1,
            f"train.layer_decay is {self.layer_decay}, but it is a share.",
            "Give more than 0 and at most 1; 0.8 is usual.",
        )
        require(self.head_speed > 0, f"train.head_speed is {self.head_speed}.", "It must be above 0.")
