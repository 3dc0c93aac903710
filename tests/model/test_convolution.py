"""The convolution of an encoder that listens: by the textbook, and blind to padding."""

import pytest
import torch

from glassformer import config
from glassformer.errors import UserError
from glassformer.model.layers import Convolution
from glassformer.model.settings import ConvolutionSettings, ModelSettings, NormSettings
from tests.builders import FRONT_ENDS, decoder_only, encoder_decoder, encoder_only, listening, random_input, stack


@pytest.mark.parametrize("width", [1, 3, 7])
def test_by_the_textbook(width: int) -> None:
    torch.manual_seed(1)
    d, n = 6, 4
    layer = Convolution(ConvolutionSettings(width=width), NormSettings(), d).double()
    x = torch.randn(1, n, d, dtype=torch.double)
    wide = layer.w_in(x[0])
    gated = wide[:, :d] * torch.sigmoid(wide[:, d:])
    rows = []
    for i in range(n):
        mixed = layer.filters.bias.clone()  # type: ignore[union-attr]
        for j in range(width):
            place = i + j - width // 2
            if 0 <= place < n:
                mixed = mixed + layer.filters.weight[:, 0, j] * gated[place]
        even = (mixed - mixed.mean()) / (mixed.var(unbiased=False) + 1e-5).sqrt()
        rows.append(layer.w_out(even * torch.sigmoid(even)))
    assert torch.allclose(layer(x)[0], torch.stack(rows), atol=1e-12)


@pytest.mark.parametrize("noise", [0.0, 1e3])
def test_padding_is_not_heard(noise: float) -> None:
    model = listening().double()
    frames = random_input("frames", 1, 9).double()
    padded = torch.cat([frames, noise * torch.ones(1, 6, frames.shape[2], dtype=torch.double)], dim=1)
    keep = torch.tensor([[True] * 9 + [False] * 6])
    alone, together = model.encode(frames), model.encode(padded, keep)
    assert torch.allclose(alone.x, together.x[:, : alone.x.shape[1]], atol=1e-10)


def test_neighbours_are_heard() -> None:
    """Without attention, what is changed at one place is heard as far as the filters of all layers reach."""
    model = listening(width=5).double()
    for block in model.encoder.blocks:
        block.self_attention.w_o.weight.data.zero_()  # type: ignore[union-attr, operator]
    x = torch.randn(1, 30, model.settings.encoder.d_model, dtype=torch.double)
    changed = x.clone()
    changed[0, 15, 0] += 1
    differs = (model.encoder(x) - model.encoder(changed)).abs().amax(-1)[0] > 1e-9
    assert differs.nonzero()[:, 0].tolist() == list(range(11, 20))  # two layers, two positions each way


def test_settings_come_back() -> None:
    settings = listening().settings
    assert config.parse(ModelSettings, config.to_data(settings), "The model") == settings


def test_only_where_sound_is_transcribed() -> None:
    local = stack(convolution=ConvolutionSettings())
    for elsewhere in (
        lambda: decoder_only(decoder=local),
        lambda: encoder_only(encoder=local),
        lambda: encoder_decoder(encoder=local),
        lambda: encoder_decoder(source=FRONT_ENDS["frames"], decoder=local, tie_source_target=False),
    ):
        with pytest.raises(UserError, match="nowhere else"):
            elsewhere()


@pytest.mark.parametrize("width", [0, 4, -3])
def test_a_filter_has_a_middle(width: int) -> None:
    with pytest.raises(UserError, match="either side"):
        ConvolutionSettings(width=width)
