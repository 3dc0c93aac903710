"""Series of vectors with labels: NPZ, NPY with a file of labels, or JSON lines. Nothing in them is ever executed.

An NPZ file holds `x` and `y`, and maybe `lengths`: x is (series, steps, features), padded at the end where there are
lengths; or (all steps, features), one series after the other. Without lengths x may be (series, steps): one number a
step. JSON lines have a field `vectors`, a list of vectors or of numbers, and a label.

f features of one vector
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.data.counted import counted
from glassformer.data.labelled import json_label
from glassformer.data.labels import Raw
from glassformer.data.layout import json_object, kind_by_name, read_field
from glassformer.data.lines import check_text, read_lines, sample_lines
from glassformer.data.rows import json_records
from glassformer.errors import UserError, require

Vectors = NDArray[np.float32]  # (steps, f)

X_NAMES = ("x", "X", "vectors", "data", "features")
Y_NAMES = ("y", "Y", "labels", "label", "targets")
LENGTH_NAMES = ("lengths", "length")
FIELD = "vectors"
SHOWN = 12  # names of arrays


@dataclass(frozen=True)
class Series:
    """All series of some files, their raw labels (none where a file has none) and where each comes from."""

    paths: tuple[Path, ...]
    values: list[Vectors]
    labels: list[Raw]
    places: list[str]

    @property
    def n_features(self) -> int:
        return int(self.values[0].shape[1])

    def keys(self) -> list[str]:
        """What tells two series apart."""
        return [hashlib.blake2b(values.tobytes(), digest_size=16).hexdigest() for values in self.values]

    def fingerprint(self) -> str:
        """Of what was read, so that other columns of the same files are other data."""
        total = hashlib.sha256("".join(self.keys()).encode())
        total.update(repr(([values.shape for values in self.values], self.labels)).encode())
        return total.hexdigest()

    def __str__(self) -> str:
        steps = [len(values) for values in self.values]
        what = f"{len(self.values):,} series of {counted(self.n_features, 'number')} a step"
        return f"{what}, {min(steps):,} to {counted(max(steps), 'step')}."


def holds_series(path: Path, field: str | None = None) -> bool:
    """Whether a file is one of vectors, by its name or by its first line."""
    if path.suffix.lower() in (".npz", ".npy"):
        return True
    if kind_by_name(path) != "jsonl" or not path.is_file():
        return False
    first = next((json_object(line.decode("utf-8", errors="replace")) for line in sample_lines(path, 1)), None)
    return first is not None and isinstance(read_field(first, field or FIELD), list)


def read_series(
    paths: Sequence[Path], labels: Path | None = None, field: str | None = None, label: str | None = None
) -> Series:
    """Read it all; `labels` belongs to an NPY file, the two names to JSON lines."""
    require(bool(paths), "No file was given.", "Give a file of labelled series.")
    require(labels is None or len(paths) == 1, "A file of labels belongs to one file of vectors.", "Give one file.")
    parts = [_read(path, labels, field or FIELD, label or "label") for path in paths]
    values = [row for part in parts for row in part.values]
    series = Series(
        tuple(paths), values, [y for part in parts for y in part.labels], [p for part in parts for p in part.places]
    )
    _check(series)
    return series


def _read(path: Path, labels: Path | None, field: str, label: str) -> Series:
    require(path.is_file(), f"There is no file {path}.", "Check the name.")
    if kind_by_name(path) == "jsonl":
        require(labels is None, f"{path} has its labels in itself.", "Leave out --labels.")
        return _read_json(path, field, label)
    arrays = load_arrays(path)
    x = pick_array(path, arrays, X_NAMES, "vectors")
    lengths = next((arrays[name] for name in LENGTH_NAMES if name in arrays), None)
    values = _cut(path, x, lengths)
    y = labels_of(path, arrays, labels)
    require(
        y is None or len(y) == len(values),
        f"{path} has {len(values):,} series, but {counted(0 if y is None else len(y), 'label')}.",
        "Give one label for each series.",
    )
    return Series((path,), values, y or [], [f"{path} series {i + 1}" for i in range(len(values))])


def load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
            return {"x": found} if isinstance(found, np.ndarray) else {name: found[name] for name in found.files}
    except (OSError, ValueError, EOFError, KeyError) as error:
        if "Object arrays" in str(error) or "pickle" in str(error):
            raise UserError(
                f"{path} holds Python objects, which could run code when read.",
                "Write ragged series one after the other as one array of numbers, and an array `lengths`.",
            ) from None
        raise UserError(f"{path} cannot be read as arrays: {str(error)[:200]}.", "Save it with numpy.savez.") from None
    except Exception as error:  # a broken zip has many ways to fail
        raise UserError(f"{path} is damaged: {str(error)[:200]}.", "Copy it again.") from None


def pick_array(path: Path, arrays: dict[str, NDArray[Any]], names: Sequence[str], what: str) -> NDArray[Any]:
    name = next((name for name in names if name in arrays), None)
    if name is None:
        shown = ", ".join([*list(arrays)[:SHOWN], *(["…"] if len(arrays) > SHOWN else [])])
        ragged = " Series of different lengths: x=numpy.concatenate(them), lengths=[len(one) for one in them]."
        raise UserError(
            f"{path} has no array of {what} ({', '.join(names)}); it has {shown[:300] or 'none'}.",
            f"Save it as numpy.savez(file, x=…, y=…).{ragged if what == 'vectors' else ''}",
        )
    return arrays[name]


def _cut(path: Path, x: NDArray[Any], lengths: NDArray[Any] | None) -> list[Vectors]:
    """One array for each series."""
    require(
        x.dtype.kind in "fiub",
        f"{path}: the vectors are of type {x.dtype}, which is no number.",
        "Save them as floats.",
    )
    require(
        x.ndim in (2, 3) and x.size > 0, f"{path}: x has shape {x.shape}.", "It is to be (series, steps, features)."
    )
    values = x.astype(np.float32)
    if lengths is None:
        return list(values if x.ndim == 3 else values[:, :, None])
    sound = lengths.ndim == 1 and lengths.dtype.kind in "iu" and bool((lengths > 0).all())
    require(sound, f"{path}: lengths are to be whole numbers above 0, one for each series.", "Correct them.")
    if x.ndim == 3:
        fits = len(lengths) == len(x) and int(lengths.max()) <= x.shape[1]
        require(fits, f"{path}: lengths do not fit x of shape {x.shape}.", "Give one for each series, up to its steps.")
        return [row[:n] for row, n in zip(values, lengths.tolist(), strict=True)]
    require(
        int(lengths.sum()) == len(x),
        f"{path}: lengths add up to {int(lengths.sum()):,}, but x has {len(x):,} steps.",
        "Write the series one after the other, and the length of each.",
    )
    return np.split(values, np.cumsum(lengths)[:-1])


def labels_of(path: Path, arrays: dict[str, NDArray[Any]], labels: Path | None) -> list[Raw] | None:
    """From the file of labels, or from the arrays; None if there are none."""
    if labels is not None and labels.suffix.lower() != ".npy":
        check_text(labels)
        return [line.decode("utf-8", errors="replace").strip() for line in read_lines(labels) if line.strip()]
    y = load_arrays(labels)["x"] if labels is not None else next((arrays[n] for n in Y_NAMES if n in arrays), None)
    if y is None:
        return None
    require(y.ndim in (1, 2), f"{path}: the labels have shape {y.shape}.", "Give one label for each example.")
    y = np.char.decode(y, "utf-8", "replace") if y.dtype.kind == "S" else y
    if y.ndim == 2 and y.shape[1] > 1:
        zeros_and_ones = bool(np.isin(y, (0, 1)).all())
        require(
            zeros_and_ones, f"{path}: labels in several columns are to be 0 or 1.", "Give one column, or such ones."
        )
        if bool((y.sum(axis=1) == 1).all()):  # one-hot: another way to write one class
            return [str(i) for i in y.argmax(axis=1).tolist()]
        return [tuple(str(i) for i in np.flatnonzero(row)) for row in y]
    return [str(value) for value in y.reshape(-1).tolist()]


def _read_json(path: Path, field: str, label: str) -> Series:
    check_text(path)
    values, labels, places = [], [], []
    for line, record in json_records(path):
        place = f"{path} line {line}"
        if isinstance(record, str):
            raise UserError(f"{place} {record}.", 'Write objects such as {"vectors": [[0.1, 0.2]], "label": "…"}.')
        values.append(as_vectors(read_field(record, field), place))
        places.append(place)
        found = json_label(read_field(record, label))
        if found is not None:
            labels.append(found)
    require(
        len(labels) in (0, len(values)),
        f"{path}: {len(values) - len(labels):,} of {len(values):,} lines have no field {label}.",
        "Name the field with --label.",
    )
    return Series((path,), values, labels, places)


def parse_series(line: str, number: int) -> Vectors:
    """One line of JSON: the vectors, or an object that has them."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise UserError(f"Line {number} is not JSON.", "Write a list of vectors on each line.") from None
    return as_vectors(value.get(FIELD) if isinstance(value, dict) else value, f"Line {number}")


def as_vectors(value: Any, place: str) -> Vectors:
    """Anything that is a series of vectors, or of numbers, as an array (steps, f)."""
    try:
        array = np.array(value, dtype=np.float32)
    except OverflowError:
        raise UserError(f"{place} has a number that is far too large.", "Correct or leave it out.") from None
    except (TypeError, ValueError):
        array = np.zeros(0, dtype=np.float32)
    if array.ndim == 1:
        array = array[:, None]
    require(
        array.ndim == 2 and array.size > 0,
        f"{place} has no vectors, or vectors of different widths.",
        "Give a list of vectors that are all as wide, or a list of numbers.",
    )
    return array


def _check(series: Series) -> None:
    width = series.n_features
    for values, place in zip(series.values, series.places, strict=True):
        require(
            values.shape[1] == width,
            f"{place} has {values.shape[1]} numbers a step, but {series.places[0]} has {width}.",
            "All vectors are to be as wide.",
        )
        require(
            bool(np.isfinite(values).all()), f"{place} has a value that is not a number.", "Correct or leave it out."
        )
