"""What speaks."""

from dataclasses import dataclass, field
from typing import Literal

from glassformer.model.settings.base import Activation, Settings
from glassformer.model.settings.stack import NormSettings


@dataclass(frozen=True, kw_only=True)
class TokenHeadSettings(Settings):
    """One score per word of the vocabulary, at every position."""

    kind: Literal["token"] = "token"
    bias: bool = False
    # BERT puts a dense layer, its activation and a norm before the scores.
    transform: Activation | None = None
    norm: NormSettings = field(default_factory=NormSettings)


Pooling = Literal["first", "mean", "last"]


@dataclass(frozen=True, kw_only=True)
class ClassHeadSettings(Settings):
    """One score per class for the whole sequence."""

    kind: Literal["class"] = "class"
    n_classes: int = 2
    # "last" is for decoders (GPT), "first" for a class token (BERT, ViT).
    pooling: Pooling = "mean"
    # BERT's pooler: a dense layer and its activation before the scores.
    transform: Activation | None = None
    dropout: float = 0.1

    def __post_init__(self) -> None:
        self._at_least(1, "n_classes")
        self._share("dropout")


@dataclass(frozen=True, kw_only=True)
class RegressionHeadSettings(Settings):
    """Numbers for the whole sequence."""

    kind: Literal["regression"] = "regression"
    n_values: int = 1
    pooling: Pooling = "mean"
    transform: Activation | None = None
    dropout: float = 0.1

    def __post_init__(self) -> None:
        self._at_least(1, "n_values")
        self._share("dropout")


@dataclass(frozen=True, kw_only=True)
class EmbeddingHeadSettings(Settings):
    """One vector for the whole sequence."""

    kind: Literal["embedding"] = "embedding"
    pooling: Pooling = "mean"
    # BERT's pooler, where a model carries one.
    transform: Activation | None = None
    normalise: bool = True


Head = TokenHeadSettings | ClassHeadSettings | RegressionHeadSettings | EmbeddingHeadSettings
