"""A Hugging Face directory from the disk: config.json, safetensors (one file, or shards with an index), tokenizer.

Weights in a pickle (pytorch_model.bin) are refused: reading one runs whatever code is in it.
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from glassformer.errors import UserError, require
from glassformer.exchange.foreign import Foreign, Progress, as_float, read_json, read_settings
from glassformer.exchange.huggingface import rename
from glassformer.exchange.huggingface_kin import as_llama
from glassformer.exchange.huggingface_tokenizer import read_tokenizer
from glassformer.exchange.huggingface_use import read_use
from glassformer.exchange.sentence_transformers import ARCHITECTURE, Sentences, read_sentences

WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
COPY = "Copy it again from where it came."


def read_huggingface(folder: Path, tokenizer: Path | None = None, progress: Progress | None = None) -> Foreign:
    require(not (folder / "settings.json").exists(), f"{folder} is a model of Glassformer already.", "Use it as it is.")
    source, sentences = folder, read_sentences(folder)
    folder = folder if sentences is None else sentences.folder
    require(
        (folder / "config.json").is_file(),
        f"{folder} is not a Hugging Face directory: config.json is missing.",
        "Give the folder with config.json, model.safetensors and tokenizer.json.",
    )
    config = as_llama(read_json(folder / "config.json"))
    config = {**config, "architectures": config.get("architectures") or _usual_architecture(config)}
    places = find_weights(folder)
    config = _as_sentences(config, sentences, places)
    with ExitStack() as stack:
        files = {name: stack.enter_context(_open(folder / name)) for name in sorted(set(places.values()))}
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
            weights[name] = as_float(_read(files[places[name]], name, folder), name)
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
    """What sentence-transformers says; a bare BERT without a pooler gets the mean, as it would give it."""
    if sentences is not None:
        require(
            config.get("model_type") == "bert",
            f"The sentence model is a {config.get('model_type')}, which cannot be read.",
            "Take one that is a BERT, such as MiniLM.",
        )
        return sentences.extend(config)
    if config["architectures"] == ["BertModel"] and not any("pooler.dense" in name for name in places):
        return {**config, "architectures": [ARCHITECTURE], "sentence_pooling": "mean", "sentence_normalise": False}
    return config


def find_weights(folder: Path) -> dict[str, str]:
    """For each weight the file that it lies in."""
    if (folder / WHOLE).exists():
        with _open(folder / WHOLE) as file:
            return dict.fromkeys(file.keys(), WHOLE)
    if (folder / INDEX).exists():
        return _read_index(folder)
    pickles = sorted(path.name for pattern in ("*.bin", "*.pt", "*.pth", "*.ckpt") for path in folder.glob(pattern))
    ggufs = sorted(path.name for path in folder.glob("*.gguf"))
    if pickles:
        raise UserError(
            f"{folder} holds its weights as {pickles[0]}, a pickle, which may run any code: it is never loaded here.",
            "Write them as safetensors where you trust them: in Python with transformers, "
            "AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(NEW).",
        )
    raise UserError(
        f"{folder} holds no {WHOLE} and no {INDEX}.",
        f"Give the file itself: {folder / ggufs[0]}." if ggufs else "Copy the whole folder.",
    )


def _read_index(folder: Path) -> dict[str, str]:
    places = read_json(folder / INDEX).get("weight_map")
    sound = isinstance(places, dict) and all(isinstance(name, str) for name in places.values())
    require(sound and bool(places), f"{folder / INDEX} does not say where the weights are.", COPY)
    assert isinstance(places, dict)
    for name in sorted(set(places.values())):
        require(
            name == Path(name).name and "\\" not in name and name.endswith(".safetensors"),
            f"{folder / INDEX} names the file {name[:100]!r}, which is no safetensors file of this folder.",
            "Take the index that belongs to the folder.",
        )
        require((folder / name).is_file(), f"{folder} lacks {name}, one of the files with weights.", "Copy it too.")
    return dict(places)


def _open(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{path} is damaged: {error}.", COPY) from None


def _read(file: Any, name: str, folder: Path) -> Any:
    try:
        return file.get_tensor(name)
    except (SafetensorError, OSError, ValueError, RuntimeError, KeyError) as error:
        raise UserError(f"{name} in {folder} cannot be read: {error}.", COPY) from None
