"""Made-up inputs for any model, from all over what it can read, always the same.

b rows, m length of the source, n length of the target
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly, Transformer
from glassformer.model.masks import lengths_to_keep
from glassformer.model.settings import FrontEnd, LearnedSettings, PatchesSettings, TokensSettings

SHARES = (1.0, 0.6, 0.3, 0.0)  # of the longest length that the rows have; one position at least
LONGEST, SHORTENED = 24, 8  # positions; frames that become one at most


@dataclass(frozen=True)
class Sample:
    """Rows of different lengths as a model reads them; pictures all have the same, and no target."""

    source: Tensor  # (b, m), (b, m, features) or (b, channels, height, width)
    source_lengths: Tensor | None
    target: Tensor | None = None  # (b, n)
    on_the_left: bool = False  # where the padding is: a decoder alone would not see it on the right

    @property
    def keep(self) -> Tensor | None:
        if self.source_lengths is None:
            return None
        keep = lengths_to_keep(self.source_lengths, self.source.shape[1])
        return keep.flip(1) if self.on_the_left else keep

    @property
    def target_lengths(self) -> Tensor:
        """The longest target has the shortest source."""
        assert self.target is not None
        return _lengths(self.target.shape[1]).flip(0)

    def row(self, i: int) -> "Sample":
        """One row alone, without padding."""
        source, keep = self.source[i : i + 1], self.keep
        source = source if keep is None else source[:, keep[i]]
        return Sample(source, None, None if self.target is None else self.target[i : i + 1, : self.target_lengths[i]])


def make_sample(model: Transformer) -> Sample:
    chance = torch.Generator().manual_seed(1)
    settings = model.settings
    if isinstance(settings.source, PatchesSettings):
        s = settings.source
        return Sample(torch.randn(2, s.n_channels, s.height, s.width, generator=chance), None)
    lengths = _lengths(_longest(settings.source))
    source = _rows(settings.source, int(lengths[0]), chance)
    if not isinstance(model, EncoderDecoder):
        return Sample(source, lengths, on_the_left=isinstance(model, DecoderOnly))
    return Sample(source, lengths, _rows(model.settings.target, _longest(model.settings.target), chance))


def run(model: Transformer, sample: Sample) -> Tensor:
    """What the model says of all rows at once."""
    if isinstance(model, EncoderDecoder):
        assert sample.target is not None
        padded = (
            None if sample.source_lengths is None else lengths_to_keep(sample.target_lengths, sample.target.shape[1])
        )
        out: Tensor = model(sample.source, sample.target, sample.keep, padded)
        return out
    assert isinstance(model, (DecoderOnly, EncoderOnly))
    said: Tensor = model(sample.source, sample.keep)
    return said


def _lengths(longest: int) -> Tensor:
    return torch.tensor([max(1, round(share * longest)) for share in SHARES])


def _longest(source: FrontEnd) -> int:
    """Positions that a row may have; sound is shortened before it gets them."""
    positions = getattr(source, "positions", None)
    most = min(LONGEST, positions.max_len) if isinstance(positions, LearnedSettings) else LONGEST
    return most if isinstance(source, TokensSettings) else most * SHORTENED if most == LONGEST else most


def _rows(source: FrontEnd, n: int, chance: torch.Generator) -> Tensor:
    if isinstance(source, TokensSettings):
        return torch.randint(source.vocab_size, (len(SHARES), n), generator=chance)
    assert not isinstance(source, PatchesSettings)
    return torch.randn(len(SHARES), n, source.n_features, generator=chance)
