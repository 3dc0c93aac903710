"""Ready-made settings by name: tiny to big for each shape, and the classical models. The data is in the TOML files.

A size may start from another one (`like = "name"`) and says only what differs.
"""

import difflib
import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from glassformer import config
from glassformer.errors import UserError
from glassformer.model.settings import ModelSettings


def load_size(name: str, changes: Iterable[str] = ()) -> ModelSettings:
    """The settings of that name, with changes written as on the command line (`decoder.n_layers=3`)."""
    settings: ModelSettings = config.parse(
        ModelSettings, config.override(load_size_data(name), changes), f"The size {name}"
    )
    return settings


def size_names() -> list[str]:
    return list(_tables())


def full_name(size: str, family: str) -> str:
    """tiny means translate-tiny in the family translate; a full name is taken as it is."""
    short = [name.removeprefix(f"{family}-") for name in size_names() if name.startswith(f"{family}-")]
    if size not in short and size not in size_names():
        raise UserError(f"There is no size {size!r}.", f"Choose {', '.join(short)}, or see `glassformer sizes`.")
    return f"{family}-{size}" if size in short else size


def describe_size(name: str) -> str:
    """One line on where the size comes from or what it is good for."""
    return str(_table(name)["about"])


@functools.cache
def _tables() -> dict[str, dict[str, Any]]:
    here = Path(__file__).parent
    return {name: table for path in sorted(here.glob("*.toml")) for name, table in config.read_toml(path).items()}


def _table(name: str) -> dict[str, Any]:
    if name not in _tables():
        near = difflib.get_close_matches(name, size_names(), n=1)
        hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(size_names())}."
        full = [each for each in size_names() if each.endswith(f"-{name}")]  # of tiny there is one for each task
        hint = f"Name it in full: {', '.join(full)}." if full else hint
        raise UserError(f"There is no size {name!r}.", hint)
    return _tables()[name]


def load_size_data(name: str) -> dict[str, Any]:
    """The same as plain data, unchecked, to be changed further."""
    table = {key: value for key, value in _table(name).items() if key != "about"}
    like = table.pop("like", None)
    return config.merge(load_size_data(like), table) if like else table
