"""What a model is, as data: frozen dataclasses, closed unions, every default with its reason.

Each class checks what only it can know (`__post_init__`); types and unknown keys are checked at the edge by
`glassformer.config`. Deliberately not here: names of ready-made models (`glassformer.sizes`), and training.
"""

from glassformer.model.settings.base import Activation, Settings
from glassformer.model.settings.heads import (
    ClassHeadSettings,
    EmbeddingHeadSettings,
    Head,
    Pooling,
    RegressionHeadSettings,
    TokenHeadSettings,
)
from glassformer.model.settings.inputs import (
    FramesSettings,
    FrontEnd,
    LearnedSettings,
    PatchesSettings,
    Positions,
    SinusoidalSettings,
    TokensSettings,
    VectorsSettings,
)
from glassformer.model.settings.shapes import (
    DecoderOnlySettings,
    EncoderDecoderSettings,
    EncoderOnlySettings,
    ModelSettings,
)
from glassformer.model.settings.stack import (
    AttentionSettings,
    ConvolutionSettings,
    FeedForwardSettings,
    NormSettings,
    RotaryScaling,
    RotarySettings,
    StackSettings,
)

__all__ = [
    "Activation",
    "AttentionSettings",
    "ClassHeadSettings",
    "ConvolutionSettings",
    "DecoderOnlySettings",
    "EmbeddingHeadSettings",
    "EncoderDecoderSettings",
    "EncoderOnlySettings",
    "FeedForwardSettings",
    "FramesSettings",
    "FrontEnd",
    "Head",
    "LearnedSettings",
    "ModelSettings",
    "NormSettings",
    "PatchesSettings",
    "Pooling",
    "Positions",
    "RegressionHeadSettings",
    "RotaryScaling",
    "RotarySettings",
    "Settings",
    "SinusoidalSettings",
    "StackSettings",
    "TokenHeadSettings",
    "TokensSettings",
    "VectorsSettings",
]
