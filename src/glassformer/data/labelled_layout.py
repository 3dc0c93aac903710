"""Where in a file of labelled texts the texts and the label are, told from names or from what the columns hold."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from glassformer.data.counted import counted
from glassformer.data.labels import read_number
from glassformer.data.layout import (
    check_names,
    filled_rows,
    find_delimiter,
    guess_names,
    header_shift,
    json_object,
    kind_by_name,
    kind_of,
    read_field,
    split_rows,
)
from glassformer.data.lines import sample_lines
from glassformer.errors import UserError, require

PAIRS = (
    ("sentence1", "sentence2"),
    ("question1", "question2"),
    ("premise", "hypothesis"),
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("text", "text2"),
    ("#1 string", "#2 string"),
    ("question", "sentence"),
    ("query", "passage"),
)
_TEXT_NAMES = "text sentence review content document comment tweet message headline body utterance question query title"
_LABEL_NAMES = (
    "label labels class category gold_label is_duplicate quality score target sentiment rating intent topic tag"
)
TEXTS, LABELS = _TEXT_NAMES.split(), _LABEL_NAMES.split()
FEW, REPEATED = 20, 4  # different words at most, each so often, that can be nothing but labels
OPTIONS = "one of these with --text, --text2 and --label"


@dataclass(frozen=True)
class Columns:
    """What a person asked for: names, or numbers from 1."""

    text: str | None = None
    text2: str | None = None
    label: str | None = None

    @property
    def asked(self) -> list[str]:
        return [name for name in (self.text, self.text2, self.label) if name is not None]


@dataclass(frozen=True)
class LabelledLayout:
    """The file's kind, and its columns or fields: one or two texts, then the label."""

    kind: Literal["tsv", "csv", "jsonl"]
    delimiter: str = "\t"
    header: bool = False
    n_columns: int = 2
    columns: tuple[int, ...] = ()
    fields: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def as_columns(self) -> Columns:
        """To read another file of the same make in the same way; a header speaks for itself."""
        if self.kind == "jsonl" or self.header:
            return Columns()
        *texts, label = (str(i + 1) for i in self.columns)
        return Columns(texts[0], texts[1] if len(texts) > 1 else None, label)


@dataclass(frozen=True)
class _Profile:
    """What one column looks like."""

    n_distinct: int
    length: float  # characters in the mean
    is_numeric: bool
    has_spaces: bool


def guess_labelled(path: Path, asked: Columns) -> LabelledLayout:
    """The layout of one file, from its first lines and what was asked for."""
    lines = [line.decode("utf-8", errors="replace") for line in sample_lines(path)]
    kind = kind_of(path, lines)
    if kind == "jsonl":
        return _json_layout(path, lines, asked)
    assert kind != "aligned"
    delimiter = "\t" if kind == "tsv" else find_delimiter(lines)
    rows = [[cell.strip() for cell in row] for row in filled_rows(path, kind, lines, delimiter)]
    widths = [len(row) for row in rows]
    n_columns = max(sorted(set(widths)), key=lambda n: (widths.count(n), n))
    require(
        n_columns > 1,
        f"{path} has one column, but a text and its label need two.",
        "Put a tab between them (.tsv), or commas (.csv), or write JSON lines (.jsonl).",
    )
    shift, said = header_shift(path, rows[0], n_columns) if _names_columns(rows[0], asked) else (0, [])
    cells = [row for row in [[""] * shift + rows[0], *rows[1:]] if len(row) == n_columns]
    header = _is_header(cells, asked)
    names = cells[0] if header else None
    columns, note = _choose(path, names, cells[header:], n_columns, asked)
    return LabelledLayout(kind, delimiter, header, n_columns, columns, notes=(note, *said))


def holds_labels(path: Path) -> bool:
    """Whether names say label and not translation; or, without names, whether a table can be nothing but labelled."""
    kind = kind_by_name(path)
    if kind is None or not path.is_file():
        return False
    lines = [line.decode("utf-8", errors="replace") for line in sample_lines(path)]
    if kind == "jsonl":
        return _names_label(next((list(record) for record in map(json_object, lines) if record), []))
    rows = split_rows(kind, lines, "\t" if kind == "tsv" else find_delimiter(lines))
    cells = [[cell.strip() for cell in row] for row in rows if any(cell.strip() for cell in row)]
    return bool(cells) and (_names_label(cells[0]) or (guess_names(cells[0]) is None and _are_labelled(cells)))


def _names_label(names: list[str]) -> bool:
    plain = [name.strip().lower() for name in names]
    return guess_names(plain) is None and any(name in LABELS for name in plain)


def _are_labelled(rows: list[list[str]]) -> bool:
    """CoLA, or texts beside a few words that come again and again."""
    if _is_cola(rows):
        return True
    n = len(rows)
    profiles = [_profile(list(column)) for column in zip(*rows, strict=False)]
    few = [p for p in profiles if 1 < p.n_distinct <= min(FEW, n // REPEATED) and not p.has_spaces]
    texts = [p for p in profiles if p.n_distinct * 2 > n and p.has_spaces]
    return len(profiles) == 2 and len(few) == len(texts) == 1


def _choose(
    path: Path, names: list[str] | None, body: list[list[str]], n_columns: int, asked: Columns
) -> tuple[tuple[int, ...], str]:
    """The columns of texts and label, and a sentence on them."""
    known = [*(names or []), *map(str, range(1, n_columns + 1))]
    check_names(path, "column", [name for name in asked.asked if name not in known], names or known, OPTIONS)
    given = [None if name is None else _place(name, names) for name in (asked.text, asked.text2, asked.label)]
    text, text2, label = given
    profiles = [_profile([row[i] for row in body]) for i in range(n_columns)]
    if label is None:
        label = _label_column(path, names, body, profiles, [i for i in (text, text2) if i is not None])
    if text is None:
        guessed = _text_columns(names, profiles, label)
        text, text2 = guessed[0], text2 if text2 is not None or len(guessed) == 1 else guessed[1]
    texts = (text,) if text2 is None else (text, text2)
    require(
        len({*texts, label}) == len(texts) + 1,
        f"{path}: texts and label are to be different columns.",
        "Name each with --text, --text2 and --label.",
    )
    called = [repr(names[i]) if names else f"column {i + 1}" for i in (*texts, label)]
    first = "The first line is a header; " if names else "There is no header; "
    return (
        *texts,
        label,
    ), f"{first}{' and '.join(called[:-1])}: the text{'s' * (len(texts) - 1)}, {called[-1]}: the label."


def _names_columns(first: list[str], asked: Columns) -> bool:
    """Whether a line can be nothing but a header, whatever the others look like."""
    plain = {name.lower() for name in first}
    by_name = [name for name in asked.asked if not name.isdecimal()]
    return any(name in first for name in by_name) or bool(plain.intersection(LABELS) and plain & _ALL_TEXTS)


def _place(name: str, names: Sequence[str] | None) -> int:
    return names.index(name) if names and name in names else int(name) - 1


def _is_header(cells: list[list[str]], asked: Columns) -> bool:
    """Whether the first line has names: known ones, those asked for, or words where the others have labels."""
    first, body = cells[0], cells[1:]
    plain = [name.lower() for name in first]
    if any(name in first and not name.isdecimal() for name in asked.asked):
        return True
    if any(name in LABELS for name in plain) or sum(name in _ALL_TEXTS for name in plain) >= 2:
        return True
    if _is_cola(cells):
        return False
    columns = [[row[i] for row in body] for i in range(len(first))]
    recurring = any(name and name in values for name, values in zip(first, columns, strict=True))
    if body and any(name in _ALL_TEXTS for name in plain) and not recurring and not any(map(_is_number, first)):
        return True  # whatever stands beside "text" is no label that others have
    if len(body) < 4:
        return False
    for i, (name, values) in enumerate(zip(first, columns, strict=True)):
        numeric = all(map(_is_number, values)) and not _is_number(name) and name != ""
        repeated = 1 < len(set(values)) <= len(values) / 4 and name not in values
        if numeric or (repeated and plain[1 - i if len(first) == 2 else i] in _ALL_TEXTS):
            return True
    return False


_ALL_TEXTS = {*TEXTS, *(name for pair in PAIRS for name in pair)}


def _label_column(
    path: Path, names: list[str] | None, body: list[list[str]], profiles: list[_Profile], taken: list[int]
) -> int:
    plain = [name.lower() for name in names or []]
    for name in LABELS:
        if name in plain and plain.index(name) not in taken:
            return plain.index(name)
    if _is_cola(body):
        return 1
    longest = max(range(len(profiles)), key=lambda i: profiles[i].length)
    free = [i for i in range(len(profiles)) if i not in (taken or [longest])]
    if len(profiles) == 2 and not taken:  # labels are numbers, or repeat more than texts do
        return min((0, 1), key=lambda i: (not profiles[i].is_numeric, profiles[i].n_distinct, profiles[i].length))
    if len(free) == 1:
        return free[0]
    few = [i for i in free if 1 < profiles[i].n_distinct <= max(2, len(body) // 2) and not profiles[i].has_spaces]
    if len(few) == 1:
        return few[0]
    shown = ", ".join(names) if names else f"{len(profiles)} columns without names"
    raise UserError(f"{path} does not say which column is the label; it has {shown}.", "Name it with --label.")


def _text_columns(names: list[str] | None, profiles: list[_Profile], label: int) -> list[int]:
    plain = [name.lower() for name in names or []]
    for pair in PAIRS:
        if all(name in plain for name in pair):
            return [plain.index(name) for name in pair]
    for name in TEXTS:
        if name in plain and plain.index(name) != label:
            return [plain.index(name)]
    others = [i for i in range(len(profiles)) if i != label]
    if len(profiles) == 3 and all(profiles[i].has_spaces for i in others):
        return others
    return [max(others, key=lambda i: profiles[i].length)]


def _is_cola(rows: list[list[str]]) -> bool:
    """GLUE's CoLA has no header: source, label, the author's mark, sentence."""
    return all(len(row) == 4 and row[1] in ("0", "1") and len(row[2]) < 4 and " " not in row[0] for row in rows)


def _profile(values: list[str]) -> _Profile:
    length = float(np.mean([len(value) for value in values])) if values else 0.0
    spaces = sum(" " in value for value in values) * 2 > len(values)
    return _Profile(len(set(values)), length, all(map(_is_number, values)), spaces)


def _is_number(text: str) -> bool:
    return read_number(text) is not None


def _json_layout(path: Path, lines: list[str], asked: Columns) -> LabelledLayout:
    records = [record for record in map(json_object, lines) if record]
    require(
        bool(records),
        f"{path} holds no JSON object in its first {counted(len(lines), 'line')}.",
        'Each line is to be one object, such as {"text": "…", "label": "…"}.',
    )
    names = list(dict.fromkeys(name for record in records for name in record))
    missing = [name for name in asked.asked if all(read_field(record, name) is None for record in records)]
    check_names(path, "field", missing, names, OPTIONS)
    plain = {name.lower(): name for name in reversed(names)}
    label = asked.label or next((plain[name] for name in LABELS if name in plain), None)
    texts = [asked.text] if asked.text else _json_texts(plain)
    texts = [*texts[:1], asked.text2] if asked.text2 else texts
    if not label or not texts:
        raise UserError(
            f"{path} does not say which fields are text and label; it has {', '.join(names)[:300]}.",
            "Name them with --text, --text2 and --label.",
        )
    note = f"{' and '.join(map(repr, texts))}: the text{'s' * (len(texts) - 1)}, {label!r}: the label."
    return LabelledLayout("jsonl", fields=(*texts, label), notes=(note,))


def _json_texts(plain: dict[str, str]) -> list[str]:
    for pair in PAIRS:
        if all(name in plain for name in pair):
            return [plain[name] for name in pair]
    return [plain[name] for name in TEXTS if name in plain][:1]
