"""How an encoder from Hugging Face is used, for settings.json: what its labels mean, and how it wants its pictures."""

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from glassformer import config as checked
from glassformer.data.labels import Labels
from glassformer.errors import require
from glassformer.exchange.foreign import read_json
from glassformer.exchange.huggingface_settings import MANY, Config
from glassformer.model.settings import EncoderOnlySettings, PatchesSettings

CLASSIFIERS = ("BertForSequenceClassification", "ViTForImageClassification")
PREPROCESSOR = "preprocessor_config.json"
FILTERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}  # as Pillow counts them


def read_use(folder: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """What the task needs to know besides the weights."""
    use: dict[str, Any] = {}
    if config["architectures"][0] in CLASSIFIERS:
        use["labels"] = checked.to_data(read_labels(config))
        # Nothing tells whether it was trained on texts or on pairs of them.
        use |= {"input": "text", "n_texts": None} if config["model_type"] == "bert" else {}
    if config["model_type"] == "vit":
        use |= {"input": "pictures", "pictures": read_pictures(folder / PREPROCESSOR, config)}
    return use


def read_labels(config: Mapping[str, Any]) -> Labels:
    """Classes by name, or by number where the file has no names; one label alone is a number, as in Hugging Face,
    unless several may hold at once.

    Classes of the same name, such as ImageNet's two cranes, get their numbers behind it.
    """
    table = Config(config).table("id2label")
    n = len(table) or config.get("num_labels", 2)
    many = config.get("problem_type") == MANY
    if n == 1 and config["model_type"] == "bert" and not many:
        return Labels("number")
    given = [str(table.get(str(i), i)) for i in range(n)]
    n_times = Counter(given)
    names = tuple(name if n_times[name] == 1 else f"{name} ({i})" for i, name in enumerate(given))
    return Labels("classes" if many else "class", names, "," if many else "")


def read_pictures(path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Size, filter, and the numbers that colours are shifted and divided by; ViT's own where the file is missing."""
    about = read_json(path) if path.exists() else {}
    n = config.get("num_channels", 3)
    found: dict[str, Any] = {"resample": FILTERS.get(_number(about.get("resample")), "bilinear")}
    for name, theirs in (("mean", "image_mean"), ("std", "image_std")):
        given = about.get(theirs)
        given = [0.5] * n if given is None else given if isinstance(given, list) else [given] * n
        if about.get("do_normalize") is False:
            given = [0.0 if name == "mean" else 1.0] * n
        sound = len(given) == n and all(isinstance(v, int | float) and math.isfinite(v) for v in given)
        require(
            sound and (name == "mean" or all(v > 0 for v in given)),
            f"{path} has {theirs} = {str(about.get(theirs))[:60]}, but one number a colour is read here.",
            "Take the file that belongs to the model.",
        )
        found[name] = [float(v) for v in given]
    if _is_cropped(about, config, path):
        found["fit"] = "crop"
    factor = about.get("rescale_factor", 1 / 255) if about.get("do_rescale") is not False else 1.0
    require(
        isinstance(factor, int | float) and abs(factor - 1 / 255) < 1e-6,
        f"{path} multiplies pictures by {str(factor)[:20]}, but Glassformer divides them by 255.",
        "Take another model.",
    )
    return found


def _is_cropped(about: Mapping[str, Any], config: Mapping[str, Any], path: Path) -> bool:
    """Whether the middle of a picture is cut out, and not all of it stretched; other ways are refused."""
    height, width = Config(config).pair("image_size")
    whole, crops = {"height": height, "width": width}, bool(about.get("do_center_crop"))
    size, crop = (_sides(about.get(name), whole) for name in ("size", "crop_size"))
    if about.get("do_resize") is False and not crops:
        size = whole  # there other sizes would be an error
    is_cut = crops and height == width and size == {"shortest_edge": height}
    require(
        (size == whole or is_cut) and (crop == whole or not crops),
        f"{path} makes pictures of {str(size)[:60]}{f' and cuts out {str(crop)[:60]}' if crops else ''}, but the model "
        f"reads {height} × {width} and Glassformer makes that in one step.",
        f"Write size = {height} and do_center_crop = false into it to have pictures stretched, with other numbers.",
    )
    return is_cut


def _sides(given: Any, default: dict[str, Any]) -> Any:
    return default if given is None else {"height": given, "width": given} if isinstance(given, int) else given


def preprocessor_config(about: Mapping[str, Any], settings: EncoderOnlySettings) -> dict[str, Any]:
    """The same the other way round."""
    source, pictures = settings.source, about.get("pictures")
    assert isinstance(source, PatchesSettings)
    pictures = pictures if isinstance(pictures, dict) else {}
    half, sides = [0.5] * source.n_channels, {"height": source.height, "width": source.width}
    how: dict[str, Any] = {"image_processor_type": "ViTImageProcessor", "do_resize": True, "size": sides}
    if is_cut_to_a_square(about, settings):  # ViT's own processor cannot cut; CLIP's can
        how |= {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": source.height}}
        how |= {"do_center_crop": True, "crop_size": sides, "do_convert_rgb": source.n_channels == 3}
    return {
        **how,
        "resample": next((i for i, name in FILTERS.items() if name == pictures.get("resample")), 2),
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": pictures.get("mean", half),
        "image_std": pictures.get("std", half),
    }


def is_cut_to_a_square(about: Mapping[str, Any], settings: EncoderOnlySettings) -> bool:
    source = settings.source
    assert isinstance(source, PatchesSettings)
    return picture_fit(about) == "crop" and source.height == source.width


def picture_fit(about: Mapping[str, Any]) -> str:
    pictures = about.get("pictures")
    return str(pictures.get("fit", "stretch")) if isinstance(pictures, dict) else "stretch"


def _number(value: Any) -> int:
    return value if type(value) is int else -1
