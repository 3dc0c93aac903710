"""A trained body under another head."""

import torch

from glassformer.errors import require
from glassformer.model.build import build
from glassformer.model.settings import ModelSettings
from glassformer.model.transformer import Transformer


@torch.no_grad()
def with_settings(model: Transformer, settings: ModelSettings, kept: tuple[str, ...] = ()) -> Transformer:
    """The model's weights in a new model of these settings; its head is new, but for what begins with `kept`."""
    made = build(settings)
    known = dict(model.named_parameters())
    for name, parameter in made.named_parameters():
        if name.startswith("head.") and not name.startswith(kept or ("\0",)):
            continue
        require(
            name in known and known[name].shape == parameter.shape,
            f"The two models differ in {name}, but only their heads may.",
            "Use the model that the settings were made for.",
        )
        parameter.copy_(known[name])
    return made.to(next(model.parameters()).device)
