"""The Transformer, one idea a file. Nothing here imports anything but torch and the standard library."""

from glassformer.model.attention import MultiHeadAttention, ScaledDotProduct, attention
from glassformer.model.build import build, build_empty, count_parameters
from glassformer.model.cache import Cache
from glassformer.model.device import choose_device
from glassformer.model.transformer import DecoderOnly, EncoderDecoder, EncoderOnly, Memory, Transformer

__all__ = [
    "Cache",
    "DecoderOnly",
    "EncoderDecoder",
    "EncoderOnly",
    "Memory",
    "MultiHeadAttention",
    "ScaledDotProduct",
    "Transformer",
    "attention",
    "build",
    "build_empty",
    "choose_device",
    "count_parameters",
]
