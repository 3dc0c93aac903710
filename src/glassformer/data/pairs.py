"""Sentence pairs from files, one at a time: TSV, CSV, JSON lines or two aligned text files, plain or gzip.

A line that cannot be used comes as a BadLine with its number; nothing is dropped in silence, and no corpus is held in
memory. Deliberately not here: what pairs look like as a whole (`check`), and ids (`tokenizer`, `store`).
"""

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from glassformer.data.counted import counted
from glassformer.data.layout import Layout, guess_layout, kind_by_name, read_field
from glassformer.data.lines import check_line_ends, check_text, count_lines, fingerprint, read_lines
from glassformer.data.rows import (
    EMPTY,
    ENDLESS,
    HALF,
    BadLine,
    Row,
    Table,
    decoded,
    json_records,
    table_rows,
    whole,
)
from glassformer.errors import UserError, require

__all__ = ["BadLine", "Pair", "PairFiles", "fingerprint", "open_pairs", "read_pairs"]

MAX_CHARACTERS = 10_000  # of one side: a document, not a sentence; attention over it would fill the memory
_CODE = re.compile(r"[a-z]{2}([-_][a-z]{2,4})?")
TOO_LONG = f"is longer than {MAX_CHARACTERS:,} characters"


@dataclass(frozen=True)
class Pair:
    """A sentence and its translation, without white space around them; lines count from 1."""

    line: int
    source: str
    target: str


@dataclass(frozen=True)
class PairFiles:
    """One file of pairs, or two aligned files, and how to read them; made by `open_pairs`."""

    paths: tuple[Path, ...]
    source: str | None = None
    target: str | None = None
    layout: Layout = field(default_factory=Layout)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know about how the file is read, in sentences."""
        return self.layout.notes

    @property
    def languages(self) -> tuple[str, str] | None:
        """What the names of two files (train.en, train.de) or of the columns say, if they are codes of languages."""
        if len(self.paths) == 2:
            names = [path.name.removesuffix(".gz").rpartition(".")[2] for path in self.paths]
        else:
            names = [name.rpartition(".")[2] for name in self.layout.fields]
        source, target = (name.lower() for name in names)
        return (source, target) if source != target and all(map(_CODE.fullmatch, (source, target))) else None

    @property
    def identity(self) -> str:
        """Changes with the contents and with how they are read: with the sides exchanged they are other data."""
        return f"{fingerprint(self.paths)} {self.layout.reading}"


def open_pairs(paths: Iterable[str | Path], source: str | None = None, target: str | None = None) -> PairFiles:
    """Look at the files and say how to read them; whatever makes them useless as a whole is a UserError."""
    files = tuple(Path(path) for path in paths)
    given = f"{len(files)} files were given: {', '.join(map(str, files))}." if files else "No file was given."
    require(len(files) in (1, 2), given, "Give one file of pairs, or two aligned text files.")
    named = source is not None or target is not None
    for path in files:
        check_text(path)
        check_line_ends(path)
    if len(files) == 2:
        require(not named, "Two aligned files have no fields to choose.", "Leave out --source and --target.")
        _check_aligned(*files)
        return PairFiles(files)
    both = source is not None and target is not None and source != target
    require(
        both or not named,
        f"The source field is {source!r} and the target field {target!r}.",
        "Name two different ones with --source and --target, or none.",
    )
    return PairFiles(files, source, target, guess_layout(files[0], source, target))


def read_pairs(files: PairFiles) -> Iterator[Pair | BadLine]:
    """Every pair and every bad line, in the order of the file."""
    layout = files.layout
    match layout.kind:
        case "aligned":
            rows = _aligned_rows(*files.paths)
        case "tsv" | "csv":
            table = Table(layout.delimiter, layout.header, layout.n_columns, layout.columns)
            rows = table_rows(files.paths[0], table, quoted=layout.kind == "csv")
        case "jsonl":
            rows = _json_rows(files.paths[0], layout)
    for line, row in rows:
        if isinstance(row, str):
            yield BadLine(line, TOO_LONG if row == ENDLESS else row)
        else:
            yield _judge(line, *row)


def _judge(line: int, source: str, target: str) -> Pair | BadLine:
    source, target = source.strip(), target.strip()
    if not source or not target:
        return BadLine(line, f"has an empty {'source' if target else 'target'} side" if source or target else EMPTY)
    if max(len(source), len(target)) > MAX_CHARACTERS:
        return BadLine(line, TOO_LONG)
    return Pair(line, source, target)


def _check_aligned(first: Path, second: Path) -> None:
    for path in (first, second):
        kind = kind_by_name(path)
        require(
            kind is None,
            f"Two files were given, but {path} is a table of its own ({kind}).",
            "Give one file of pairs, or two aligned text files with one sentence a line.",
        )
    require(not first.samefile(second), f"{first} was given for both sides.", "Give one file for each language.")
    n_first, n_second = count_lines(first), count_lines(second)
    require(
        n_first == n_second,
        f"{first} has {counted(n_first, 'line')}, but {second} has {n_second:,}.",
        "Line n of one file is to be the translation of line n of the other.",
    )


def _aligned_rows(first: Path, second: Path) -> Iterator[tuple[int, Row]]:
    pairs = itertools.zip_longest(read_lines(first), read_lines(second))
    for number, (source, target) in enumerate(pairs, start=1):
        if source is None or target is None:
            raise UserError(f"{first} and {second} no longer have the same number of lines.", "Start again.")
        yield number, decoded([source, target])


def _json_rows(path: Path, layout: Layout) -> Iterator[tuple[int, Row]]:
    for number, record in json_records(path):
        yield number, record if isinstance(record, str) else _json_row(record, layout)


def _json_row(record: dict[str, Any], layout: Layout) -> Row:
    sides = tuple(read_field(record, name) for name in layout.fields)
    for name, value in zip(layout.fields, sides, strict=True):
        if not isinstance(value, str):
            return f"has no text in the field {name}"
    return whole(sides, HALF)
