"""Which source token each target token looked at, read off the cross-attention."""

import torch
from torch import Tensor, nn

from glassformer.data.tokenizer import END, START
from glassformer.model import EncoderDecoder, attention


@torch.inference_mode()
def align(model: EncoderDecoder, source: list[int], target: list[int]) -> list[int]:
    """For each target token the place of the source token with the greatest weight, over all layers and heads."""
    if not source or not target:
        return [0] * len(target)
    weights: list[Tensor] = []

    def watch(_: nn.Module, inputs: tuple[Tensor, ...], __: Tensor) -> None:
        weights.append(attention(*inputs[:3])[1].mean(dim=1))  # (1, n, m)

    cores = [block.cross_attention.core for block in model.decoder.blocks]  # type: ignore[union-attr]
    hooks = [core.register_forward_hook(watch) for core in cores]  # type: ignore[union-attr]
    try:
        model(torch.tensor([[*source, END]]), torch.tensor([[START, *target]]))
    finally:
        for hook in hooks:
            hook.remove()
    mean = torch.stack(weights).mean(dim=0)[0]  # (n, m)
    # Row i is the state that chose target i; the end token stands for "nothing" and gets no words.
    chosen: list[int] = mean[: len(target), : len(source)].argmax(dim=1).tolist()
    return chosen
