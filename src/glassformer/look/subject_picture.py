"""A picture as a model sees it: positions are patches."""

from collections.abc import Sequence

import torch
from torch import Tensor

from glassformer.look.subject import Subject, check_length
from glassformer.model import EncoderOnly
from glassformer.model.settings import PatchesSettings


@torch.inference_mode()
def picture(model: EncoderOnly, pixels: Tensor, classes: Sequence[str], text: str) -> Subject:
    """One picture (channels, height, width), made ready as in training, and the names of the model's classes."""
    settings = model.settings.source
    assert isinstance(settings, PatchesSettings)
    rows, columns = settings.height // settings.patch, settings.width // settings.patch
    check_length(rows * columns + settings.class_token)
    given = pixels[None].to(next(model.parameters()).device)
    answer = int(model(given)[0].argmax())
    places = [f"row {i}, column {j}" for i in range(rows) for j in range(columns)]
    return Subject(
        text=text,
        inputs=(given,),
        source=(["class token"] if settings.class_token else []) + places,
        target=[],
        answer=classes[answer],
        answers=[answer],
        name=lambda i: classes[i],
        sense={"kind": "picture", "rows": rows, "columns": columns, "extra": int(settings.class_token)},
    )
