"""The top of the ladder: our own decoder, first one layer with one head, then all of it. Nothing is built anew here.

n words of a window, h heads, l layers
"""

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from glassformer.errors import UserError
from glassformer.ladder.learned import LearnedRung
from glassformer.model import DecoderOnly, ScaledDotProduct, attention, build
from glassformer.model.settings import DecoderOnlySettings
from glassformer.sizes import load_size


class TransformerRung(LearnedRung):
    """A decoder of given settings; it shows where its last position looks, on the mean of all heads of all layers."""

    how = "attention"

    @abstractmethod
    def settings_for(self, n_ids: int) -> DecoderOnlySettings:
        """What the decoder of so many ids is."""

    def build(self, n_words: int) -> nn.Module:
        return build(self.settings_for(n_words + 1))

    def weigh(self, ids: Tensor) -> Tensor:
        return self.attention_weights(ids).mean(dim=(0, 1))  # (n)

    @torch.no_grad()
    def attention_weights(self, ids: Tensor) -> Tensor:
        """Where the last of the ids looks, for each layer and head: (l, h, n)."""
        model = self.network
        assert isinstance(model, DecoderOnly)
        found: list[Tensor] = []

        def see(_: nn.Module, given: tuple[Tensor, ...]) -> None:
            q, k, v = given[:3]
            k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], dim=1) for t in (k, v))  # heads may share keys
            found.append(attention(q[:, :, -1:], k, v)[1][0, :, 0])  # the last position may look at all

        cores = [module for module in model.modules() if isinstance(module, ScaledDotProduct)]
        hooks = [core.register_forward_pre_hook(see) for core in cores]
        try:
            model(ids[None])
        finally:
            for hook in hooks:
                hook.remove()
        return torch.stack(found)


@dataclass(eq=False)
class OneLayerTransformer(TransformerRung):
    """The block of the full model, once, with one head."""

    width: int = 64

    name = "one layer, one head"

    def settings_for(self, n_ids: int) -> DecoderOnlySettings:
        one = ["n_layers=1", "attention.n_heads=1", f"d_model={self.width}", f"feed_forward.d_ff={3 * self.width}"]
        return with_words(load_decoder("complete-tiny", [f"decoder.{change}" for change in one]), n_ids)


@dataclass(eq=False)
class FullTransformer(TransformerRung):
    """A ready-made size by name, without dropout (a fit of minutes does not over-learn), or settings as they are."""

    size: str | DecoderOnlySettings = "complete-tiny"

    name = "Transformer"

    def settings_for(self, n_ids: int) -> DecoderOnlySettings:
        return with_words(load_decoder(self.size) if isinstance(self.size, str) else self.size, n_ids)


def load_decoder(size: str, changes: Iterable[str] = ()) -> DecoderOnlySettings:
    settings = load_size(size, ["source.dropout=0.0", "decoder.dropout=0.0", *changes])
    if not isinstance(settings, DecoderOnlySettings):
        raise UserError(f"The size {size} is no decoder, and cannot complete.", "Choose one such as complete-tiny.")
    return settings


def with_words(settings: DecoderOnlySettings, n_ids: int) -> DecoderOnlySettings:
    return replace(settings, source=replace(settings.source, vocab_size=n_ids))
