"""Attention over what has no words: on a picture's patches, and along a recording's frames.

n positions of the model, t frames
"""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from glassformer.model.settings import FramesSettings, PatchesSettings


@dataclass(frozen=True)
class PatchView:
    """Weights as they lie on the picture (…, rows, columns), and what the class token got (…), if there is one."""

    grid: Tensor
    class_token: Tensor | None


def on_patches(weights: Tensor, settings: PatchesSettings) -> PatchView:
    """The last dimension of some weights (…, positions) laid out as the picture was cut."""
    rows, columns = settings.height // settings.patch, settings.width // settings.patch
    extra = int(settings.class_token)
    assert weights.shape[-1] == rows * columns + extra
    grid = weights[..., extra:].reshape(*weights.shape[:-1], rows, columns)
    return PatchView(grid, weights[..., 0] if extra else None)


def over_picture(grid: Tensor, settings: PatchesSettings) -> Tensor:
    """The grid with each patch's value at all its pixels (…, height, width)."""
    return grid.repeat_interleave(settings.patch, dim=-2).repeat_interleave(settings.patch, dim=-1)


def patch_pixels(picture: Tensor, settings: PatchesSettings) -> Tensor:
    """A picture (channels, height, width) as its patches (patches, channels, patch, patch), row by row."""
    p = settings.patch
    cut = picture.unfold(1, p, p).unfold(2, p, p)  # (channels, rows, columns, p, p)
    return cut.flatten(1, 2).transpose(0, 1)


def frame_spans(settings: FramesSettings, n_frames: int) -> list[tuple[int, int]]:
    """For each position of the model the frames [begin, end) that it was made from."""
    lengths = [n_frames]
    for stride in settings.strides:
        lengths.append(-(-lengths[-1] // stride))
    return [_span(settings.strides, lengths, i) for i in range(lengths[-1])]


def _span(strides: tuple[int, ...], lengths: list[int], i: int) -> tuple[int, int]:
    """Back through the convolutions, each of which reaches one of its inputs to each side."""
    first = last = i
    for stride, length in zip(reversed(strides), reversed(lengths[:-1]), strict=True):
        first, last = max(0, first * stride - 1), min(length - 1, last * stride + 1)
    return first, last + 1


def along_frames(weights: Tensor, settings: FramesSettings, n_frames: int) -> Tensor:
    """Weights over positions (…, n) as a curve over frames (…, t), each share on the frames at its place."""
    step = 1
    for stride in settings.strides:
        step *= stride
    spread = weights.repeat_interleave(step, dim=-1) / step
    kept = spread[..., :n_frames]
    missing = n_frames - kept.shape[-1]
    kept = F.pad(kept, (0, max(0, missing)))
    return kept / kept.sum(dim=-1, keepdim=True).clamp(min=1e-12) * weights.sum(dim=-1, keepdim=True)
