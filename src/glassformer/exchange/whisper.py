"""Whisper into a model directory: OpenAI's .pt file, or a Hugging Face folder."""

import json
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from glassformer import config as checked
from glassformer.data.features import FeatureSettings
from glassformer.data.files import write_text
from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import UserError, require
from glassformer.exchange.foreign import as_float, read_json
from glassformer.exchange.huggingface import convert_weights, settings_from_config
from glassformer.exchange.huggingface_settings import ACTIVATIONS
from glassformer.exchange.proof import Check, compare
from glassformer.exchange.torch_file import read_torch_file
from glassformer.exchange.weight_files import find_weights, open_weights, read_weight
from glassformer.exchange.whisper_names import to_config, to_huggingface
from glassformer.exchange.whisper_plain import plain_whisper
from glassformer.exchange.whisper_tokenizer import read_whisper_tokenizer
from glassformer.model import EncoderDecoder, build_empty
from glassformer.tasks.model_dir import load_model, save_model

# Those who know more than English have a token for it more.
MULTILINGUAL = 51865
N_PROOF = 64  # frames of the proof: enough to fill every weight, quick to compute
DEFAULTS = {
    **dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), 0.0),
    "tie_word_embeddings": True,
    "activation_function": "gelu",
}


@dataclass(frozen=True)
class Source:
    """What was read, in Hugging Face's words."""

    config: Mapping[str, Any]
    weights: dict[str, Tensor]
    tokenizer: Tokenizer
    form: str
    kinds: dict[str, int]


def is_whisper(source: Path) -> bool:
    """Whether a file or folder is a Whisper; damaged files are not."""
    if source.is_dir():
        path = source / "config.json"
        try:
            return path.is_file() and read_json(path).get("model_type") == "whisper"
        except UserError:
            return False
    if not source.is_file() or source.suffix != ".pt":
        return False
    with source.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def import_whisper(source: Path, out: Path, tokenizer: Path | None = None) -> dict[str, Any]:
    """Write the folder `out`, whole or not at all, and give the report that lies in it as import.json."""
    read = _read_folder(source, tokenizer) if source.is_dir() else _read_file(source, tokenizer)
    model = _convert(read)
    check = _prove(read, model)
    parameters = sum(p.numel() for p in model.parameters())
    found: dict[str, Any] = {
        "task": "transcribe",
        "format": read.form,
        "source": source.name,
        "weights": read.kinds,
        "parameters": parameters,
        "checks": [asdict(check)],
    }
    n_mels = model.settings.source.n_features  # type: ignore[union-attr]
    features = FeatureSettings(n_features=n_mels, n_fft=400, scale="whisper")
    is_multilingual = read.config["vocab_size"] >= MULTILINGUAL
    about = {
        "imported": {key: found[key] for key in ("format", "source", "weights")},
        "features": checked.to_data(features),
        "whisper": {"multilingual": is_multilingual},
    }
    halves = all(torch.equal(p.detach().half().float(), p.detach()) for p in model.parameters())
    with tempfile.TemporaryDirectory(dir=out.absolute().parent, prefix=f".{out.name}.") as scratch:
        folder = Path(scratch) / "whole"
        save_model(folder, "transcribe", model, read.tokenizer, about=about, storage="fp16" if halves else "fp32")
        again = load_model(folder).model
        same = all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
        require(same, f"{folder} does not read back as it was written.", "Check the disk.")
        found["checks"].append(asdict(Check("read again from the folder", True, f"{parameters:,} equal weights")))
        write_text(folder / "import.json", json.dumps(found, indent=2, ensure_ascii=False) + "\n")
        write_text(folder / "README.md", _card(found, out.name))
        folder.rename(out)
    return found


def _read_file(path: Path, tokenizer: Path | None) -> Source:
    held = read_torch_file(path)
    sound = isinstance(held, dict) and isinstance(held.get("dims"), dict)
    state = held.get("model_state_dict") if sound else None
    require(
        isinstance(state, dict) and all(isinstance(w, Tensor) for w in state.values()),
        f"{path} holds no Whisper: there are no dims and model_state_dict in it.",
        "Of torch files only OpenAI's Whisper can be read; take other models as safetensors.",
    )
    config = to_config(held["dims"])
    return _source(config, to_huggingface(state), path, tokenizer, "OpenAI's Whisper file")  # type: ignore[arg-type]


def _read_folder(folder: Path, tokenizer: Path | None) -> Source:
    config = {**DEFAULTS, **read_json(folder / "config.json")}
    weights: dict[str, Tensor] = {}
    for name in sorted(set(find_weights(folder).values())):
        with open_weights(folder / name) as file:
            weights |= {weight: read_weight(file, weight, folder) for weight in file.keys()}  # noqa: SIM118 (not a mapping)
    return _source(config, weights, folder, tokenizer, "Hugging Face directory")


def _source(
    config: Mapping[str, Any], weights: dict[str, Tensor], path: Path, tokenizer: Path | None, form: str
) -> Source:
    layers = [config.get(f"{side}_layers") for side in ("encoder", "decoder")]
    require(
        all(type(n) is int and 0 < n <= len(weights) for n in layers),
        f"{path} says that it has {layers} layers, but the weights are not so many.",
        "The file is damaged; copy it again.",
    )
    _check_fields(config, path)
    kinds = Counter(str(w.dtype).removeprefix("torch.") for w in weights.values())
    floats = {name: as_float(weight, name) for name, weight in weights.items()}
    words = read_whisper_tokenizer(_find_tokenizer(path, tokenizer, config), config["vocab_size"])
    return Source({"init_std": 0.02, **config}, floats, words, form, dict(sorted(kinds.items())))


def _check_fields(config: Mapping[str, Any], path: Path) -> None:
    rows = config.get("vocab_size")
    require(
        type(rows) is int and rows > 0,
        f"{path} has vocab_size = {repr(rows)[:40]}, but it must be the number of its tokens.",
        "Take the config.json that belongs to the weights.",
    )
    activation = str(config.get("activation_function"))
    require(
        ACTIVATIONS.get(activation) == "gelu",
        f"{path} has activation_function = {activation[:40]!r}, but Glassformer reads a Whisper with gelu.",
        "Take another model.",
    )


def _find_tokenizer(path: Path, given: Path | None, config: Mapping[str, Any]) -> Path:
    if given is not None:
        return given
    folder = path if path.is_dir() else path.parent
    name = "multilingual.tiktoken" if config["vocab_size"] >= MULTILINGUAL else "gpt2.tiktoken"
    for found in (folder / "tokenizer.json", folder / name):
        if found.is_file():
            return found
    raise UserError(
        f"There is no tokenizer beside {path}.",
        f"Name one with --tokenizer FILE: {name} of the package openai-whisper, or a tokenizer.json.",
    )


def _convert(read: Source) -> EncoderDecoder:
    model = build_empty(settings_from_config(read.config))
    assert isinstance(model, EncoderDecoder)
    model.load_state_dict(convert_weights(read.weights, read.config), assign=True)
    model.tie()
    return model.requires_grad_(True).eval()


@torch.no_grad()
def _prove(read: Source, model: EncoderDecoder) -> Check:
    """Scores of a made-up sound and text, ours beside plain formulas over the file's own weights."""
    random = torch.Generator().manual_seed(0)
    n_positions = int(read.config["max_source_positions"])
    frames = torch.randn(min(N_PROOF, 2 * n_positions), int(read.config["num_mel_bins"]), generator=random)
    n = min(12, int(read.config["max_target_positions"]))
    ids = torch.linspace(0, int(read.config["vocab_size"]) - 1, n).long()
    return compare(
        model(frames[None], ids[None])[0],
        plain_whisper(read.config, read.weights, frames, ids),
        "the file's weights by plain formulas",
    )


def _card(found: dict[str, Any], name: str) -> str:
    kinds = ", ".join(f"{n} {kind}" for kind, n in found["weights"].items())
    checks = "\n".join(f"- {check['name']}: {check['found']}" for check in found["checks"])
    return (
        f"# {name}\n\nA Whisper that was imported by Glassformer from {found['source']} ({found['format']}): "
        f"{found['parameters']:,} parameters ({kinds}). Licence and origin are those of its source.\n\n"
        f"Checked at import:\n\n{checks}\n\nUse it: `glassformer transcribe {name} FILE.wav`\n"
    )
