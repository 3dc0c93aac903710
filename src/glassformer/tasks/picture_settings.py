"""How pictures are read and changed in training, as settings; and what a model must remember of it."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from glassformer import config
from glassformer.data.picture_augment import Strength
from glassformer.data.picture_file import Fit, Frame, Resample
from glassformer.data.pictures import BYTES, Span
from glassformer.errors import require
from glassformer.model.settings import PatchesSettings, Settings
from glassformer.tasks.model_dir import LoadedModel


@dataclass(frozen=True, kw_only=True)
class PictureSettings(Settings):
    # Height and width that all are brought to; None: the commonest, at most 128 pixels, or what `start` reads.
    size: tuple[int, int] | None = None
    # 1 is grey, 3 is colour; None: colour if any picture has it.
    channels: Literal[1, 3] | None = None
    # Another shape is cropped around the middle, stretched, or padded with white.
    fit: Fit = "crop"
    resample: Resample = "bilinear"
    # off; light: moved about; strong: also turned, sheared, zoomed, lit, hidden in part.
    augment: Strength = "light"
    # How far they are moved about, as a share of a side; small models do not bear more than the tenth.
    shift: float = 0.1
    # Mirrored left to right; None: only pictures in colour, since grey ones are often writing.
    flip: bool | None = None
    # Blends pictures and labels in pairs; 0.2 is usual for long trainings.
    mixup: float = 0.0

    def __post_init__(self) -> None:
        self._at_least(0, "mixup")
        self._share("shift")
        require(
            self.size is None or min(self.size) >= 1,
            f"pictures.size is {self.size}.",
            "Give height and width in pixels.",
        )


@dataclass(frozen=True)
class PictureUse:
    """What settings.json says of pictures, so that they are read as in training."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    mean: tuple[float, ...]
    std: tuple[float, ...]
    resample: Resample = "bilinear"
    fit: Fit = "stretch"  # which is what imported models want
    span: Span = BYTES  # what is black and white in arrays

    def frame(self, source: PatchesSettings) -> Frame:
        return Frame(source.height, source.width, source.n_channels, self.fit, self.resample)


def use_of(loaded: LoadedModel) -> tuple[PatchesSettings, PictureUse]:
    """How a trained model reads pictures; one that reads none is refused."""
    source: Any = getattr(loaded.model.settings, "source", None)
    require(
        isinstance(source, PatchesSettings),
        f"{loaded.path} reads {getattr(source, 'kind', 'text')}, not pictures.",
        "Use a model for pictures.",
    )
    about = loaded.about.get("pictures", {"mean": [0.5] * source.n_channels, "std": [0.5] * source.n_channels})
    use: PictureUse = config.parse(PictureUse, about, f"{loaded.path / 'settings.json'}")
    sound = len(use.mean) == len(use.std) == source.n_channels and min(use.std) > 0
    require(sound, f"{loaded.path / 'settings.json'} has no mean and std for each colour.", "Train the model again.")
    return source, use
