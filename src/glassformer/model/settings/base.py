"""What all settings share."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from glassformer.errors import require

Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "tanh"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Common ground of all settings: unknown keys are refused."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    def _at_least(self, least: float, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            require(
                value >= least,
                f"{name} is {value}, but it must be at least {least}.",
                f"Set {name} to {least} or more.",
            )

    def _share(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            require(0 <= value < 1, f"{name} is {value}, but it is a share.", f"Set {name} to 0 or more and below 1.")
