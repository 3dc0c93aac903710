"""Cross-attention read as a word alignment: which source token each target token was made from."""

from torch import Tensor

from glassformer.look.readings.attention_maps import attention_maps, mean_map
from glassformer.look.trace import Trace


def cross_map(seen: Trace, layer: int | None = None, head: int | None = None, row: int = 0) -> Tensor:
    """The weights of one layer and head, or the mean over those that are not named."""
    maps = attention_maps(seen, "decoder", "cross", row)
    maps = maps if layer is None else maps[layer : layer + 1]
    return mean_map(maps if head is None else maps[:, head : head + 1])  # (n, m)


def word_alignment(weights: Tensor, n_source: int) -> list[int]:
    """For each target position the source token that it looks at most; what follows the source counts as nothing."""
    best: list[int] = weights[:, :n_source].argmax(dim=1).tolist()
    return best
