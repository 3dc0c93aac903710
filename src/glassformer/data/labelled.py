"""Labelled texts, or pairs of texts, from TSV, CSV and JSON lines; a part to validate on that training cannot know.

A line that cannot be used comes as a BadLine with its number. Deliberately not here: what the labels mean (`labels`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from glassformer.data.counted import counted
from glassformer.data.findings import BAD, FirstLines, explain_findings, having_seen
from glassformer.data.labelled_layout import Columns, LabelledLayout, guess_labelled
from glassformer.data.labels import Raw
from glassformer.data.layout import read_field
from glassformer.data.lines import check_text, fingerprint, sample_lines, text_hash
from glassformer.data.rows import HALF, BadLine, Table, json_records, table_rows, whole
from glassformer.data.split import default_number
from glassformer.errors import require


@dataclass(frozen=True)
class Example:
    """One text, or two, and their label, as it stands on a line of a file."""

    path: Path
    line: int
    texts: tuple[str, ...]
    label: Raw

    @property
    def place(self) -> str:
        return f"{self.path} line {self.line}"


@dataclass(frozen=True)
class LabelledFiles:
    """Files of one layout each; made by `open_labelled`."""

    paths: tuple[Path, ...]
    layouts: tuple[LabelledLayout, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(note for layout in self.layouts for note in layout.notes))


@dataclass(frozen=True)
class LabelledTexts:
    """All examples of some files, and the lines that are none."""

    files: LabelledFiles
    examples: list[Example]
    bad: list[tuple[Path, BadLine]]

    @property
    def paths(self) -> tuple[Path, ...]:
        return self.files.paths

    @property
    def n_texts(self) -> int:
        return len(self.examples[0].texts)

    @property
    def labels(self) -> list[Raw]:
        return [example.label for example in self.examples]

    @property
    def places(self) -> list[str]:
        return [example.place for example in self.examples]

    def keys(self) -> list[str]:
        """What tells two examples apart."""
        return ["\t".join(example.texts) for example in self.examples]

    def fingerprint(self) -> str:
        """Changes with the contents and with the columns that they are read from."""
        layouts = [replace(layout, notes=()) for layout in self.files.layouts]
        return f"{fingerprint(self.files.paths)} {layouts}"

    def describe(self) -> list[str]:
        """In sentences, how the files are read, what they hold, and which lines are skipped."""
        nouns = ("labelled pair of texts", "labelled pairs of texts") if self.n_texts == 2 else ("labelled text",)
        return [*self.files.notes, f"{counted(len(self.examples), *nouns)}.", *self.skipped()]

    def skipped(self, named: bool = False) -> list[str]:
        """In sentences, the lines that are no examples; where there are several files, or if asked, `named`."""
        said = []
        for path in self.files.paths:
            lines: FirstLines[str] = FirstLines()
            for item in (bad for where, bad in self.bad if where == path):
                lines.add(item.reason, item.line)
            title = BAD if len(self.files.paths) == 1 and not named else f"{path}: {BAD.lower()}"
            said += explain_findings(title, lines.findings())
        return said


def open_labelled(
    paths: Iterable[str | Path], columns: Columns | None = None, like: LabelledFiles | None = None
) -> LabelledFiles:
    """Look at the files and say how to read them: as is asked, as others were read, or as they look."""
    files = tuple(Path(path) for path in paths)
    require(bool(files), "No file was given.", "Give a file of labelled texts.")
    for path in files:
        check_text(path)
    same = None if like is None or (columns and columns.asked) else like.layouts[0]
    if same is not None and all(_is_such_table(path, same) for path in files):
        columns = same.as_columns()
    layouts = tuple(guess_labelled(path, columns or Columns()) for path in files)
    n_texts = {len(layout.columns or layout.fields) for layout in layouts}
    require(len(n_texts) == 1, "Some files have one text a line, others two.", "Name the columns: --text, --text2.")
    return LabelledFiles(files, layouts)


def _is_such_table(path: Path, layout: LabelledLayout) -> bool:
    """Whether a file has as many columns as one without a header."""
    first = next(line for line in sample_lines(path) if line.strip()).decode("utf-8", errors="replace")
    return not layout.header and layout.kind == "tsv" and first.count("\t") + 1 == layout.n_columns


def read_labelled(files: LabelledFiles, many: bool = False) -> LabelledTexts:
    """All examples; that there are none is an error. Of `many` labels an example may have none."""
    examples, bad = [], []
    for path, layout in zip(files.paths, files.layouts, strict=True):
        for item in _read(path, layout, many):
            if isinstance(item, Example):
                examples.append(item)
            else:
                bad.append((path, item))
    texts = LabelledTexts(files, examples, bad)
    why = f" ({bad[0][0]} line {bad[0][1].line} {bad[0][1].reason})" if bad else ""
    with having_seen(texts.skipped()):
        require(
            bool(examples),
            f"{files.paths[0]} holds no labelled text{why}.",
            "Write a text, a tab and a label on each line.",
        )
    return texts


def _read(path: Path, layout: LabelledLayout, many: bool) -> Iterator[Example | BadLine]:
    if layout.kind == "jsonl":
        rows = ((line, _json_cells(record, layout.fields)) for line, record in json_records(path))
    else:
        table = Table(layout.delimiter, layout.header, layout.n_columns, layout.columns)
        rows = table_rows(path, table, quoted=layout.kind == "csv")  # type: ignore[assignment]
    for line, row in rows:
        if isinstance(row, str):
            yield BadLine(line, row)
            continue
        *texts, label = row
        stripped = tuple(text.strip() for text in texts)
        if not all(stripped):
            yield BadLine(line, "has an empty text")
        elif not isinstance(label, str) or label.strip():
            yield Example(path, line, stripped, label.strip() if isinstance(label, str) else label)
        elif many:
            yield Example(path, line, stripped, ())
        else:
            yield BadLine(line, "has an empty label")


def _json_cells(record: dict[str, Any] | str, fields: tuple[str, ...]) -> tuple[Any, ...] | str:
    """The texts and the raw label of one object, or why there are none."""
    if isinstance(record, str):
        return record
    texts = tuple(read_field(record, name) for name in fields[:-1])
    for name, text in zip(fields, texts, strict=False):
        if not isinstance(text, str):
            return f"has no text in the field {name}"
    label = json_label(read_field(record, fields[-1]))
    if label is None:
        return f"has no label in the field {fields[-1]}"
    sound = whole((*texts, *([label] if isinstance(label, str) else label)), HALF)
    return sound if isinstance(sound, str) else (*texts, label)


def json_label(value: Any) -> Raw | None:
    """A label as JSON has it: text, number, true or false, or a list of these."""
    match value:
        case bool():
            return "true" if value else "false"
        case str() | int() | float():
            return str(value)
        case list():
            parts = [json_label(part) for part in value]
            return tuple(parts) if all(isinstance(part, str) for part in parts) else None  # type: ignore[arg-type]
        case _:
            return None


def hold_out_examples(keys: Sequence[str], classes: Sequence[str], number: int | None = None) -> list[int]:
    """The places of about `number` examples to validate on: a share of each class, the same ones every time.

    Examples with the same key (text) are on one side; a class that was seen less than three times is not held out.
    """
    number = default_number(len(keys)) if number is None else number
    quota = _quotas(Counter(classes), number)
    groups: dict[int, list[int]] = {}
    for i, key in enumerate(keys):
        groups.setdefault(text_hash(key), []).append(i)
    chosen = []
    for key_hash in sorted(groups):
        wanted = Counter(classes[i] for i in groups[key_hash])
        if all(quota[name] >= n for name, n in wanted.items()):
            chosen += groups[key_hash]
            for name, n in wanted.items():
                quota[name] -= n
    require(
        bool(chosen),
        f"None of {counted(len(keys), 'example')} can be held out to validate on.",
        "Give more examples, or a validation file with --valid.",
    )
    return sorted(chosen)


def _quotas(sizes: Counter[str], number: int) -> dict[str, int]:
    """Examples that each class gives: its share, and at least one while that does not come to far more than wanted.

    Of very many small classes the first by their hashes give one, as many as are wanted.
    """
    share = number / sizes.total()
    quota = {name: round(share * n) if n > 2 else 0 for name, n in sizes.items()}
    small = sorted((text_hash(name), name) for name, n in sizes.items() if n > 2 and quota[name] == 0)
    wanted = number - sum(quota.values())
    if len(small) > wanted + number:
        small = small[: max(0, wanted)]
    return quota | {name: 1 for _, name in small}
