"""Sentence pairs from files, one at a time: TSV, CSV, JSON lines or two aligned text files, plain or gzip.

A line that cannot be used comes as a BadLine with its number; nothing is dropped in silence, and no corpus is held in
memory. Deliberately not here: what pairs look like as a whole (`check`), and ids (`tokenizer`, `store`).
"""

import csv
import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from glassformer.data.layout import Layout, guess_layout, kind_by_name, read_field
from glassformer.data.lines import LONGEST, check_text, count_lines, fingerprint, read_lines
from glassformer.errors import UserError, require

__all__ = ["BadLine", "Pair", "PairFiles", "fingerprint", "open_pairs", "read_pairs"]

MAX_CHARACTERS = 10_000  # of one side: a document, not a sentence; attention over it would fill the memory
TOO_LONG = f"is longer than {MAX_CHARACTERS:,} characters"
NOT_UTF_8 = "is not UTF-8"
EMPTY = "is empty"


@dataclass(frozen=True)
class Pair:
    """A sentence and its translation, without white space around them; lines count from 1."""

    line: int
    source: str
    target: str


@dataclass(frozen=True)
class BadLine:
    """A line that cannot be used; the reason goes on from "line 7 ...": "has 1 column, not 2"."""

    line: int
    reason: str


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


Row = tuple[str, str] | str  # both sides, or why there are none


def open_pairs(paths: Iterable[str | Path], source: str | None = None, target: str | None = None) -> PairFiles:
    """Look at the files and say how to read them; whatever makes them useless as a whole is a UserError."""
    files = tuple(Path(path) for path in paths)
    given = f"{len(files)} files were given: {', '.join(map(str, files))}." if files else "No file was given."
    require(len(files) in (1, 2), given, "Give one file of pairs, or two aligned text files.")
    named = source is not None or target is not None
    for path in files:
        check_text(path)
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
        case "tsv":
            rows = _tsv_rows(files.paths[0], layout)
        case "csv":
            rows = _csv_rows(files.paths[0], layout)
        case "jsonl":
            rows = _json_rows(files.paths[0], layout)
    for line, row in rows:
        yield BadLine(line, row) if isinstance(row, str) else _judge(line, *row)


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
        f"{first} has {n_first:,} lines, but {second} has {n_second:,}.",
        "Line n of one file is to be the translation of line n of the other.",
    )


def _aligned_rows(first: Path, second: Path) -> Iterator[tuple[int, Row]]:
    pairs = itertools.zip_longest(read_lines(first), read_lines(second))
    for number, (source, target) in enumerate(pairs, start=1):
        if source is None or target is None:
            raise UserError(f"{first} and {second} no longer have the same number of lines.", "Start again.")
        yield number, _decoded(source, target)


def _tsv_rows(path: Path, layout: Layout) -> Iterator[tuple[int, Row]]:
    source, target = layout.columns
    header = layout.header
    for number, raw in enumerate(read_lines(path), start=1):
        cells = raw.split(b"\t")
        if header and raw.strip():
            header = False
        elif len(raw) > LONGEST:
            yield number, TOO_LONG
        elif len(cells) != layout.n_columns:
            yield number, _wrong_columns(len(cells) if raw.strip() else 0, layout)
        else:
            yield number, _decoded(cells[source], cells[target])


def _csv_rows(path: Path, layout: Layout) -> Iterator[tuple[int, Row]]:
    # Bytes that are not UTF-8 become lone surrogates, which _whole finds again in the field where they stand.
    texts = (line.decode("utf-8", errors="surrogateescape") + "\n" for line in read_lines(path))
    reader = csv.reader(texts, delimiter=layout.delimiter)
    source, target = layout.columns
    header = layout.header
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            long = "field larger" in str(error)
            yield number, "has a field that is far too long, or a quote that never closes" if long else "is not CSV"
            continue
        if header and any(map(str.strip, cells)):
            header = False
        elif len(cells) != layout.n_columns:
            yield number, _wrong_columns(len(cells) if any(map(str.strip, cells)) else 0, layout)
        else:
            yield number, _whole(cells[source], cells[target], NOT_UTF_8)


def _json_rows(path: Path, layout: Layout) -> Iterator[tuple[int, Row]]:
    for number, raw in enumerate(read_lines(path), start=1):
        yield number, _json_row(raw, layout)


def _json_row(raw: bytes, layout: Layout) -> Row:
    if len(raw) > LONGEST:
        return TOO_LONG
    if not raw.strip():
        return EMPTY
    try:
        record = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return NOT_UTF_8
    except (ValueError, RecursionError):
        return "is not JSON"
    if not isinstance(record, dict):
        return "is not a JSON object"
    source, target = (read_field(record, name) for name in layout.fields)
    for name, value in zip(layout.fields, (source, target), strict=True):
        if not isinstance(value, str):
            return f"has no text in the field {name}"
    return _whole(source, target, "has half of a character (a lone surrogate)")


def _decoded(source: bytes, target: bytes) -> Row:
    if max(len(source), len(target)) > LONGEST:
        return TOO_LONG
    try:
        return source.decode("utf-8"), target.decode("utf-8")
    except UnicodeDecodeError:
        return NOT_UTF_8


def _whole(source: str, target: str, reason: str) -> Row:
    try:
        (source + target).encode("utf-8")
    except UnicodeEncodeError:
        return reason
    return source, target


def _wrong_columns(n: int, layout: Layout) -> str:
    return f"has {n} column{'s' * (n != 1)}, not {layout.n_columns}" if n else EMPTY
