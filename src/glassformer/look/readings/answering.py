"""Where the answer of a model is made: the stack before its head, and the front-end before that."""

from dataclasses import dataclass

from torch import nn

from glassformer.model import DecoderOnly, EncoderDecoder, Transformer
from glassformer.model.stack import Stack


@dataclass(frozen=True)
class Answering:
    stack_name: str
    stack: Stack
    front_end_name: str
    front_end: nn.Module


def answering(model: Transformer) -> Answering:
    """The last stack and what feeds it."""
    match model:
        case EncoderDecoder():
            return Answering("decoder", model.decoder, "target", model.target)
        case DecoderOnly():
            return Answering("decoder", model.decoder, "source", model.source)
        case _:
            return Answering("encoder", model.encoder, "source", model.source)
