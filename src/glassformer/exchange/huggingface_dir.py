"""A Hugging Face directory from the disk: config.json, weights, tokenizer."""

from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from glassformer.errors import require
from glassformer.exchange.foreign import Foreign, Progress, as_float, read_json, read_settings
from glassformer.exchange.huggingface import rename
from glassformer.exchange.huggingface_kin import as_known
from glassformer.exchange.huggingface_settings import VIT_ALONE
from glassformer.exchange.huggingface_tokenizer import read_tokenizer
from glassformer.exchange.huggingface_use import read_use
from glassformer.exchange.sentence_transformers import ARCHITECTURE, Sentences, read_sentences
from glassformer.exchange.weight_files import COPY, find_weights, open_weights, read_weight


def read_huggingface(folder: Path, tokenizer: Path | None = None, progress: Progress | None = None) -> Foreign:
    require(not (folder / "settings.json").exists(), f"{folder} is a model of Glassformer already.", "Use it as it is.")
    source, sentences = folder, read_sentences(folder)
    folder = folder if sentences is None else sentences.folder
    require(
        (folder / "config.json").is_file(),
        f"{folder} is not a Hugging Face directory: config.json is missing.",
        "Give the folder with config.json, model.safetensors and tokenizer.json.",
    )
    config = as_known(read_json(folder / "config.json"))
    config = {**config, "architectures": config.get("architectures") or _usual_architecture(config)}
    places = find_weights(folder)
    config = _as_sentences(config, sentences, places)
    with ExitStack() as stack:
        files = {name: stack.enter_context(open_weights(folder / name)) for name in sorted(set(places.values()))}
        for weight, file in places.items():
            require(weight in files[file].keys(), f"{folder / file} lacks {weight}, which the index puts there.", COPY)  # noqa: SIM118 (not a mapping)
        needed = [name for name, ours in rename(config, places).items() if ours and not _is_idle(name, config, places)]
        slices = {name: files[places[name]].get_slice(name) for name in needed}
        read_settings(config, {name: tuple(part.get_shape()) for name, part in slices.items()})
        lower_case = sentences is not None and sentences.lower_case
        words = None if "image_size" in config else read_tokenizer(folder, config, tokenizer, lower_case)
        kinds = Counter(str(part.get_dtype()) for part in slices.values())
        weights = {}
        for i, name in enumerate(needed):
            weights[name] = as_float(read_weight(files[places[name]], name, folder), name)
            if progress is not None:
                progress(i + 1, len(needed))
    about = {
        "format": "Hugging Face directory",
        "source": source.absolute().name,
        "weights": dict(sorted(kinds.items())),
        "tokenizer": tokenizer.name if tokenizer is not None else "its own",
    }
    return Foreign(config, weights, words, False, about, read_use(folder, config))


def _is_idle(name: str, config: Mapping[str, Any], places: Mapping[str, str]) -> bool:
    """An untied BERT stores two biases of its scores, and uses the decoder's."""
    untied = config.get("model_type") == "bert" and config.get("tie_word_embeddings") is False
    return untied and name == "cls.predictions.bias" and "cls.predictions.decoder.bias" in places


def _usual_architecture(config: Mapping[str, Any]) -> list[str] | None:
    """Some configs leave it out."""
    usual = {"gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM", "bert": "BertModel", "vit": "ViTModel"}
    found = usual.get(str(config.get("model_type")))
    return [found] if found else None


def _as_sentences(config: dict[str, Any], sentences: Sentences | None, places: Mapping[str, str]) -> dict[str, Any]:
    """What sentence-transformers says; a bare BERT without a pooler gets the mean, as it would give it, and a ViT the
    state of its class token.
    """
    if sentences is not None:
        require(
            config.get("model_type") == "bert",
            f"The sentence model is a {config.get('model_type')}, which cannot be read.",
            "Take one that is a BERT, such as MiniLM.",
        )
        return sentences.extend(config)
    if any("pooler.dense" in name for name in places):
        return config
    if config["architectures"] == ["BertModel"]:
        return {**config, "architectures": [ARCHITECTURE], "sentence_pooling": "mean", "sentence_normalise": False}
    return {**config, "architectures": [VIT_ALONE]} if config["architectures"] == ["ViTModel"] else config
