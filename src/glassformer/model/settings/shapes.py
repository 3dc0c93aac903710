"""The three shapes, and what their parts must agree on."""

import math
from dataclasses import dataclass, field
from typing import Literal

from glassformer.errors import require
from glassformer.model.settings.base import Settings
from glassformer.model.settings.heads import Head, TokenHeadSettings
from glassformer.model.settings.inputs import FramesSettings, FrontEnd, TokensSettings
from glassformer.model.settings.stack import StackSettings


@dataclass(frozen=True, kw_only=True)
class EncoderDecoderSettings(Settings):
    """Sequence to sequence: translation, transcription."""

    kind: Literal["encoder_decoder"] = "encoder_decoder"
    source: FrontEnd = field(default_factory=TokensSettings)
    target: TokensSettings = field(default_factory=TokensSettings)
    encoder: StackSettings = field(default_factory=StackSettings)
    decoder: StackSettings = field(default_factory=StackSettings)
    head: TokenHeadSettings = field(default_factory=TokenHeadSettings)
    # A second head, on the encoder: a token or nothing (token 0) at each of its positions. CTC training of it makes
    # speech models find what is said where much sooner than attention alone.
    ctc: TokenHeadSettings | None = None
    tie_source_target: bool = True
    tie_output: bool = True
    # None: Xavier, which suits the paper's shape; a number: normal with this deviation, as GPT and BERT do.
    init_std: float | None = None

    def __post_init__(self) -> None:
        _check_init(self.init_std)
        _check_convolution(self.decoder)
        if not isinstance(self.source, FramesSettings):
            _check_convolution(self.encoder)
        if not self.tie_source_target:
            return
        source, target = self.source, self.target
        require(
            isinstance(source, TokensSettings),
            f"tie_source_target is true, but the source is {source.kind}, which has no table of words.",
            "Set tie_source_target = false.",
        )
        assert isinstance(source, TokensSettings)
        require(
            source.vocab_size == target.vocab_size and self.encoder.d_model == self.decoder.d_model,
            "tie_source_target is true, but source and target tables differ: "
            f"{source.vocab_size} x {self.encoder.d_model} and {target.vocab_size} x {self.decoder.d_model}.",
            "Set tie_source_target = false, or give both the same vocab_size and d_model.",
        )


@dataclass(frozen=True, kw_only=True)
class DecoderOnlySettings(Settings):
    """Completion: each position sees the earlier ones only (GPT)."""

    kind: Literal["decoder_only"] = "decoder_only"
    source: TokensSettings = field(default_factory=TokensSettings)
    decoder: StackSettings = field(default_factory=StackSettings)
    head: Head = field(default_factory=TokenHeadSettings)
    tie_output: bool = True
    init_std: float | None = 0.02

    def __post_init__(self) -> None:
        _check_init(self.init_std)
        _check_convolution(self.decoder)
        _check_tie(self.tie_output, self.source, self.head)


@dataclass(frozen=True, kw_only=True)
class EncoderOnlySettings(Settings):
    """Representation: each position sees all others (BERT, ViT)."""

    kind: Literal["encoder_only"] = "encoder_only"
    source: FrontEnd = field(default_factory=TokensSettings)
    encoder: StackSettings = field(default_factory=StackSettings)
    head: Head = field(default_factory=TokenHeadSettings)
    tie_output: bool = False
    init_std: float | None = 0.02

    def __post_init__(self) -> None:
        _check_init(self.init_std)
        _check_convolution(self.encoder)
        _check_tie(self.tie_output, self.source, self.head)
        require(
            isinstance(self.source, TokensSettings) or not isinstance(self.head, TokenHeadSettings),
            f"The head scores tokens, but the source is {self.source.kind}, which has no vocabulary.",
            'Set head.kind to "class", "regression" or "embedding".',
        )


def _check_init(std: float | None) -> None:
    require(
        std is None or 0 < std < math.inf,
        f"init_std is {std}, but it must be above 0.",
        "The usual value is 0.02; none is Xavier.",
    )


def _check_convolution(stack: StackSettings) -> None:
    require(
        stack.convolution is None,
        "A convolution stands between the layers of an encoder that transcribes sound, and nowhere else.",
        "Leave convolution out.",
    )


def _check_tie(tie_output: bool, source: FrontEnd, head: Head) -> None:
    require(
        not tie_output or (isinstance(source, TokensSettings) and isinstance(head, TokenHeadSettings)),
        f"tie_output is true, but there is no table to share between a {source.kind} source and a {head.kind} head.",
        "Set tie_output = false.",
    )


ModelSettings = EncoderDecoderSettings | DecoderOnlySettings | EncoderOnlySettings
