"""Rows of tables and records of JSON lines, one at a time with their line; one that cannot be read says why.

Tabs part the cells of a TSV file and nothing else does: a double quote there is a character like any other.
"""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glassformer.data.counted import counted
from glassformer.data.lines import LONGEST, read_lines

NOT_UTF_8 = "is not UTF-8"
EMPTY = "is empty"
ENDLESS = f"is longer than {LONGEST:,} bytes"
HALF = "has half of a character (a lone surrogate)"

Row = tuple[str, ...] | str  # the cells that were asked for, or why there are none: "line 7 has 1 column, not 2"


@dataclass(frozen=True)
class BadLine:
    """A line that cannot be used; the reason goes on from "line 7 ...": "has 1 column, not 2"."""

    line: int
    reason: str


@dataclass(frozen=True)
class Table:
    """How to read a file of cells, and which columns are wanted; "\\t" means TSV, anything else CSV."""

    delimiter: str
    header: bool
    n_columns: int
    columns: tuple[int, ...]


def table_rows(path: Path, table: Table, quoted: bool) -> Iterator[tuple[int, Row]]:
    return _csv_rows(path, table) if quoted else _tsv_rows(path, table)


def json_records(path: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Each line's object, or why it is none."""
    for number, raw in enumerate(read_lines(path), start=1):
        yield number, _json_record(raw)


def decoded(cells: list[bytes]) -> Row:
    if max(map(len, cells)) > LONGEST:
        return ENDLESS
    try:
        return tuple(cell.decode("utf-8") for cell in cells)
    except UnicodeDecodeError:
        return NOT_UTF_8


def whole(cells: tuple[str, ...], reason: str) -> Row:
    """The cells, if each is made of whole characters."""
    try:
        "".join(cells).encode("utf-8")
    except UnicodeEncodeError:
        return reason
    return cells


def _tsv_rows(path: Path, table: Table) -> Iterator[tuple[int, Row]]:
    header = table.header
    for number, raw in enumerate(read_lines(path), start=1):
        cells = raw.split(b"\t")
        if header and raw.strip():
            header = False
        elif len(raw) > LONGEST:
            yield number, ENDLESS
        elif len(cells) != table.n_columns:
            yield number, _wrong_columns(len(cells) if raw.strip() else 0, table)
        else:
            yield number, decoded([cells[column] for column in table.columns])


def _csv_rows(path: Path, table: Table) -> Iterator[tuple[int, Row]]:
    """Records, which may span lines; one that cannot be used says so for each of its lines, so that none is lost."""
    record: list[str] = []  # the lines of the record that is being read

    def lines() -> Iterator[str]:
        # Bytes that are not UTF-8 become lone surrogates, which `whole` finds again in the field where they stand.
        for line in read_lines(path):
            record.append(line.decode("utf-8", errors="surrogateescape") + "\n")
            yield record[-1]

    reader = csv.reader(lines(), delimiter=table.delimiter)
    header = table.header
    while True:
        number = reader.line_num + 1
        record.clear()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            long = "field larger" in str(error)
            row: Row = "has a field that is far too long, or a quote that never closes" if long else "is not CSV"
        else:
            if header and any(map(str.strip, cells)):
                header = False
                continue
            row = _csv_row(cells, record, table)
        if isinstance(row, str):
            yield from ((number + i, row) for i in range(len(record)))
        else:
            yield number, row


def _csv_row(cells: list[str], record: list[str], table: Table) -> Row:
    """The cells that are wanted of a record that was read from these lines."""
    spans = f"that spans {len(record):,} lines: a quote may never close"
    if len(cells) != table.n_columns:
        n = len(cells) if any(map(str.strip, cells)) else 0
        if n and len(record) > 1:
            return f"is in a record of {counted(n, 'column')}, not {table.n_columns}, {spans}"
        return _wrong_columns(n, table)
    if len(record) > 1 and not _closes(record, table):
        return f"is in a record {spans}"
    return whole(tuple(cells[column] for column in table.columns), NOT_UTF_8)


def _closes(record: list[str], table: Table) -> bool:
    """Whether each quote that opens a cell closes at its end.

    One that does not goes on up to where another cell's quote opens, or to the end of the file, and the number of
    columns may be right by chance. The reader minds it only if asked to; lines on their own are taken as they are.
    """
    try:
        list(csv.reader(record, delimiter=table.delimiter, strict=True))
    except csv.Error:
        return False
    return True


def _json_record(raw: bytes) -> dict[str, Any] | str:
    if len(raw) > LONGEST:
        return ENDLESS
    if not raw.strip():
        return EMPTY
    try:
        record = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return NOT_UTF_8
    except (ValueError, RecursionError):
        return "is not JSON"
    return record if isinstance(record, dict) else "is not a JSON object"


def _wrong_columns(n: int, table: Table) -> str:
    return f"has {counted(n, 'column')}, not {table.n_columns}" if n else EMPTY
