"""The one artefact: a folder with settings.json, model.safetensors, tokenizer.json and what a person wants to know.

Files from others are hostile until parsed: nothing here runs code from a file. Weights may be stored as fp32, fp16 or
int8 (a scale for each row); they are fp32 once loaded.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from glassformer import config
from glassformer.data.counted import counted
from glassformer.data.files import write_text, writing
from glassformer.data.tokenizer import Marks, Tokenizer, load_tokenizer
from glassformer.errors import UserError, require
from glassformer.model import Transformer, build_empty
from glassformer.model.lora import LoraSettings, add_lora, merge_lora
from glassformer.model.rehead import with_settings
from glassformer.model.settings import EncoderOnlySettings, ModelSettings, Settings, TokensSettings
from glassformer.tasks.built_in import find_model
from glassformer.tasks.checksums import check_unaltered, checksum, checksums

FORMAT = 1
_UNFINISHED = "If training was stopped there, go on with --resume."
_GROUP = (dict, "a group of settings")
_KINDS = (("task", str, "text"), *((name, *_GROUP) for name in ("model", "about", "marks", "adapter", "checksums")))
DEEPEST = 100  # groups in groups of settings.json
LARGEST = 1 << 24  # number in a model's settings: of rows, of positions, of a width
Storage = Literal["fp32", "fp16", "int8"]


@dataclass(frozen=True)
class LoadedModel:
    """What a model directory holds, ready to use."""

    path: Path
    task: str
    model: Transformer
    words: Tokenizer | None  # None: the model has to do with no text
    source_words: Tokenizer | None
    about: dict[str, Any]  # what settings.json says besides
    is_adapted: bool = False  # the folder holds an adapter, which was put into its model

    @property
    def tokenizer(self) -> Tokenizer:
        return self._known(self.words)

    @property
    def source_tokenizer(self) -> Tokenizer:
        """The same one, unless source and target have their own."""
        return self._known(self.source_words)

    def _known(self, words: Tokenizer | None) -> Tokenizer:
        if words is None:
            raise UserError(f"{self.path} is a model for {self.task} that reads no text.", "Use one that does.")
        return words


def save_model(
    folder: Path,
    task: str,
    model: Transformer,
    tokenizer: Tokenizer | None,
    source_tokenizer: Tokenizer | None = None,
    about: dict[str, Any] | None = None,
    storage: Storage = "fp32",
) -> None:
    """Write the folder; settings.json comes last, so that a folder with it is complete."""
    if tokenizer is not None:
        write_text(folder / "tokenizer.json", tokenizer.to_json())
    apart = source_tokenizer is not None and source_tokenizer is not tokenizer
    if source_tokenizer is not None and apart:
        write_text(folder / "source_tokenizer.json", source_tokenizer.to_json())
    else:
        (folder / "source_tokenizer.json").unlink(missing_ok=True)  # of a model that was there before
    with writing(folder / "model.safetensors") as file:
        file.write(save(_pack(model, storage), metadata={"format": "pt"}))
    settings = {"format": FORMAT, "task": task, "model": config.to_data(model.settings), "about": about or {}}
    if apart:
        settings["source_tokenizer"] = True  # without it the source would be read in the target's words
    if tokenizer is not None and not tokenizer.is_ours:
        settings["marks"] = config.to_data(tokenizer.marks)
    words = () if tokenizer is None else ("tokenizer.json", "source_tokenizer.json")
    settings["checksums"] = checksums(folder, ("model.safetensors", *words))
    write_text(folder / "settings.json", json.dumps(settings, indent=2, ensure_ascii=False) + "\n")


@dataclass(frozen=True, kw_only=True)
class Adapter(Settings):
    """What an adapter belongs to: a model by its folder or name, and the checksum of its weights."""

    base: str
    checksum: str
    lora: LoraSettings


def save_adapter(
    folder: Path, task: str, model: Transformer, lora: LoraSettings, base: str, about: dict[str, Any]
) -> None:
    """Write what was trained beside a model that stays as it is; settings.json comes last."""
    origin = find_model(base)
    name = base if not Path(base).exists() else str(origin.resolve())
    with writing(folder / "adapter.safetensors") as file:
        file.write(save({n: p.detach().cpu() for n, p in model.named_parameters() if p.requires_grad}))
    adapter = Adapter(base=name, checksum=weights_checksum(origin), lora=lora)
    settings = {
        "format": FORMAT,
        "task": task,
        "model": config.to_data(model.settings),
        "adapter": config.to_data(adapter),
        "about": about,
        "checksums": checksums(folder, ["adapter.safetensors"]),
    }
    write_text(folder / "settings.json", json.dumps(settings, indent=2, ensure_ascii=False) + "\n")


def load_model(folder: Path) -> LoadedModel:
    """Read a folder written by `save_model` or `save_adapter`, checking everything on the way."""
    settings = _read_settings(folder)
    loaded = (_load_adapted if "adapter" in settings else _load_whole)(folder, settings)
    check_unaltered(folder, settings.get("checksums", {}))  # last, as a closer look can say what is wrong
    return loaded


def _load_whole(folder: Path, settings: dict[str, Any]) -> LoadedModel:
    tensors = _read_tensors(folder / "model.safetensors")
    model = _build_empty(settings["model"], len(tensors), folder)
    _unpack(model, tensors, folder / "model.safetensors")
    if not _has_text(model.settings):
        return LoadedModel(folder, settings["task"], model.eval(), None, None, settings["about"])
    marks = config.parse(Marks, settings["marks"], f"{folder / 'settings.json'}") if "marks" in settings else None
    tokenizer = load_tokenizer(folder / "tokenizer.json", marks)
    own = folder / "source_tokenizer.json"
    source_tokenizer = load_tokenizer(own) if own.exists() or settings.get("source_tokenizer") else tokenizer
    _check_vocabulary(model.settings, tokenizer, source_tokenizer, folder)
    return LoadedModel(folder, settings["task"], model.eval(), tokenizer, source_tokenizer, settings["about"])


def _build_empty(data: dict[str, Any], n_tensors: int, folder: Path) -> Transformer:
    """A model as settings.json says, without memory for its weights; what no file could fill is refused before."""
    path = folder / "settings.json"
    hint = "The file is damaged; copy it again from where it came."
    largest = max((value for value in config.flatten(data).values() if type(value) is int), default=0)
    require(largest <= LARGEST, f"{path} asks for a model with {str(largest)[:20]} of something.", hint)
    settings: ModelSettings = config.parse(ModelSettings, data, str(path))
    stacks = [getattr(settings, name, None) for name in ("encoder", "decoder")]
    n_layers = sum(stack.n_layers for stack in stacks if stack is not None)
    # Each layer and each convolution of a front-end has several tensors of its own.
    n_parts = n_layers + len(getattr(settings.source, "strides", ()))
    require(n_parts <= n_tensors, f"{path} asks for {n_parts:,} layers, but there are {n_tensors:,} tensors.", hint)
    try:
        return build_empty(settings)
    except RuntimeError:  # torch counts the bytes, though it does not take them
        raise UserError(f"{path} asks for a model that no memory could hold.", hint) from None


def _has_text(settings: ModelSettings) -> bool:
    return not isinstance(settings, EncoderOnlySettings) or isinstance(settings.source, TokensSettings)


def _load_adapted(folder: Path, settings: dict[str, Any]) -> LoadedModel:
    """The adapter put into the model that it belongs to."""
    adapter: Adapter = config.parse(Adapter, settings["adapter"], f"{folder / 'settings.json'}")
    try:
        base = find_model(adapter.base)
        fits = weights_checksum(base) == adapter.checksum
    except (UserError, OSError):
        raise UserError(
            f"{folder} is an adapter of the model {adapter.base}, which is not there.", "Put that model back."
        ) from None
    require(fits, f"{folder} is an adapter of {adapter.base}, whose weights have changed since.", "Put them back.")
    loaded = load_model(base)
    require(not loaded.is_adapted, f"{folder} is an adapter of an adapter.", "Train it on a whole model.")
    tensors = _read_tensors(folder / "adapter.safetensors")
    there = {name: p.shape for name, p in [*loaded.model.named_parameters(), *tensors.items()]}
    empty = _build_empty(settings["model"], len(there), folder)
    own = empty.settings
    fits = all(there.get(name) == p.shape for name, p in empty.named_parameters())
    require(
        fits and any(name.endswith(".a") and t.shape[:1] == (adapter.lora.rank,) for name, t in tensors.items()),
        f"{folder} is an adapter, but its weights do not fit its settings.json.",
        "Copy the whole folder again from where it came.",
    )
    if own != loaded.model.settings:
        kept = ("head.",) if own.head == loaded.model.settings.head else ()
        loaded = replace(loaded, model=with_settings(loaded.model, own, kept))
    add_lora(loaded.model, adapter.lora)
    if any(name.startswith("head.") for name in tensors):
        loaded.model.head.requires_grad_(True)
    wanted = {name: p for name, p in loaded.model.named_parameters() if p.requires_grad}
    _check_shapes(folder / "adapter.safetensors", wanted, tensors)
    with torch.no_grad():
        for name, parameter in wanted.items():
            parameter.copy_(tensors[name])
    merge_lora(loaded.model)
    about = {**loaded.about, **settings["about"]}
    return replace(loaded, path=folder, task=settings["task"], model=loaded.model.eval(), about=about, is_adapted=True)


def weights_checksum(folder: Path) -> str:
    """Of a model's weights, or of an adapter's; those of its model are checked when it is loaded."""
    path = folder / ("adapter.safetensors" if "adapter" in _read_settings(folder) else "model.safetensors")
    require(path.is_file(), f"{path} is missing.", "A model directory needs it; copy the whole folder.")
    return checksum(path)


def _read_settings(folder: Path) -> dict[str, Any]:
    path = folder / "settings.json"
    missing = f"{folder} is a file, not a model directory." if folder.exists() else f"There is no folder {folder}."
    require(folder.is_dir(), missing, "Train a model, or see `glassformer models`.")
    exported = (folder / "model.bin").exists()
    hint = "It was exported for CTranslate2: use the model that it came from." if exported else _UNFINISHED
    require(path.exists(), f"{folder} is not a finished model: settings.json is missing.", hint)
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        depth = _depth(settings)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}.") from None
    except RecursionError:
        depth = DEEPEST + 1
    require(depth <= DEEPEST, f"{path} cannot be read: it has groups in groups without end.", "Check the folder.")
    whole = isinstance(settings, dict) and {"format", "task", "model", "about"} <= settings.keys()
    require(whole, f"{path} was not written by Glassformer.", "Check the folder.")
    for name, kind, wanted in _KINDS:
        given = settings.get(name, kind())
        shown = json.dumps(given)[:40]
        require(
            isinstance(given, kind), f"{path} has {name} = {shown}, but it must be {wanted}.", "Copy the folder again."
        )
    require(
        settings["format"] == FORMAT,
        f"{path} has format {settings['format']}, but this version reads format {FORMAT}.",
        "Use the version of Glassformer that wrote it, or a newer one.",
    )
    return dict(settings)


def _depth(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inside), default=0)


def _check_vocabulary(settings: ModelSettings, target: Tokenizer, source: Tokenizer, folder: Path) -> None:
    expected = [(getattr(settings, side, None), t) for side, t in (("source", source), ("target", target))]
    marks = target.marks
    for mark in (*(mark for mark in (marks.start, marks.bos) if mark is not None), *marks.ends):
        known = 0 <= mark < target.vocab_size
        require(known, f"settings.json in {folder} has the mark {mark}, which is no token.", "Import the model again.")
    for front_end, tokenizer in expected:
        size = getattr(front_end, "vocab_size", None)
        require(
            # Models from elsewhere may have spare rows.
            size is None or size == tokenizer.vocab_size or (not tokenizer.is_ours and size > tokenizer.vocab_size),
            f"The tokenizer in {folder} knows {tokenizer.vocab_size} tokens, but the model {size}.",
            "Put back the tokenizer.json that belongs to the model.",
        )


def _pack(model: nn.Module, storage: Storage) -> dict[str, Tensor]:
    packed: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        weight = parameter.detach().cpu().float().contiguous()
        if storage == "int8" and weight.dim() == 2:
            scale = weight.abs().amax(dim=1, keepdim=True).clamp(min=1e-8) / 127
            packed[f"{name}:int8"] = (weight / scale).round().to(torch.int8)
            packed[f"{name}:scale"] = scale
        else:
            packed[name] = weight.half() if storage == "fp16" else weight
    return packed


def _unpack(model: Transformer, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Give an empty model its weights; each must be there in its shape, and no other."""
    parts = dict(tensors)
    for name in [n.removesuffix(":int8") for n in parts if n.endswith(":int8")]:
        require(f"{name}:scale" in parts, f"{path} lacks the scale of {name}.", "Copy it again from where it came.")
        rounded, scale = parts.pop(f"{name}:int8"), parts.pop(f"{name}:scale")
        # A product of other shapes could be far larger than both.
        require(
            rounded.dim() == 2 and scale.shape == (len(rounded), 1),
            f"{path} has a scale of {name} that does not fit: {tuple(scale.shape)} for {tuple(rounded.shape)}.",
            "Copy it again from where it came.",
        )
        parts[name] = rounded.float() * scale
    _check_shapes(path, dict(model.named_parameters()), parts)
    model.load_state_dict({name: tensor.float() for name, tensor in parts.items()}, strict=False, assign=True)
    model.tie()
    for parameter in model.parameters():
        parameter.requires_grad_(True)


def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except FileNotFoundError:
        what = "cannot be read" if path.exists() else "is missing"
        raise UserError(f"{path} {what}.", "A model directory needs it; copy the whole folder.") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{path} is damaged: {error}.", "Copy it again from where it came.") from None
    for name, tensor in tensors.items():
        kind = str(tensor.dtype).removeprefix("torch.")
        require(
            tensor.is_floating_point() or (kind == "int8" and name.endswith(":int8")),
            f"{path} holds {name} as {kind}, but weights are real numbers.",
            "Copy it again from where it came.",
        )
    return tensors


def _check_shapes(path: Path, parameters: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> None:
    """Each weight must be there in its shape, and no other."""
    wanted = {name: tuple(p.shape) for name, p in parameters.items()}
    given = {name: tuple(t.shape) for name, t in tensors.items()}
    wrong = sorted(name for name in wanted.keys() | given.keys() if wanted.get(name) != given.get(name))
    if wrong:
        raise UserError(
            f"{path} does not fit settings.json: {counted(len(wrong), 'wrong weight')}, the first is {wrong[0]} "
            f"({given.get(wrong[0], 'missing')} instead of {wanted.get(wrong[0], 'none')}).",
            "Both files must come from the same model.",
        )
