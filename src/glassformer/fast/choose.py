"""Which engine runs a model: the fastest that can, unless one is named; the name of what is given says which it is."""

from collections.abc import Sequence
from typing import Literal

import torch

from glassformer.decode.options import DecodeOptions
from glassformer.errors import UserError, require
from glassformer.fast.ctranslate2 import CTranslate2Backend
from glassformer.fast.ctranslate2_spec import cannot_run
from glassformer.fast.int8 import can_run_int8, quantise_int8
from glassformer.fast.native import why_no_native
from glassformer.fast.native_stack import run_natively
from glassformer.fast.native_translator import NativeBackend, cannot_translate
from glassformer.model import DecoderOnly, EncoderDecoder
from glassformer.tasks.backend import Backend, TorchBackend

LARGE = 20_000_000  # parameters; smaller ones lose more by rounding than they win

Engine = Literal["auto", "c++", "ctranslate2", "torch"]
Precision = Literal["auto", "fp32", "int8"]


def choose_backend(
    model: EncoderDecoder,
    options: DecodeOptions | None = None,
    engine: Engine = "auto",
    precision: Precision = "auto",
    others: Sequence[EncoderDecoder] = (),
) -> Backend:
    """Our C++ where it can run the model with these options, else CTranslate2, else torch.

    In int8 where the model is on a CPU; in fp32 CTranslate2 is the fastest. With `others` the model answers as one.
    """
    options, on_cpu = options or DecodeOptions(), next(model.parameters()).device.type == "cpu"
    require(
        all(bool(p.isfinite().all()) for each in (model, *others) for p in each.parameters()),
        "The model has weights that are not finite: its training went wrong.",
        "Take earlier weights, or train it again with a lower learning rate.",
    )
    reasons = (_why_no_native(each, options, precision) for each in (model, *others))
    native = next((reason for reason in reasons if reason is not None), None)
    ctranslate2 = "it runs one model at a time" if others else _why_no_ctranslate2(model, options, on_cpu)
    for name, told, reason in (("c++", "The C++ engine", native), ("ctranslate2", "CTranslate2", ctranslate2)):
        if engine == name and reason is not None:
            raise UserError(f"{told} cannot run this: {reason}.", "Set the engine to torch, or to auto.")
    if engine in ("auto", "c++") and native is None:
        return NativeBackend(model, others)
    if engine in ("auto", "ctranslate2") and ctranslate2 is None:
        return CTranslate2Backend(model, "float32" if precision == "fp32" else "int8")
    # Who asks for torch by name wants the model as it is.
    if precision == "int8" or (precision == "auto" and engine != "torch" and on_cpu and can_run_int8()):
        return TorchBackend(quantise_int8(model), name="torch int8", others=[quantise_int8(each) for each in others])
    return TorchBackend(model, others=others)


def choose_decoder(model: DecoderOnly, precision: Precision = "auto") -> tuple[DecoderOnly, str]:
    """A language model in int8 where that is faster, which is where its weights do not fit the processor's cache."""
    weight = next(model.parameters())
    on_cpu = weight.device.type == "cpu"
    large = sum(p.numel() for p in model.parameters()) >= LARGE
    if precision == "fp32" or (precision == "auto" and not (on_cpu and large)):
        return model, "torch fp32"
    if on_cpu and weight.dtype == torch.float32 and why_no_native() is None:
        return run_natively(model), "C++ int8"
    if precision == "int8" or can_run_int8():
        return quantise_int8(model), "torch int8"
    return model, "torch fp32"


def _why_no_native(model: EncoderDecoder, options: DecodeOptions, precision: Precision) -> str | None:
    if precision == "fp32":
        return "it has whole numbers only"
    if not NativeBackend.supports(options):
        return "it cannot draw"
    return cannot_translate(model)


def _why_no_ctranslate2(model: EncoderDecoder, options: DecodeOptions, on_cpu: bool) -> str | None:
    if not on_cpu:
        return "here it runs on a CPU, and the model is on a graphics card"
    if not CTranslate2Backend.supports(options):
        return "it cannot draw with a seed for each request"
    return cannot_run(model.settings)
