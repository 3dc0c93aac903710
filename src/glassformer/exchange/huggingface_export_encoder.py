"""An encoder of ours as a Hugging Face directory: BERT (with what sentence-transformers needs beside it) or ViT."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from tokenizers import Tokenizer as Core
from torch import Tensor

from glassformer.data.files import write_text, writing
from glassformer.data.tokenizer import PAD, Tokenizer
from glassformer.exchange.foreign import convert
from glassformer.exchange.huggingface import Names, find_family
from glassformer.exchange.huggingface_dir import read_huggingface
from glassformer.exchange.huggingface_encoder_layout import make_encoder_config
from glassformer.exchange.huggingface_settings import VIT_ALONE
from glassformer.exchange.huggingface_use import PREPROCESSOR, preprocessor_config
from glassformer.exchange.huggingface_words import frame
from glassformer.exchange.proof import Check, check_pictures, compare, prove, sample_ids, sample_picture
from glassformer.exchange.sentence_transformers import ARCHITECTURE, POOLINGS
from glassformer.model import EncoderOnly
from glassformer.tasks.model_dir import LoadedModel

BARE = (ARCHITECTURE, VIT_ALONE, "BertModel", "ViTModel")  # their files go without the family's prefix
MODULE = "sentence_transformers.models"


def write_encoder(loaded: LoadedModel, model: EncoderOnly, folder: Path) -> tuple[str, list[Check]]:
    """Write all but the report; gives the name of the architecture and what was found on reading it again."""
    config = make_encoder_config(model.settings)
    architecture = config["architectures"][0]
    told = {key: value for key, value in config.items() if not key.startswith("sentence_")}
    told["architectures"] = [{ARCHITECTURE: "BertModel", VIT_ALONE: "ViTModel"}.get(architecture, architecture)]
    told |= _labels(loaded.about.get("labels"))
    _write_json(folder / "config.json", told)
    with writing(folder / "model.safetensors") as file:
        file.write(save(encoder_weights(model, config), metadata={"format": "pt"}))
    if loaded.words is not None:
        longest = min(n for n in (loaded.about.get("context"), told["max_position_embeddings"]) if isinstance(n, int))
        _write_tokenizer(folder, loaded.words, longest)
        if architecture == ARCHITECTURE:
            _write_modules(folder, config, longest)
    else:
        _write_json(folder / PREPROCESSOR, preprocessor_config(loaded.about, model.settings))
    checks = _prove(folder, model)
    more = check_pictures(loaded.about, model.settings) if loaded.words is None else []
    checks += [check for check in more if check not in checks]
    return told["architectures"][0], checks


def encoder_weights(model: EncoderOnly, config: Mapping[str, Any]) -> dict[str, Tensor]:
    """Our weights under their names; what theirs has and ours lacks (biases, types) is zero."""
    family, architecture = find_family(config)
    state = {name: weight.detach().cpu().float() for name, weight in model.state_dict().items()}
    prefix = "" if architecture in BARE else family.prefix
    found: dict[str, Tensor] = {}
    for theirs, ours in _names(family.weights, model.settings.encoder.n_layers):
        found |= {prefix + name: weight for name, weight in _parts(theirs, ours, state, config).items()}
    for theirs, ours in _names(family.architectures[architecture].weights, 0):
        before = prefix if theirs.startswith("pooler.") else ""
        found |= {before + name: weight for name, weight in _parts(theirs, ours, state, config).items()}
    if config.get("tie_word_embeddings"):
        found = {name: weight for name, weight in found.items() if not name.startswith("cls.predictions.decoder.")}
    return {name: weight.contiguous() for name, weight in found.items()}


def _names(table: Names, n_layers: int) -> list[tuple[str, str]]:
    rows = [(theirs, ours) for theirs, ours in table.items() if isinstance(ours, str)]
    layers = [str(i) for i in range(n_layers)]
    return [
        (theirs.replace("{i}", i), ours.replace("{i}", i))
        for theirs, ours in rows
        for i in (layers if "{i}" in theirs else [""])
    ]


def _parts(theirs: str, ours: str, state: Mapping[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
    """One tensor, or a weight and its bias."""
    if ours in state:
        whole = state[ours]  # ViT's positions and class token have a batch of one
        return {theirs: whole.view(1, -1, whole.shape[-1]) if config["model_type"] == "vit" else whole.clone()}
    if ours == "source.types" and f"{ours}.weight" not in state:
        return {f"{theirs}.weight": torch.zeros(1, config["hidden_size"])}
    weight = state[f"{ours}.weight"]
    found = {f"{theirs}.weight": weight.clone()}
    no_bias = ours in ("source.embedding", "source.types") or (
        not config.get("qkv_bias", True) and ours.rpartition(".")[2] in ("w_q", "w_k", "w_v")
    )
    if not no_bias:
        found[f"{theirs}.bias"] = state.get(f"{ours}.bias", weight.new_zeros(len(weight))).clone()
    return found


def _labels(labels: Any) -> dict[str, Any]:
    if not isinstance(labels, dict) or labels.get("kind") == "number":
        return {}
    names = [str(name) for name in labels["names"]]
    kind = "multi_label_classification" if labels["kind"] == "classes" else "single_label_classification"
    return {
        "id2label": {str(i): name for i, name in enumerate(names)},
        "label2id": {name: i for i, name in enumerate(names)},
        "problem_type": kind,
    }


def _write_tokenizer(folder: Path, tokenizer: Tokenizer, longest: int) -> None:
    core, marks = Core.from_str(tokenizer.to_json()), tokenizer.marks
    if core.post_processor is None or tokenizer.is_ours:
        frame(core, marks.start, marks.ends[0])
    write_text(folder / "tokenizer.json", core.to_str(pretty=False))
    pad = tokenizer.piece(PAD) if tokenizer.is_ours or core.token_to_id("[PAD]") is None else "[PAD]"
    about: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": pad,
        "model_max_length": longest,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
    }
    for name, mark in (("cls_token", marks.start), ("sep_token", marks.ends[0]), ("mask_token", marks.mask)):
        if mark is not None:
            about[name] = tokenizer.piece(mark)
    unknown = json.loads(core.to_str())["model"].get("unk_token")
    if unknown:
        about["unk_token"] = unknown
    _write_json(folder / "tokenizer_config.json", about)


def _write_modules(folder: Path, config: Mapping[str, Any], longest: int) -> None:
    """What sentence-transformers reads: the encoder, the pooling, maybe length 1."""
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling")]
    kinds += [("2_Normalize", "Normalize")] if config["sentence_normalise"] else []
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"{MODULE}.{kind}"} for i, (path, kind) in enumerate(kinds)
    ]
    write_text(folder / "modules.json", json.dumps(modules, indent=2) + "\n")
    chosen = next(theirs for theirs, ours in POOLINGS.items() if ours == config["sentence_pooling"])
    switches = {"cls": "cls_token", "mean": "mean_tokens", "lasttoken": "lasttoken"}
    pooling = {f"pooling_mode_{switch}": mode == chosen for mode, switch in switches.items()}
    _write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": config["hidden_size"], **pooling})
    _write_json(folder / "sentence_bert_config.json", {"max_seq_length": longest, "do_lower_case": False})


def _prove(folder: Path, model: EncoderOnly) -> list[Check]:
    """What was written, read as if it came from elsewhere."""
    foreign = read_huggingface(folder)
    again = convert(foreign)
    assert isinstance(again, EncoderOnly)
    sample = sample_picture(model)[None] if foreign.words is None else sample_ids(foreign.words, model)[None]
    what = "the model that was exported"
    with torch.no_grad():
        checks = [compare(again.states(sample).x, model.states(sample).x, what, "hidden states")]
        checks.append(compare(again(sample), model(sample), what, "what the head says"))
    return [*checks, *prove(foreign, again)]


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")
