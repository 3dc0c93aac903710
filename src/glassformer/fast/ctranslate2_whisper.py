"""Whisper run by CTranslate2: the same rules of times and silence, in its own fast code.

Where the model is narrow, most of the encoder's time goes into attention over 1,500 positions, which torch does faster
than CTranslate2, and without rounding: there torch encodes and CTranslate2 speaks.
"""

import tempfile
from pathlib import Path
from typing import Any, Literal

import ctranslate2
import numpy as np
import torch
from ctranslate2.specs import whisper_spec
from torch import Tensor

from glassformer.data.features import pad_to
from glassformer.data.tokenizer import Tokenizer
from glassformer.decode.options import DecodeOptions
from glassformer.fast.ctranslate2_spec import array, fill_linear, fill_stack, fill_tokens, position_table
from glassformer.model import EncoderDecoder
from glassformer.model.inputs import Frames
from glassformer.model.positions import LearnedPositions
from glassformer.tasks.whisper_marks import WhisperMarks
from glassformer.tasks.whisper_steps import FIRST_TIME, N_FRAMES, Said

Precision = Literal["float32", "int8"]
NARROW = 512  # up to this width torch encodes


def write_whisper(
    model: EncoderDecoder, tokenizer: Tokenizer, marks: WhisperMarks, folder: Path, precision: Precision = "int8"
) -> None:
    """A folder that plain `ctranslate2.models.Whisper` loads."""
    settings = model.settings
    spec = whisper_spec.WhisperSpec(
        settings.encoder.n_layers,
        settings.encoder.attention.n_heads,
        settings.decoder.n_layers,
        settings.decoder.attention.n_heads,
    )
    _fill(spec, model)
    size = settings.target.vocab_size
    names = [str(tokenizer.core.id_to_token(i)) if i < tokenizer.vocab_size else f"<unused {i}>" for i in range(size)]
    spec.register_vocabulary(names)
    spec.config.suppress_ids_begin = list(marks.blank)
    spec.config.suppress_ids = list(marks.silent)
    spec.config.lang_ids = sorted(marks.languages.values())
    spec.validate()
    spec.optimize(quantization=precision)
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))


def _fill(spec: Any, model: EncoderDecoder) -> None:
    source = model.source
    assert isinstance(source, Frames)
    assert isinstance(source.positions, LearnedPositions)
    for there, here in zip((spec.encoder.conv1, spec.encoder.conv2), source.convolutions, strict=True):
        there.weight, there.bias = array(here.weight), array(here.bias)
    spec.encoder.position_encodings.encodings = array(source.positions.table)
    fill_stack(spec.encoder, model.encoder)
    fill_tokens(spec.decoder, spec.decoder.embeddings, model.target)
    spec.decoder.position_encodings.encodings = array(position_table(model.target, 0))
    spec.decoder.scale_embeddings = False
    fill_stack(spec.decoder, model.decoder)
    fill_linear(spec.decoder.projection, model.head.w)


class CTranslate2Whisper:
    """The model run by CTranslate2."""

    def __init__(
        self, model: EncoderDecoder, tokenizer: Tokenizer, marks: WhisperMarks, precision: Precision = "int8"
    ) -> None:
        self.marks, self.model = marks, model
        self.by_torch = model.settings.encoder.d_model <= NARROW
        self.name = f"CTranslate2 {'int8' if precision == 'int8' else 'fp32'}"
        self.codes = {f"<|{code}|>": code for code in marks.languages}
        with tempfile.TemporaryDirectory() as folder:
            write_whisper(model, tokenizer, marks, Path(folder), precision)
            # A step of the decoder is too small to share: its threads would mostly wait for each other.
            threads = 1 if self.by_torch else torch.get_num_threads()
            self.whisper = ctranslate2.models.Whisper(folder, compute_type=precision, intra_threads=threads)
        self.heard: tuple[Tensor, Any] | None = None

    def say(self, window: Tensor, prompt: list[int], options: DecodeOptions) -> Said:
        drawing: dict[str, Any] = {"beam_size": options.beam, "patience": 1}
        if options.sample:
            drawing = {
                "beam_size": 1,
                "num_hypotheses": options.nbest,
                "sampling_topk": 0,
                "sampling_temperature": options.temperature,
            }
        [result] = self.whisper.generate(
            self._encode(window),
            [prompt],
            length_penalty=1.0,
            # It takes the half of this, or what the prompt without its last token leaves of it, whichever is less.
            max_length=max(2 * options.max_len, len(prompt) - 1 + options.max_len),
            return_scores=True,
            return_no_speech_prob=True,
            suppress_blank=True,
            suppress_tokens=list(self.marks.silent),
            max_initial_timestamp_index=FIRST_TIME,
            **drawing,
        )
        ids = [i for i in result.sequences_ids[0] if i != self.marks.end]
        average = result.scores[0] * len(ids) / (len(ids) + 1)
        return Said(ids, average, float(result.no_speech_prob))

    def language(self, window: Tensor) -> str:
        [found] = self.whisper.detect_language(self._encode(window))
        return self.codes[found[0][0]]

    def _encode(self, window: Tensor) -> Any:
        if self.heard is None or self.heard[0] is not window:
            features = pad_to(window, N_FRAMES)
            if self.by_torch:
                with torch.inference_mode():
                    encoded = self.model.encode(features[None]).x.numpy()
                self.heard = (window, ctranslate2.StorageView.from_array(encoded))
            else:
                frames = np.ascontiguousarray(features.T[None].numpy(), dtype=np.float32)
                self.heard = (window, self.whisper.encode(ctranslate2.StorageView.from_array(frames)))
        return self.heard[1]
