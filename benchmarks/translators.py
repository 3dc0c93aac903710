"""The same weights in each system, as a function from texts to texts: tokenizing is in everyone's time."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import glassformer
from benchmarks.corpus import learn_tokenizer
from glassformer import config
from glassformer.data.tokenizer import END, PAD, START
from glassformer.decode.options import DecodeOptions
from glassformer.exchange.huggingface import rename
from glassformer.fast.ctranslate2 import write_ctranslate2
from glassformer.model import EncoderDecoder, build
from glassformer.model.positions import SinusoidalPositions, sinusoids
from glassformer.model.settings import EncoderDecoderSettings, ModelSettings
from glassformer.sizes import load_size_data
from glassformer.tasks.model_dir import LoadedModel, load_model, save_model

Translate = Callable[[list[str]], list[str]]


def make_random_model(folder: Path, size: str, vocab: int) -> None:
    """A model that never ends by itself, so that every system makes as many tokens as it is allowed to."""
    tokenizer = learn_tokenizer(vocab)
    words = {"vocab_size": tokenizer.vocab_size}
    data = config.merge(load_size_data(f"translate-{size}"), {"source": words, "target": words, "head": {"bias": True}})
    torch.manual_seed(1)
    model = build(config.parse(ModelSettings, data, size))
    assert isinstance(model, EncoderDecoder)
    with torch.no_grad():
        model.head.w.bias[[PAD, START, END]] = -1e4
    save_model(folder, "translate", model, tokenizer)


def make_translate(system: str, folder: Path, beam: int, max_len: int) -> Translate:
    """`ours`, `huggingface`, or `ctranslate2 PRECISION INTER INTRA MAX_BATCH`."""
    name, *details = system.split()
    match name:
        case "ours":
            return _ours(folder, DecodeOptions(beam=beam, max_len=max_len))
        case "huggingface":
            return _huggingface(load_model(folder), beam, max_len)
        case _:
            precision, *numbers = details
            return _ctranslate2(load_model(folder), folder, precision, [int(n) for n in numbers], beam, max_len)


def _ours(folder: Path, options: DecodeOptions) -> Translate:
    translator = glassformer.load(folder)
    return lambda texts: [best[0].text for best in translator.translate_all(texts, options)]


def _ctranslate2(
    loaded: LoadedModel, folder: Path, precision: str, numbers: list[int], beam: int, max_len: int
) -> Translate:
    """As its guide says: our export, its Translator, the tokenizer's own tokens."""
    import ctranslate2

    inter, intra, max_batch = numbers
    exported = folder / f"ctranslate2-{precision}"
    if not exported.exists():
        assert isinstance(loaded.model, EncoderDecoder)
        kind: Any = precision
        write_ctranslate2(loaded.model, loaded.tokenizer, exported, kind, loaded.source_tokenizer)
    engine = ctranslate2.Translator(str(exported), compute_type=precision, inter_threads=inter, intra_threads=intra)
    source, target = loaded.source_tokenizer.core, loaded.tokenizer.core

    def translate(texts: list[str]) -> list[str]:
        tokens = [found.tokens for found in source.encode_batch(texts, add_special_tokens=False)]
        results = engine.translate_batch(
            tokens, beam_size=beam, max_decoding_length=max_len, max_batch_size=max_batch, max_input_length=0
        )
        return target.decode_batch([[target.token_to_id(t) for t in r.hypotheses[0]] for r in results])

    return translate


def _huggingface(loaded: LoadedModel, beam: int, max_len: int) -> Translate:
    assert isinstance(loaded.model, EncoderDecoder)
    model = to_huggingface(loaded.model)
    source, target = loaded.source_tokenizer.core, loaded.tokenizer.core

    @torch.inference_mode()
    def translate(texts: list[str]) -> list[str]:
        rows = [torch.tensor([*found.ids, END]) for found in source.encode_batch(texts, add_special_tokens=False)]
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
        found = model.generate(
            ids, attention_mask=(ids != PAD).long(), num_beams=beam, max_new_tokens=max_len, early_stopping=True
        )
        return target.decode_batch([[i for i in row if i > END] for row in found.tolist()], skip_special_tokens=False)

    return translate


def to_huggingface(model: EncoderDecoder) -> Any:
    """Our weights in the class of theirs that has the shape: Marian for post-norm, Pegasus for pre-norm."""
    from transformers import MarianConfig, MarianMTModel, PegasusConfig, PegasusForConditionalGeneration

    s = model.settings
    assert isinstance(s, EncoderDecoderSettings)
    if not isinstance(model.target.positions, SinusoidalPositions) or not (s.tie_source_target and s.tie_output):
        raise SystemExit(
            "This model has no equal in transformers: it needs sinusoidal positions and one table of words."
        )
    pre = s.encoder.norm.place == "pre"
    make_config, make_model = (PegasusConfig, PegasusForConditionalGeneration) if pre else (MarianConfig, MarianMTModel)
    shape = {}
    for side, stack in (("encoder", s.encoder), ("decoder", s.decoder)):
        shape |= {f"{side}_layers": stack.n_layers, f"{side}_attention_heads": stack.attention.n_heads}
        shape |= {f"{side}_ffn_dim": stack.feed_forward.d_ff}
    theirs = make_model(
        make_config(
            **shape,
            vocab_size=s.target.vocab_size,
            d_model=s.decoder.d_model,
            activation_function=s.decoder.feed_forward.activation,
            scale_embedding=model.target.scale != 1.0,
            max_position_embeddings=512,
            pad_token_id=PAD,
            bos_token_id=START,
            eos_token_id=END,
            decoder_start_token_id=START,
            forced_eos_token_id=None,
        )
    )
    theirs.load_state_dict(_state(model, theirs), strict=True)
    theirs.generation_config.forced_eos_token_id = None
    theirs.generation_config.bad_words_ids = None
    theirs.generation_config.length_penalty = 1.0
    return theirs.eval()


def _state(model: EncoderDecoder, theirs: Any) -> dict[str, torch.Tensor]:
    ours = model.state_dict()
    state = {}
    for name, wanted in theirs.state_dict().items():
        if "embed_positions" in name:
            layout = (model.source if "encoder" in name else model.target).positions.layout
            state[name] = sinusoids(torch.arange(wanted.shape[0]), wanted.shape[1], layout)
        elif name == "final_logits_bias":
            state[name] = ours.get("head.w.bias", torch.zeros(wanted.shape[1]))[None]
        elif name.startswith(("model.encoder.layer_norm", "model.decoder.layer_norm")):
            state[name] = ours[name.removeprefix("model.").replace("layer_norm", "norm")]
        else:
            marian = {"model_type": "marian", "architectures": ["MarianMTModel"]}
            state[name] = ours[rename(marian, [name])[name][0]]
    return state
