"""TOML, command line and Python into frozen dataclasses, by one validator. Knows no model.

`parse` is the one way in: it collects every problem before it raises, and an unknown key answers with the nearest one.
"""

import dataclasses
import difflib
import functools
import json
import numbers
import re
import tomllib
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from glassformer.errors import UserError

T = TypeVar("T")

# The validator's kinds of errors, in words for people.
WANTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "tuple_type": "a list",
    "too_long": "a shorter list",
    "dataclass_type": "a group of settings",
    "dict_type": "a group of settings",
}


def parse(kind: type[T] | Any, data: Mapping[str, Any], origin: str = "the settings") -> T:
    """Checked settings of the given dataclass, or union of dataclasses, from plain data; "none" stands for None."""
    data = _with_kinds(kind, _with_none(data), "", origin)
    try:
        # JSON is read strictly, yet takes a list for a tuple and a table for a dataclass.
        checked: T = _adapter(kind).validate_json(  # type: ignore[arg-type]
            json.dumps(data, default=_plain), strict=True
        )
    except ValidationError as error:
        problems = [_explain(kind, details) for details in _relevant(error.errors())]
        raise UserError(f"{origin} cannot be used: {'; '.join(dict.fromkeys(problems))}.") from None
    return checked


def _plain(value: Any) -> Any:
    """What JSON has no word for: numbers of other libraries are numbers."""
    match value:
        case numbers.Integral():
            return int(value)
        case numbers.Real():
            return float(value)
        case _:
            return str(value)


@functools.cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def to_data(settings: Any) -> dict[str, Any]:
    """The reverse: plain data, ready for JSON or TOML."""
    data: dict[str, Any] = _adapter(type(settings)).dump_python(settings, mode="json")  # type: ignore[arg-type]
    return data


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"There is no file {path}.", "Check the name.") from None
    except IsADirectoryError:
        raise UserError(f"{path} cannot be read: it is a folder.", "Give a TOML file, as recipe.toml.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.", "Check the file.") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UserError(f"{path} cannot be read as TOML: line {line} is not UTF-8.", "Save it as UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} cannot be read as TOML: {error}.", "Correct it there.") from None


def override(data: Mapping[str, Any], assignments: Iterable[str]) -> dict[str, Any]:
    """A copy of the data with `a.b=c` put in; c is TOML where it can be read so, else a string."""
    result = _copy(data)
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        keys = [key.strip() for key in path.split(".")]
        if not equals or not all(keys):
            raise UserError(f"--set got {assignment!r}, which assigns nothing.", "Write it as --set part.name=value.")
        place = result
        for depth, key in enumerate(keys[:-1], start=1):
            place = place.setdefault(key, {})
            if not isinstance(place, dict):
                raise UserError(
                    f"--set got {assignment!r}, but {key} is a value, not a group of settings.",
                    f"Make it a group first: --set {'.'.join(keys[:depth])}={{}}.",
                )
        place[keys[-1]] = _value(text.strip())
    return result


def merge(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """Both together, `top` winning; a group whose `kind` changes is replaced, not mixed."""
    merged = dict(base)
    for key, value in top.items():
        old = merged.get(key)
        if (
            isinstance(old, Mapping)
            and isinstance(value, Mapping)
            and value.get("kind", old.get("kind")) == old.get("kind")
        ):
            merged[key] = merge(old, value)
        else:
            merged[key] = value
    return merged


def flatten(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """One level: `a.b` for b in the group a; "none" is None here too."""
    flat: dict[str, Any] = {}
    for key, value in _with_none(data).items():
        flat |= flatten(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat


def write_toml(data: Mapping[str, Any], prefix: str = "") -> str:
    """Plain data as TOML: values first, then one table for each group."""
    lines = [f"{_key(key)} = {_literal(value)}" for key, value in data.items() if not isinstance(value, Mapping)]
    for key, value in data.items():
        if isinstance(value, Mapping):
            name = f"{prefix}{_key(key)}"
            lines += ["", f"[{name}]", write_toml(value, f"{name}.").rstrip("\n")]
    return "\n".join(lines).strip("\n") + "\n"


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _literal(key)


def _literal(value: Any) -> str:
    match value:
        case None:
            return '"none"'
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'
        case list() | tuple():
            return "[" + ", ".join(_literal(item) for item in value) + "]"
        case Mapping():
            return "{" + ", ".join(f"{_key(key)} = {_literal(item)}" for key, item in value.items()) + "}"
        case _:
            raise TypeError(f"no TOML for {type(value)}")


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _copy(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _copy(value) if isinstance(value, Mapping) else value for key, value in data.items()}


def _with_none(data: Mapping[str, Any]) -> dict[str, Any]:
    """TOML and the command line have no None; they write "none"."""
    return {k: _with_none(v) if isinstance(v, Mapping) else None if v == "none" else v for k, v in data.items()}


def _with_kinds(kind: Any, data: Mapping[str, Any], path: str, origin: str) -> dict[str, Any]:
    """A copy where every union is told apart by `kind`: what was given, or what the other keys leave no doubt about."""
    members = _members(kind)
    kinds = {value: m for m in members for value in typing.get_args(typing.get_type_hints(m).get("kind"))}
    data = dict(data)
    if "kind" in data and kinds:
        if str(data["kind"]) not in kinds:
            hint = _suggest(str(data["kind"]), kinds)
            raise UserError(f"{origin} cannot be used: {path}kind is {data['kind']!r} ({hint}).")
        members = [kinds[str(data["kind"])]]
    elif len(members) > 1 and kinds:
        fit = [value for value, m in kinds.items() if data.keys() <= {field.name for field in dataclasses.fields(m)}]
        first = next(iter(kinds))
        if len(fit) > 1 and first not in fit:
            raise UserError(f"{origin} cannot be used: {path}kind is missing.", f"Set it to {' or '.join(fit)}.")
        data["kind"] = first if first in fit or not fit else fit[0]
        members = [kinds[data["kind"]]]
    hints = typing.get_type_hints(members[0]) if len(members) == 1 else {}
    for key, value in data.items():
        if isinstance(value, Mapping):
            data[key] = _with_kinds(hints.get(key), value, f"{path}{key}.", origin)
    return data


def _suggest(given: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(given, list(known), n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"


def _relevant(errors: list[ErrorDetails]) -> list[ErrorDetails]:
    """Of a union, only what was said about the member that the data means: the one whose `kind` fits."""
    refused = {e["loc"][:-1] for e in errors if e["loc"] and e["loc"][-1] == "kind" and e["type"] == "literal_error"}
    kept = [e for e in errors if not any(e["loc"][: len(r)] == r for r in refused)]
    return kept or errors


def _explain(kind: Any, error: ErrorDetails) -> str:
    names = {member.__name__: member for member in _dataclasses_in(kind)}
    keys = [str(part) for part in error["loc"] if part not in names]
    path = ".".join(keys)
    if error["type"] == "unexpected_keyword_argument":
        owner = _owner(kind, [str(part) for part in error["loc"][:-1]])
        known = [field.name for member in owner for field in dataclasses.fields(member)]
        return f"there is no setting {path} ({_suggest(keys[-1], known)})"
    if error["type"] == "missing":
        return f"{path} is missing"
    wanted = WANTED.get(error["type"]) or error["msg"].removeprefix("Input should be ")
    return f"{path or 'it'} is {error['input']!r}, but it must be {wanted}"


def _owner(kind: Any, loc: list[str]) -> list[type]:
    """The dataclasses that the path of keys and union members leads to."""
    here = _members(kind)
    for part in loc:
        named = [member for member in here if member.__name__ == part]
        here = named or [
            m
            for member in here
            for m in _members(typing.get_type_hints(member).get(part))
            if dataclasses.is_dataclass(m)
        ]
    return here


def _members(kind: Any) -> list[type]:
    """The dataclasses that a type, union or optional allows."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return [m for argument in typing.get_args(kind) for m in _members(argument)]
    return [kind] if isinstance(kind, type) and dataclasses.is_dataclass(kind) else []


def _dataclasses_in(kind: Any) -> set[type]:
    found: set[type] = set()
    waiting = _members(kind)
    while waiting:
        member = waiting.pop()
        if member not in found:
            found.add(member)
            waiting += [m for hint in typing.get_type_hints(member).values() for m in _members(hint)]
    return found
