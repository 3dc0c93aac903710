"""The CTC head hears each position of the source; without it a model is as it was."""

import torch

from glassformer.model import build, count_parameters
from glassformer.model.settings import EncoderDecoderSettings, FramesSettings, TokenHeadSettings
from tests.builders import stack, tokens


def settings(ctc: TokenHeadSettings | None) -> EncoderDecoderSettings:
    return EncoderDecoderSettings(
        source=FramesSettings(n_features=6, strides=(2, 2)),
        target=tokens(),
        encoder=stack(),
        decoder=stack(),
        ctc=ctc,
        tie_source_target=False,
    )


def test_one_score_a_token_and_position() -> None:
    with_ctc, without = build(settings(TokenHeadSettings(bias=True))), build(settings(None))
    n, d = with_ctc.settings.target.vocab_size, with_ctc.settings.encoder.d_model
    assert without.ctc is None
    assert count_parameters(with_ctc) - count_parameters(without) == n * d + n
    memory = with_ctc.encode(torch.randn(2, 9, 6))
    assert with_ctc.ctc(memory.x).shape == (2, 3, n)
