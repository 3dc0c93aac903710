"""A trained model for pictures reads pictures of another size: its learned positions are interpolated."""

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from glassformer.model.build import build
from glassformer.model.settings import PatchesSettings
from glassformer.model.transformer import EncoderOnly


@torch.no_grad()
def at_size(model: EncoderOnly, height: int, width: int) -> EncoderOnly:
    """The same model for pictures of that size; itself, where it is for them already."""
    old = model.settings.source
    assert isinstance(old, PatchesSettings)
    if (old.height, old.width) == (height, width):
        return model
    new = replace(old, height=height, width=width)
    made = build(replace(model.settings, source=new))
    assert isinstance(made, EncoderOnly)
    known = dict(model.named_parameters())
    for name, parameter in made.named_parameters():
        parameter.copy_(interpolated(known[name], old, new) if name == "source.positions" else known[name])
    made.train(model.training)
    return made.to(next(model.parameters()).device)


def interpolated(positions: Tensor, old: PatchesSettings, new: PatchesSettings) -> Tensor:
    """The grid of positions (n, d) on a finer or coarser one, as Hugging Face's ViT does it; a class token has none."""
    first, grid = positions[: int(old.class_token)], positions[int(old.class_token) :]
    rows, columns = old.height // old.patch, old.width // old.patch
    size = (new.height // new.patch, new.width // new.patch)
    square = grid.view(1, rows, columns, -1).permute(0, 3, 1, 2)  # (1, d, rows, columns)
    finer = F.interpolate(square, size=size, mode="bicubic", align_corners=False)
    return torch.cat([first, finer.permute(0, 2, 3, 1).reshape(size[0] * size[1], -1)])
