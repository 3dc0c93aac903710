"""What a file of sentence pairs looks like inside, told from its first lines: kind, header, columns or fields."""

import csv
import difflib
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from glassformer.data.counted import counted
from glassformer.data.lines import sample_lines
from glassformer.errors import UserError, require

Kind = Literal["tsv", "csv", "jsonl", "aligned"]

_SUFFIXES: dict[str, Kind] = {
    ".tsv": "tsv",
    ".tab": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
_SOURCES = ("source", "src", "input", "original")
_TARGETS = ("target", "tgt", "trg", "output", "translation")
_LANGUAGE_NAMES = """
    en de fr es it pt nl sv da nb nn no fi is et lv lt pl cs sk sl hr sr bs mk bg ru uk be ro hu el tr az kk uz ar he
    fa ur hi bn ta te mr gu pa ml kn si ne th vi ms tl sw am ha yo zu xh af ga cy eu ca gl sq hy ka mn zh ja ko la eo
    eng deu ger fra fre spa ita por nld swe rus ukr pol ces tur ara hin zho jpn kor english german french spanish
    italian portuguese dutch swedish danish norwegian finnish polish czech russian ukrainian turkish arabic
    hebrew hindi chinese japanese korean greek hungarian romanian latin indonesian
"""
_LANGUAGES = frozenset(_LANGUAGE_NAMES.split())


@dataclass(frozen=True)
class Layout:
    """Where in a file the two sides are."""

    kind: Kind = "aligned"
    delimiter: str = "\t"
    header: bool = False
    n_columns: int = 2
    columns: tuple[int, int] = (0, 1)
    fields: tuple[str, str] = ("source", "target")  # their names; in JSON lines a dot leads into an object
    notes: tuple[str, ...] = ()

    @property
    def reading(self) -> str:
        """How the file is read, in one line, for comparison; two that differ in their notes only read alike."""
        return repr(replace(self, notes=()))


def kind_by_name(path: Path) -> Kind | None:
    """What the name says, .gz or not."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return _SUFFIXES.get(suffixes[-1]) if suffixes else None


def kind_of(path: Path, lines: list[str]) -> Kind:
    """What the name says, or else the first line that holds anything."""
    first = next(filter(str.strip, lines), "").lstrip()
    return kind_by_name(path) or ("jsonl" if first.startswith("{") else "tsv")


def guess_layout(path: Path, source: str | None, target: str | None) -> Layout:
    """The layout of one file that holds both sides."""
    lines = [line.decode("utf-8", errors="replace") for line in sample_lines(path)]
    kind = kind_of(path, lines)
    if kind == "jsonl":
        return _json_layout(path, lines, source, target)
    delimiter = "\t" if kind == "tsv" else find_delimiter(lines)
    rows = filled_rows(path, kind, lines, delimiter)
    # The most common number of columns; of equals the greater.
    n_columns = max(Counter(map(len, rows)).items(), key=lambda item: (item[1], item[0]))[0]
    require(
        n_columns > 1,
        f"{path} has one column, but pairs need two.",
        "Put a tab between source and target (.tsv), or commas (.csv), or give two aligned files.",
    )
    return _table_layout(path, kind, delimiter, [cell.strip() for cell in rows[0]], n_columns, source, target)


def guess_names(names: list[str]) -> tuple[int, int] | None:
    """Places of source and target among names that say so: source/target, src/tgt, or two languages."""
    plain = [name.strip().lower() for name in names]
    sources = [i for i, name in enumerate(plain) if name in _SOURCES]
    targets = [i for i, name in enumerate(plain) if name in _TARGETS]
    if sources and targets:
        return sources[0], targets[0]
    languages = [i for i, name in enumerate(plain) if re.sub(r"[-_][a-z]{2,4}$", "", name) in _LANGUAGES]
    if len(languages) == 2 and plain[languages[0]] != plain[languages[1]]:
        return languages[0], languages[1]
    return None


def read_field(record: dict[str, Any], name: str) -> Any:
    """The value under a name, or, along its dots, inside nested objects; None if there is none."""
    if name in record:
        return record[name]
    value: Any = record
    for key in name.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _table_layout(
    path: Path, kind: Kind, delimiter: str, first: list[str], n_columns: int, source: str | None, target: str | None
) -> Layout:
    header, notes = False, []
    columns: tuple[int, int] = (0, 1)
    fields = Layout.fields
    if source is not None and target is not None:
        if source.isdecimal() and target.isdecimal() and not {source, target} <= set(first):
            columns = (int(source) - 1, int(target) - 1)
            fit = all(0 <= column < n_columns for column in columns)
            require(fit, f"{path} has {n_columns} columns, but {source} and {target} were asked for.", "Count from 1.")
        else:
            check_names(path, "column", [source, target], first)
            header, columns = True, (first.index(source), first.index(target))
    elif (found := guess_names(first)) is not None:
        header, columns = True, found
    if header:
        fields = (first[columns[0]], first[columns[1]])
        shift, note = header_shift(path, first, n_columns)
        columns = (columns[0] + shift, columns[1] + shift)
        notes += [f"The first line is a header; {fields[0]} is the source, {fields[1]} the target.", *note]
    elif n_columns > 2 and source is None:
        notes.append(f"There are {n_columns} columns; the first two are used.")
    return Layout(kind, delimiter, header, n_columns, columns, fields, tuple(notes))


def _json_layout(path: Path, lines: list[str], source: str | None, target: str | None) -> Layout:
    records = [record for record in map(json_object, lines) if record]
    require(
        bool(records),
        f"{path} holds no JSON object in its first {counted(len(lines), 'line')}.",
        'Each line is to be one object, such as {"source": "…", "target": "…"}.',
    )
    leaves = [leaf for record in records for leaf in _leaves(record)]
    every = list(dict.fromkeys(name for name, _ in leaves))
    texts = list(dict.fromkeys(name for name, value in leaves if isinstance(value, str)))
    if source is not None and target is not None:
        # In a nested object a language may be asked for by its last name.
        full = {name.rpartition(".")[2]: name for name in texts} | {name: name for name in texts}
        check_names(path, "field", [source, target], list(full))
        return Layout("jsonl", fields=(full[source], full[target]))
    names = [name.removeprefix("translation.") for name in texts]
    found = guess_names(names) or ((0, 1) if len(texts) == 2 else None)
    if found is None:
        labelled = "; a text and its label: check with --task classify, --text and --label"
        raise UserError(
            f"{path} does not say which fields are source and target; it has {', '.join(every)[:300] or 'none'}.",
            f"Name them with --source and --target{labelled if len(texts) == 1 < len(every) else ''}.",
        )
    fields = (texts[found[0]], texts[found[1]])
    return Layout("jsonl", fields=fields, notes=(f"{fields[0]} is the source, {fields[1]} the target.",))


def header_shift(path: Path, names: list[str], n_columns: int) -> tuple[int, list[str]]:
    """How far the columns lie to the right of their names, and a sentence on it: R gives its row numbers no name."""
    if len(names) == n_columns:
        return 0, []
    require(
        len(names) + 1 == n_columns,
        f"The header of {path} has {counted(len(names), 'column')}, but its lines have {n_columns}.",
        "Give each column one name.",
    )
    return 1, ["The header has one name less than there are columns: the first column is taken for row numbers."]


def check_names(
    path: Path, what: str, asked: list[str], known: list[str], options: str = "two of these with --source and --target"
) -> None:
    """Refuse names that the file does not have."""
    missing = [name for name in asked if name not in known]
    if not missing:
        return
    near = difflib.get_close_matches(missing[0], known, n=1, cutoff=0.5)
    shown = ", ".join(known[:12])
    raise UserError(
        f"{path} has no {what} {' and no '.join(map(repr, missing))}; it has {shown[:300]}.",
        f"Did you mean {near[0]}?" if near else f"Choose {options}.",
    )


def json_object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _leaves(record: dict[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """All fields with their values, those of objects inside by names with a dot."""
    for name, value in record.items():
        if isinstance(value, dict) and not prefix:
            yield from _leaves(value, f"{name}.")
        else:
            yield prefix + name, value


def find_delimiter(lines: list[str]) -> str:
    """Of comma, semicolon and tab the one that gives most rows the same columns; the comma, if in doubt."""

    def agreement(delimiter: str) -> int:
        widths = Counter(len(row) for row in split_rows("csv", lines, delimiter))
        return max((n for width, n in widths.items() if width > 1), default=0)

    return max(",;\t", key=agreement)


def split_rows(kind: Kind, lines: list[str], delimiter: str) -> list[list[str]]:
    if kind == "tsv":
        return [line.split("\t") for line in lines]
    rows: list[list[str]] = []
    reader = csv.reader((line + "\n" for line in lines), delimiter=delimiter)
    while True:
        try:
            rows.append(next(reader))
        except StopIteration:
            return rows
        except csv.Error:
            continue


def filled_rows(path: Path, kind: Kind, lines: list[str], delimiter: str) -> list[list[str]]:
    """The rows that hold anything; that there are none is an error."""
    rows = [row for row in split_rows(kind, lines, delimiter) if any(map(str.strip, row))]
    require(
        bool(rows),
        f"{path} holds nothing that can be read in its first {counted(len(lines), 'line')}.",
        "Check that it is a table with its cells filled.",
    )
    return rows
