"""Front-ends and the positions that they add."""

from dataclasses import dataclass, field
from typing import Literal

from glassformer.errors import require
from glassformer.model.settings.base import Settings
from glassformer.model.settings.stack import NormSettings


@dataclass(frozen=True, kw_only=True)
class SinusoidalSettings(Settings):
    """Fixed waves of the paper; they have no longest position."""

    kind: Literal["sinusoidal"] = "sinusoidal"
    # The paper interleaves sine and cosine; Marian puts all sines before all cosines.
    layout: Literal["interleaved", "halves"] = "interleaved"


@dataclass(frozen=True, kw_only=True)
class LearnedSettings(Settings):
    """One trained vector per position, up to `max_len`."""

    kind: Literal["learned"] = "learned"
    max_len: int = 1024

    def __post_init__(self) -> None:
        self._at_least(1, "max_len")


Positions = SinusoidalSettings | LearnedSettings


@dataclass(frozen=True, kw_only=True)
class TokensSettings(Settings):
    """Ids looked up in a table."""

    kind: Literal["tokens"] = "tokens"
    vocab_size: int = 8000
    positions: Positions | None = field(default_factory=SinusoidalSettings)
    # The paper multiplies embeddings by sqrt(d_model), so that a tied table serves both ends and the waves do not drown
    # the words; None does so beside sinusoidal positions only.
    scale: bool | None = None
    # BERT marks the first and second sentence by a type id.
    n_types: int = 0
    # BERT normalises the sum.
    norm: NormSettings | None = None
    dropout: float = 0.1

    def __post_init__(self) -> None:
        self._at_least(1, "vocab_size")
        self._at_least(0, "n_types")
        self._share("dropout")

    @property
    def is_scaled(self) -> bool:
        return isinstance(self.positions, SinusoidalSettings) if self.scale is None else self.scale


@dataclass(frozen=True, kw_only=True)
class FramesSettings(Settings):
    """Audio features, shortened by a pile of strided convolutions of width 3."""

    kind: Literal["frames"] = "frames"
    n_features: int = 80
    # One convolution per stride; (1, 2) is Whisper's and halves the length. () is a plain projection.
    strides: tuple[int, ...] = (1, 2)
    positions: Positions | None = field(default_factory=SinusoidalSettings)
    dropout: float = 0.1

    def __post_init__(self) -> None:
        self._at_least(1, "n_features")
        self._share("dropout")
        require(
            all(s >= 1 for s in self.strides), f"frames.strides is {self.strides}.", "Each stride must be 1 or more."
        )


@dataclass(frozen=True, kw_only=True)
class PatchesSettings(Settings):
    """A picture cut into squares, each projected to a vector."""

    kind: Literal["patches"] = "patches"
    height: int = 224
    width: int = 224
    n_channels: int = 3
    patch: int = 16
    # Pixels around a square that it sees too: with them edges that lie on a cut are not lost. ViT's is 0.
    margin: int = 0
    # ViT reads the class off an extra first position.
    class_token: bool = True
    learned_positions: bool = True
    dropout: float = 0.0

    def __post_init__(self) -> None:
        self._at_least(1, "height", "width", "n_channels", "patch")
        self._at_least(0, "margin")
        self._share("dropout")
        for name in ("height", "width"):
            require(
                getattr(self, name) % self.patch == 0,
                f"patches.{name} is {getattr(self, name)}, which patch {self.patch} does not divide.",
                f"Choose a multiple of {self.patch}, or another patch size.",
            )
        require(
            self.margin <= self.patch,
            f"patches.margin is {self.margin}, but a patch has only {self.patch} × {self.patch} pixels.",
            f"Choose {self.patch} or less, so that a patch sees no farther than its neighbours.",
        )

    @property
    def n_patches(self) -> int:
        return (self.height // self.patch) * (self.width // self.patch)


@dataclass(frozen=True, kw_only=True)
class VectorsSettings(Settings):
    """Any series of vectors, projected to the model's width."""

    kind: Literal["vectors"] = "vectors"
    n_features: int = 13
    positions: Positions | None = field(default_factory=SinusoidalSettings)
    dropout: float = 0.1

    def __post_init__(self) -> None:
        self._at_least(1, "n_features")
        self._share("dropout")


FrontEnd = TokensSettings | FramesSettings | PatchesSettings | VectorsSettings
