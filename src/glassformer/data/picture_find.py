"""Where labelled pictures are: a folder for each class, a table of paths and labels, IDX files, or arrays (NPZ, NPY).

Deliberately not here: unpacking them (`pictures`), and one picture alone (`picture_file`).
"""

import os
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.data.counted import counted
from glassformer.data.idx import is_idx, labels_beside, read_idx
from glassformer.data.labelled import open_labelled, read_labelled
from glassformer.data.labelled_layout import Columns
from glassformer.data.labels import Raw
from glassformer.data.layout import find_delimiter, json_object, kind_by_name, kind_of, split_rows
from glassformer.data.lines import sample_lines
from glassformer.data.picture_file import is_picture_name
from glassformer.data.series import X_NAMES, labels_of, load_arrays, pick_array
from glassformer.errors import require

NAMES = (*X_NAMES, "images", "pictures")
PARTS = {"train", "test", "valid", "val", "dev", "training", "testing", "validation"}


@dataclass(frozen=True)
class FiledPictures:
    """Pictures that are files, each with the place that a person finds it at."""

    files: list[Path]
    labels: list[Raw]  # empty where nothing says what they show
    places: list[str]
    are_classes: bool = False  # whatever the labels look like


@dataclass(frozen=True)
class ArrayedPictures:
    """Pictures that are rows of an array (n, h, w, c), in whatever numbers it has."""

    values: NDArray[Any]
    labels: list[Raw]
    places: list[str]
    are_classes: bool = False


@dataclass(frozen=True)
class PictureFiles:
    """All that was found, unread; `skipped` says what is no picture, for people."""

    paths: tuple[Path, ...]
    parts: list[FiledPictures | ArrayedPictures]
    skipped: list[str]

    @property
    def are_classes(self) -> bool:
        """Whether labels are classes by where they come from: names of folders, or whole numbers of IDX."""
        return all(part.are_classes for part in self.parts)


def holds_pictures(path: Path, columns: Columns, arrays: bool = False) -> bool:
    """Whether it is pictures, by what lies there; `arrays` takes (n, h, w) floats for them too, not for series."""
    if path.is_dir() or is_picture_name(path.name) or is_idx(path):
        return True
    if path.suffix.lower() in (".npz", ".npy"):
        shape, kind = _array_shape(path)
        return len(shape) == 4 or (len(shape) == 3 and (kind == "u1" or arrays))
    return path.is_file() and _path_column(path, columns) is not None


def looks_like_pictures(path: Path) -> bool:
    """The same where anything may lie there: of a folder, whether the folders in it hold pictures."""
    if path.is_dir():
        return any(is_picture_name(file.name) for file in path.glob("*/*"))
    return holds_pictures(path, Columns())


def find_pictures(
    paths: Sequence[Path], columns: Columns | None = None, labels: Path | None = None, labelled: bool = True
) -> PictureFiles:
    """Look everywhere; without `labelled` no labels are asked for, and a folder may hold pictures as it likes."""
    require(bool(paths), "No pictures were given.", "Give a folder with a folder for each class.")
    require(labels is None or len(paths) == 1, "A file of labels belongs to one file of pictures.", "Give one file.")
    skipped: list[str] = []
    parts = [_find(path, columns or Columns(), labels, labelled, skipped) for path in paths]
    return PictureFiles(tuple(paths), parts, skipped)


def _find(
    path: Path, columns: Columns, labels: Path | None, labelled: bool, skipped: list[str]
) -> FiledPictures | ArrayedPictures:
    require(path.exists(), f"There is no file or folder {path}.", "Check the name.")
    if path.suffix.lower() in (".npz", ".npy"):
        return _in_arrays(path, labels)
    if is_idx(path):
        return _in_idx(path, labels, labelled)
    require(labels is None, f"{path} has its labels in itself.", "Leave out --labels.")
    if path.is_dir():
        return _in_folders(path, skipped) if labelled else _anywhere(path)
    if is_picture_name(path.name) or (not labelled and kind_by_name(path) is None):
        require(
            not labelled,
            f"{path} is one picture, of which nobody says what it shows.",
            "Give a folder with a folder for each class, or a table of paths and labels.",
        )
        return FiledPictures([path], [], [str(path)])
    return _in_table(path, columns, skipped)


def _in_folders(folder: Path, skipped: list[str]) -> FiledPictures:
    """A class is the name of a folder in the folder; below it pictures may lie anywhere."""
    found = FiledPictures([], [], [], are_classes=True)
    classes = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    arrays = sorted(path for path in folder.glob("*images*") if is_idx(path))
    require(not arrays, f"{folder} holds IDX files.", f"Name the one to read, such as {arrays[0] if arrays else ''}.")
    named = {path.name.lower() for path in classes}
    require(
        not named or not named <= PARTS,
        f"{folder} holds no folder for each class, but the parts {', '.join(sorted(named))}.",
        f"Name the part: {folder / classes[0].name if classes else folder}.",
    )
    for one in classes:
        for file in _walk(one):
            if is_picture_name(file.name):
                found.files.append(file)
                found.labels.append(one.name)
                found.places.append(str(file))
            else:
                skipped.append(f"{file} is no picture by its name")
    skipped += [f"{f} lies beside the classes" for f in sorted(folder.iterdir()) if is_picture_name(f.name)]
    require(
        bool(found.files),
        f"{folder} has no folders with pictures in them.",
        "Make a folder for each class and put its pictures there, or give a table of paths and labels.",
    )
    return found


def _anywhere(folder: Path) -> FiledPictures:
    files = [file for file in _walk(folder) if is_picture_name(file.name)]
    require(bool(files), f"{folder} holds no pictures.", "Check the name.")
    return FiledPictures(files, [], [str(file) for file in files])


def _walk(folder: Path) -> Iterator[Path]:
    """All files below, in order; hidden ones are left out."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(place) / name for name in sorted(names) if not name.startswith("."))


def _in_table(path: Path, columns: Columns, skipped: list[str]) -> FiledPictures:
    """Paths count from the table's folder."""
    column = _path_column(path, columns)
    asked = columns if column is None or columns.text else Columns(column, columns.text2, columns.label)
    found = read_labelled(open_labelled([path], asked))
    require(found.n_texts == 1, f"{path} has two paths a line.", "Name one of them with --text.")
    skipped += [f"{where} line {bad.line} {bad.reason}" for where, bad in found.bad]
    names = [example.texts[0] for example in found.examples]
    return FiledPictures(
        [path.parent / name for name in names],
        [example.label for example in found.examples],
        [f"{e.place}: {name}" for e, name in zip(found.examples, names, strict=True)],
    )


def _path_column(path: Path, columns: Columns) -> str | None:
    """The column or field of a table in which most values end as the names of pictures do."""
    lines = [line.decode("utf-8", errors="replace") for line in sample_lines(path, 100)]
    kind = kind_of(path, lines)
    if kind == "jsonl":
        rows = [record for record in map(json_object, lines) if record]
        names = [columns.text] if columns.text else list(rows[0]) if rows else []
        return next((name for name in names if _are_names([row.get(name) for row in rows])), None)
    delimiter = "\t" if kind == "tsv" else find_delimiter(lines)
    cells = [row for row in split_rows(kind, lines, delimiter) if len(row) > 1]
    for i, name in enumerate(cells[0] if cells else []):
        if _are_names([row[i] for row in cells[1:] or cells if i < len(row)]):
            # What does not look like a path itself is the column's name.
            return str(i + 1) if is_picture_name(name.strip()) else name.strip()
    return None


def _are_names(values: list[Any]) -> bool:
    n = sum(isinstance(value, str) and is_picture_name(value.strip()) for value in values)
    return n * 2 > len(values)


def _in_idx(path: Path, labels: Path | None, labelled: bool) -> ArrayedPictures:
    values = _with_channels(path, read_idx(path))
    if not labelled and labels is None:
        return ArrayedPictures(values, [], _numbered(path, len(values)))
    beside = labels or labels_beside(path)
    found = read_idx(beside)
    require(
        found.shape == (len(values),),
        f"{path} has {counted(len(values), 'picture')}, but {beside} has labels of shape {found.shape}.",
        "Give one label for each picture.",
    )
    names: list[Raw] = [str(label) for label in found.tolist()]
    return ArrayedPictures(values, names, _numbered(path, len(values)), are_classes=found.dtype.kind in "iu")


def _in_arrays(path: Path, labels: Path | None) -> ArrayedPictures:
    arrays = load_arrays(path)
    values = _with_channels(path, pick_array(path, arrays, NAMES, "pictures"))
    found = labels_of(path, arrays, labels) or []
    require(
        len(found) in (0, len(values)),
        f"{path} has {counted(len(values), 'picture')}, but {counted(len(found), 'label')}.",
        "Give one label for each picture.",
    )
    return ArrayedPictures(values, found, _numbered(path, len(values)))


def _with_channels(path: Path, values: NDArray[Any]) -> NDArray[Any]:
    """(n, h, w, c) with 1 or 3 channels; what is transparent is not known of arrays."""
    shape = values.shape
    values = values[..., None] if values.ndim == 3 else values
    if values.ndim == 4 and values.shape[3] not in (1, 3) and values.shape[1] in (1, 3):
        values = np.moveaxis(values, 1, 3)  # channels first, as torch has them
    require(
        values.ndim == 4 and values.shape[3] in (1, 3) and values.size > 0,
        f"{path}: the pictures have shape {shape}.",
        "It is to be (pictures, height, width), or with 1 or 3 channels at the end.",
    )
    require(values.dtype.kind in "fiub", f"{path}: pictures of type {values.dtype} are no numbers.", "Save bytes.")
    sound = values.dtype.kind != "f" or bool(np.isfinite(values).all())
    require(sound, f"{path} has a value that is not a number.", "Correct or leave it out.")
    return values


def _numbered(path: Path, n: int) -> list[str]:
    return [f"{path} picture {i + 1}" for i in range(n)]


def _array_shape(path: Path) -> tuple[tuple[int, ...], str]:
    """Shape and type of the pictures in a file, without reading them; nothing if it cannot be told."""
    try:
        if path.suffix.lower() == ".npy":
            with path.open("rb") as file:
                return _header(file)
        with zipfile.ZipFile(path) as archive:
            name = next(name for name in NAMES if f"{name}.npy" in archive.namelist())
            with archive.open(f"{name}.npy") as member:
                return _header(member)
    except Exception:  # reading it will say what is wrong
        return (), ""


def _header(file: Any) -> tuple[tuple[int, ...], str]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype.str[1:]
