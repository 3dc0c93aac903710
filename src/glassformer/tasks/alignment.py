"""Which source token each target token looked at, read off the cross-attention."""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from glassformer.data.tokenizer import END, START
from glassformer.model import EncoderDecoder, attention


def align(model: EncoderDecoder, source: list[int], target: list[int]) -> list[int]:
    """For each target token the place of the source token that it looked at most."""
    if not source or not target:
        return [0] * len(target)
    # The end token stands for "nothing" and gets no words.
    chosen: list[int] = cross_weights(model, source, target)[:, : len(source)].argmax(dim=1).tolist()
    return chosen


@torch.inference_mode()
def cross_weights(model: EncoderDecoder, source: list[int], target: list[int]) -> Tensor:
    """The mean over all layers and heads of the weights with which each target token was chosen."""
    with watching_cross(model) as weights:
        device = next(model.parameters()).device
        model(torch.tensor([[*source, END]], device=device), torch.tensor([[START, *target[:-1]]], device=device))
    return torch.stack(weights).mean(dim=0)[0]  # (n, m), row i is the state that chose target i


@contextlib.contextmanager
def watching_cross(model: EncoderDecoder) -> Iterator[list[Tensor]]:
    """What each layer's cross-attention weighs while the model runs, as the mean over its heads (b, n, m)."""
    weights: list[Tensor] = []

    def watch(_: nn.Module, inputs: tuple[Tensor, ...], __: Tensor) -> None:
        weights.append(attention(*inputs[:3])[1].mean(dim=1))  # (b, n, m)

    cores = [block.cross_attention.core for block in model.decoder.blocks]  # type: ignore[union-attr]
    hooks = [core.register_forward_hook(watch) for core in cores]  # type: ignore[union-attr]
    try:
        yield weights
    finally:
        for hook in hooks:
            hook.remove()
