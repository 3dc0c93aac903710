"""One dial for the dropout of a whole model, new or trained."""

from collections.abc import Mapping
from typing import Any, TypeVar

from glassformer import config
from glassformer.errors import require
from glassformer.model import Transformer
from glassformer.model.rehead import with_settings
from glassformer.model.settings import ModelSettings

PARTS = ("source", "target", "encoder", "decoder")
M = TypeVar("M", bound=Transformer)


def check_dropout(dropout: float | None) -> None:
    """Refuse a rate that is none."""
    require(dropout is None or 0 <= dropout < 1, f"dropout is {dropout}.", "Set it to 0 or more and below 1.")


def dropping(data: Mapping[str, Any], dropout: float | None) -> dict[str, Any]:
    """A model's settings as plain data, with this dropout in its front-ends and stacks; None leaves them."""
    changes = {} if dropout is None else {part: {"dropout": dropout} for part in PARTS if part in data}
    return config.merge(data, changes)


def with_dropout(model: M, dropout: float | None) -> M:
    """The trained model, all its weights as they were."""
    if dropout is None:
        return model
    data = dropping(config.to_data(model.settings), dropout)
    settings: ModelSettings = config.parse(ModelSettings, data, "The model to start from")
    made = with_settings(model, settings, kept=("head.",))
    assert isinstance(made, type(model))
    return made
