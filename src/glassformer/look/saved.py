"""A run's model as it was when some of its weights were saved."""

import copy
import json
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from glassformer import config
from glassformer.model import Transformer
from glassformer.model.lora import add_lora, merge_lora
from glassformer.model.rehead import with_settings
from glassformer.tasks.built_in import find_model
from glassformer.tasks.model_dir import Adapter, LoadedModel, load_model


class SavedStates:
    """Gives the model of a finished run in its earlier states; what was frozen is as in the end."""

    def __init__(self, loaded: LoadedModel) -> None:
        self.model, self.is_adapted = loaded.model, loaded.is_adapted
        if self.is_adapted:
            self.model = _with_detours(loaded.path, loaded.model)

    @torch.no_grad()
    def at(self, tensors: Mapping[str, Tensor]) -> Transformer:
        model = copy.deepcopy(self.model)
        for name, parameter in model.named_parameters():
            if name in tensors:
                parameter.copy_(tensors[name])
        if self.is_adapted:
            merge_lora(model)
        return model.eval()


@torch.no_grad()
def _with_detours(folder: Path, finished: Transformer) -> Transformer:
    """The model that an adapter was trained beside, with detours that are not yet merged."""
    path = folder / "settings.json"
    data = json.loads(path.read_text(encoding="utf-8"))["adapter"]
    adapter: Adapter = config.parse(Adapter, data, str(path))
    model = load_model(find_model(adapter.base)).model
    if model.settings != finished.settings:
        model = with_settings(model, finished.settings)
    add_lora(model, adapter.lora)
    return model
