"""Settings into a module with sensible first weights."""

import math
from typing import Any, assert_never

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from glassformer.model.inputs import Patches, Tokens
from glassformer.model.positions import LearnedPositions
from glassformer.model.settings import (
    DecoderOnlySettings,
    EncoderDecoderSettings,
    EncoderOnlySettings,
    ModelSettings,
)
from glassformer.model.stack import Stack
from glassformer.model.transformer import DecoderOnly, EncoderDecoder, EncoderOnly, Transformer


def build(settings: ModelSettings) -> Transformer:
    """A new model, ready to train; seed torch before for the same weights again."""
    model = _make(settings)
    initialise(model, settings.init_std)
    return model


def build_empty(settings: ModelSettings) -> Transformer:
    """The same without memory for weights: to count parameters, or to be filled from a file."""
    with torch.device("meta"), _Unfilled():
        return _make(settings)


def _make(settings: ModelSettings) -> Transformer:
    match settings:
        case EncoderDecoderSettings():
            return EncoderDecoder(settings)
        case DecoderOnlySettings():
            return DecoderOnly(settings)
        case EncoderOnlySettings():
            return EncoderOnly(settings)
        case _:
            assert_never(settings)


class _Unfilled(TorchFunctionMode):
    """Leaves out the first weights of torch's modules: without memory they are nothing, yet need torch's compiler."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        return kwargs["tensor"] if getattr(func, "__module__", None) == "torch.nn.init" else func(*args, **kwargs)


def count_parameters(model: nn.Module) -> int:
    """Shared weights count once."""
    return sum(p.numel() for p in model.parameters())


@torch.no_grad()
def initialise(model: nn.Module, std: float | None = None) -> None:
    """Xavier, or normal with the given deviation and quieter ends of residual branches (GPT-2's way)."""
    for module in model.modules():
        match module:
            case nn.Linear() | nn.Conv1d() | nn.Conv2d():
                nn.init.xavier_uniform_(module.weight) if std is None else nn.init.normal_(module.weight, std=std)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            case LearnedPositions():
                nn.init.normal_(module.table, std=0.02)
            case Patches() if module.positions is not None:
                nn.init.normal_(module.positions, std=0.02)
    if std is not None:
        for stack in (m for m in model.modules() if isinstance(m, Stack)):
            _quieten(stack, std)
    for tokens in (m for m in model.modules() if isinstance(m, Tokens)):  # last: a tied head takes the table's weights
        width = tokens.embedding.embedding_dim
        for table in (tokens.embedding, tokens.types):
            if table is not None:
                nn.init.normal_(table.weight, std=width**-0.5 if std is None else std)


def _quieten(stack: Stack, std: float) -> None:
    # All branches of all layers add up in the stream; this keeps its size in the beginning.
    quiet = std / math.sqrt((2 if stack.d_memory is None else 3) * max(1, len(stack.blocks)))
    for name, weight in stack.named_parameters():
        if name.endswith(("attention.w_o.weight", "feed_forward.w_2.weight")):
            nn.init.normal_(weight, std=quiet)
