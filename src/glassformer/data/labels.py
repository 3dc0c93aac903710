"""What labels mean: one class, many classes, or a number; found from the labels themselves, and said.

Raw labels are strings, or tuples of strings where a file has lists. Deliberately not here: where they come from.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from glassformer.data.counted import counted
from glassformer.errors import UserError, require

LabelKind = Literal["class", "classes", "number"]
Raw = str | tuple[str, ...]
Where = Callable[[int], str]  # the place of example i, for people: "train.tsv line 7"
Targets = NDArray[np.int64] | NDArray[np.float32]

MANY = 20  # different whole numbers that are still taken for classes, whichever they are
SEVERAL = 4  # times that each is seen in the mean, where more of them, without a gap from 0 or 1 on, are classes
SHOWN = 8  # classes that are listed
_WITH_COMMA = re.compile(r"-?\d+,\d+")
_DECIMAL_COMMA = re.compile(r"-?(?:0,\d+|\d+,(?!\d{3}$)\d+)")  # what may be 1,200 as well as 1.200 is no number


@dataclass(frozen=True)
class Labels:
    """How labels become targets: class numbers (n,), zeros and ones (n, classes), or numbers (n,)."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    kind: LabelKind
    names: tuple[str, ...] = ()
    separator: str = ""  # parts of one label where many are written together

    @property
    def n_out(self) -> int:
        return 1 if self.kind == "number" else len(self.names)

    def encode(self, raw: Sequence[Raw], where: Where) -> Targets:
        """The targets; a label that is not known is refused with its place."""
        if self.kind == "number":
            return np.array([self._number(label, i, where) for i, label in enumerate(raw)], dtype=np.float32)
        places = {name: i for i, name in enumerate(self.names)}
        rows = [[self._place(name, places, i, where) for name in self.parts(label)] for i, label in enumerate(raw)]
        if self.kind == "class":
            return np.array([row[0] for row in rows], dtype=np.int64)
        table = np.zeros((len(rows), len(self.names)), dtype=np.float32)
        for i, row in enumerate(rows):
            table[i, row] = 1.0
        return table

    def parts(self, label: Raw) -> tuple[str, ...]:
        """The names of classes in one label."""
        return split_label(label, self.separator) if self.kind == "classes" else (str(label),)

    def _place(self, name: str, places: dict[str, int], i: int, where: Where) -> int:
        if name not in places:
            known = ", ".join(self.names[:SHOWN]) + (" …" if len(self.names) > SHOWN else "")
            raise UserError(f"{where(i)} has the label {name!r}, but the model knows {known}.", "Correct the label.")
        return places[name]

    def _number(self, label: Raw, i: int, where: Where) -> float:
        number = read_number(label) if isinstance(label, str) else None
        if number is None:
            raise UserError(
                f"{where(i)} has the label {label!r}, which is no number.",
                "Correct it (a point before decimals, nothing between thousands), or use --kind class.",
            )
        return number


def find_labels(
    raw: Sequence[Raw], where: Where, kind: LabelKind | None = None, separator: str | None = None
) -> Labels:
    """What all labels of a training set are, unless `kind` says it; useless ones are refused."""
    texts = [label for label in raw if isinstance(label, str)]
    lists = len(texts) < len(raw)
    distinct = Counter(texts)
    if separator is None:
        measured = kind is None and all(map(_WITH_COMMA.fullmatch, distinct))
        separator = "" if measured else _separator(distinct)
    if kind is None:
        kind = "classes" if lists or separator else "number" if _are_measures(distinct) else "class"
    require(
        kind == "classes" or not lists,
        f"{where(_first(raw, lambda label: not isinstance(label, str)))} has a list of labels, not one.",
        "Use --kind classes.",
    )
    if kind == "number":
        labels = Labels("number")
        values = labels.encode(raw, where)
        _refuse_equal(len(set(values.tolist())), raw, where)
        return labels
    parts = [split_label(label, separator) if kind == "classes" else (str(label),) for label in raw]
    names = tuple(sorted({name for row in parts for name in row}, key=_order))
    _refuse_equal(len(names) if kind == "class" else len(set(parts)), raw, where)
    return Labels(kind, names, separator if kind == "classes" else "")


def refuse_rare(labels: Labels, raw: Sequence[Raw], where: Where) -> None:
    """A class that was seen once can be learned or checked, but not both; it may be a slip of the pen."""
    counts = Counter(name for label in raw for name in labels.parts(label)) if labels.kind != "number" else Counter()
    rare = [name for name in labels.names if counts[name] == 1]
    if not rare:
        return
    if labels.kind == "class":
        require(
            len(rare) * 2 <= len(raw),
            f"{where(0)} and the others: nearly every label is different, {labels.names[0]!r} for one.",
            "Is it the right column? Name it with --label; for numbers use --kind number.",
        )
    first = _first(raw, lambda label: rare[0] in labels.parts(label))
    others = f" Seen once as well: {counted(len(rare) - 1, 'class', 'classes')}." if len(rare) > 1 else ""
    raise UserError(
        f"{where(first)} has the label {rare[0]!r}, which no other line has.{others}",
        "Correct it, add examples, or train with it all the same: --allow-rare.",
    )


def describe_labels(labels: Labels, targets: Targets) -> str:
    """One sentence: the kind, and how the labels are spread."""
    if labels.kind == "number":
        return (
            f"Labels are numbers from {targets.min():g} to {targets.max():g}, {targets.mean():.3g} in the mean "
            "(--kind class would make them classes)."
        )
    n = np.bincount(targets, minlength=labels.n_out) if labels.kind == "class" else targets.sum(axis=0)
    order = np.argsort(-n, kind="stable")[:SHOWN]
    shown = ", ".join(f"{labels.names[i]} {n[i] / len(targets):.1%}" for i in order)
    more = ", …" if labels.n_out > SHOWN else ""
    how = "One label" if labels.kind == "class" else "Any number of labels"
    numbers = (
        labels.kind == "class" and labels.n_out > MANY and all(read_number(name) is not None for name in labels.names)
    )
    besides = " (--kind number would make them numbers)" if numbers else ""
    if labels.separator:
        besides = f" (parted by {labels.separator!r}; --separator '' would take each as one)"
    return f"{how} for each, of {labels.n_out}: {shown}{more}{besides}."


def split_label(label: Raw, separator: str) -> tuple[str, ...]:
    """The names in one label, each once."""
    parts = label if isinstance(label, tuple) else label.split(separator) if separator else [label]
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def _separator(distinct: Counter[str]) -> str:
    """What parts labels, if anything: taken apart, there are fewer of them; a name may well have a comma."""
    n = distinct.total()
    for separator, spare in (("|", 0), (";", 1), (",", 1)):
        joined = sum(times for label, times in distinct.items() if separator in label)
        apart = [split_label(label, separator) for label in distinct]
        parts = {part for label in apart for part in label}
        always_two = separator == ";" and len({len(label) for label in apart}) == 1  # rather one name in two halves
        if joined * 20 >= n and 1 < len(parts) <= len(distinct) - spare and not always_two:
            return separator
    return ""


def _are_measures(distinct: Counter[str]) -> bool:
    numbers = [read_number(label) for label in distinct]
    found = {number for number in numbers if number is not None}
    if not numbers or None in numbers:
        return False
    if any(number != int(number) for number in found):
        return True
    dense = max(found) - min(found) + 1 == len(found) == len(numbers) and min(found) in (0, 1)
    return len(numbers) > MANY and not (dense and distinct.total() >= SEVERAL * len(numbers))


def _refuse_equal(n_different: int, raw: Sequence[Raw], where: Where) -> None:
    require(
        n_different > 1,
        f"All {len(raw):,} labels are the same ({raw[0]!r}), from {where(0)} to {where(len(raw) - 1)}."
        if len(raw) > 1
        else f"There is only one label ({raw[0]!r}), in {where(0)}.",
        "There is nothing to tell apart: check that it is the right column (--label).",
    )


def _first(raw: Iterable[Raw], wanted: Callable[[Raw], bool]) -> int:
    return next((i for i, label in enumerate(raw) if wanted(label)), 0)


def read_number(text: str) -> float | None:
    """A finite number, with a point or a comma before its decimals; None if it is none."""
    try:
        number = float(text.replace(",", ".") if _DECIMAL_COMMA.fullmatch(text) else text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _order(name: str) -> tuple[int, float, str]:
    """Numbers by size, before all else."""
    number = read_number(name)
    return (1, 0.0, name) if number is None else (0, number, name)
