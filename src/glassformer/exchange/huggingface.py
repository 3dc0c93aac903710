"""Hugging Face directories: a parsed config.json into our settings, and their weights under our names.

The tables are in huggingface.toml, the fields in huggingface_settings.py. Files are neither read nor fetched here.

>>> model = build(settings_from_config(config))
>>> model.load_state_dict(convert_weights(state, config))
"""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from glassformer.config import parse, read_toml
from glassformer.errors import UserError, require
from glassformer.exchange.huggingface_kin import ARCHITECTURES as KIN
from glassformer.exchange.huggingface_settings import OUR_OWN, READERS, Config, belonging, origin
from glassformer.model import build_empty
from glassformer.model.settings import ModelSettings

Names = dict[str, str | list[str]]
NOT_IMPORTED = {"marian"}  # its names are known, but not its tokenizer


@dataclass(frozen=True, kw_only=True)
class Head:
    """What an architecture adds to its family."""

    weights: Names
    ignore: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Family:
    """One group of huggingface.toml, which says what each field means."""

    prefix: str
    weights: Names
    architectures: dict[str, Head]
    requires: dict[str, bool | str] = field(default_factory=dict)
    defaults: dict[str, bool | int | float | str] = field(default_factory=dict)
    endings: dict[str, str] = field(default_factory=dict)
    transposed: list[str] = field(default_factory=list)
    ignore: list[str] = field(default_factory=list)


def settings_from_config(config: Mapping[str, Any]) -> ModelSettings:
    """Our settings of the model that a config.json describes."""
    family, architecture = find_family(config)
    # What transformers writes in place of a missing value is null.
    given = {key: value for key, value in config.items() if value is not None}
    wrong = [f"{key} = {given[key]!r}" for key, value in family.requires.items() if given.get(key, value) != value]
    wrong += ["quantization_config"] if "quantization_config" in given else []
    require(
        not wrong,
        f"{origin(config)} has {', '.join(wrong)}, which Glassformer lacks.",
        "Take a model without it.",
    )
    data = READERS[config["model_type"]](Config({**family.defaults, **given}), architecture)
    settings: ModelSettings = parse(ModelSettings, data, origin(config))
    return settings


def rename(config: Mapping[str, Any], names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Our name, or names where theirs stacks several, for each of theirs; none for what is known to carry nothing."""
    family, architecture = find_family(config)
    head = family.architectures[architecture]
    table: dict[str, str | Sequence[str]] = {
        **dict.fromkeys(family.ignore + head.ignore, ()),
        **family.weights,
        **head.weights,
    }
    renamed, unknown = {}, []
    for name in names:
        template, layer = _template(name, family)
        stem, _, ending = template.rpartition(".")
        if template in table:
            ours, suffix = table[template], ""
        elif stem in table and ending in ("weight", "bias"):
            ours, suffix = table[stem], f".{ending}"
        else:
            unknown.append(name)
            continue
        ours = [ours] if isinstance(ours, str) else ours
        renamed[name] = tuple(our.replace("{i}", layer) + suffix for our in ours)
    require(
        not unknown,
        f"{architecture} has no place for the weights {', '.join(unknown)}.",
        belonging(config),
    )
    return renamed


def convert_weights(state: Mapping[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
    """Their weights as the complete state of our model, in which tied names are filled in and none is left out."""
    wanted = build_empty(settings_from_config(config)).state_dict(keep_vars=True)
    first = {id(weight): name for name, weight in reversed(wanted.items())}  # tied names share one weight
    found: dict[str, Tensor] = {}
    problems: list[str] = []
    for name, our, part in _parts(state, config):
        if our not in wanted:
            problems.append(f"{name} has no place in it")
            continue
        shape, key = wanted[our].shape, first[id(wanted[our])]
        part = _drop_ones(part, len(shape))
        if part.shape != shape:
            problems.append(f"{name} has shape {tuple(part.shape)}, not {tuple(shape)}")
        elif (known := found.setdefault(key, part)) is not part and not torch.equal(known, part):
            problems.append(f"{name} differs from another weight that it is tied to")
    missing = [name for name, weight in wanted.items() if first[id(weight)] not in found]
    if not problems and missing:  # else it may be missing because it did not fit
        problems.append(f"nothing is given for {', '.join(missing)}")
    require(
        not problems,
        f"The weights do not fit the model that {origin(config)} describes: {'; '.join(problems)}.",
        belonging(config),
    )
    return {name: found[first[id(weight)]].contiguous() for name, weight in wanted.items()}


def _parts(state: Mapping[str, Tensor], config: Mapping[str, Any]) -> Iterator[tuple[str, str, Tensor]]:
    """Each of their weights, turned and cut as ours are, between its two names."""
    family, _ = find_family(config)
    for name, ours in rename(config, state).items():
        weight = state[name]
        if weight.dim() == 2 and _template(name, family)[0] in family.transposed:
            weight = weight.T
        parts = weight.chunk(len(ours)) if len(ours) > 1 else [weight]
        yield from ((name, our, part) for our, part in zip(ours, parts, strict=False))


def _drop_ones(weight: Tensor, n_dims: int) -> Tensor:
    """Without the leading batch of one that some of theirs carry."""
    while weight.dim() > n_dims and weight.shape[0] == 1:
        weight = weight[0]
    return weight


def _template(name: str, family: Family) -> tuple[str, str]:
    """The name as the table writes it, and the number of its layer."""
    name = name.removeprefix(family.prefix)
    stem, dot, ending = name.rpartition(".")
    name = stem + dot + family.endings.get(ending, ending)
    layer = re.search(r"\.(\d+)\.", name)
    return (name, "") if layer is None else (name.replace(layer[0], ".{i}.", 1), layer[1])


def find_family(config: Mapping[str, Any]) -> tuple[Family, str]:
    """The family and architecture that a config.json names."""
    families, kind = _families(), str(config.get("model_type"))
    given = config.get("architectures")
    if kind not in (*families, *KIN):
        known = ", ".join(sorted({*families, *KIN} - NOT_IMPORTED))
        raise UserError(
            f"{origin(config)} has model_type = {kind}, which cannot be read.", f"Glassformer reads {known}."
        )
    architectures = [KIN[kind]] if kind in KIN else list(families[kind].architectures)
    architecture = given[0] if isinstance(given, list) and given else None
    if kind in KIN or architecture not in architectures:
        known = ", ".join(name for name in architectures if name not in OUR_OWN)
        raise UserError(
            f"{origin(config)} has architectures = {given}, which cannot be read.", f"Glassformer reads {known}."
        )
    return families[kind], str(architecture)


@functools.cache
def _families() -> dict[str, Family]:
    tables = read_toml(Path(__file__).with_suffix(".toml"))
    for table in tables.values():
        if like := table.pop("like", None):
            table["weights"] = tables[like]["weights"] | table["weights"]
    return {name: parse(Family, table, f"huggingface.toml, {name}") for name, table in tables.items()}
