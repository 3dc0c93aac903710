"""What every kind of labelled data has in common: it is checked, divided, and made ready for a model."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from glassformer.data.check import MUCH
from glassformer.data.counted import counted
from glassformer.data.findings import having_seen
from glassformer.data.labelled import hold_out_examples
from glassformer.data.labelled_batch import LabelledData
from glassformer.data.labels import LabelKind, Labels, Raw, Targets, describe_labels, find_labels, refuse_rare
from glassformer.data.lines import text_hash
from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import require
from glassformer.tasks.classify import ClassifyRecipe, chosen_metric
from glassformer.tasks.classify_answers import Classifying
from glassformer.tasks.model_dir import LoadedModel
from glassformer.tasks.run import Run


class Fold(Protocol):
    """A change of the data that can be put into the weights."""

    def put_into(self, model: Classifying) -> None: ...


@dataclass(frozen=True)
class Prepared:
    """Examples to learn from and to validate on, and what a model for them needs to know."""

    train: LabelledData
    valid: LabelledData
    front_end: dict[str, Any]  # what the data says of a new model's source
    tokenizer: Tokenizer | None
    about: dict[str, Any]  # for settings.json: how to read what is to be classified
    unit: Fold | None = None  # what was done to the input, and the finished model is to do itself


class Subject(Protocol):
    """Labelled data of one kind: texts, series of vectors, pictures."""

    @property
    def labels(self) -> Labels: ...

    @property
    def n_examples(self) -> int: ...

    @property
    def front_end(self) -> dict[str, Any]:
        """What the data says of a new model's source, as far as it is known before it is prepared."""
        ...

    def describe(self) -> list[str]:
        """In sentences, what there is to learn from."""
        ...

    def contents(self) -> list[str | None]:
        """What the run depends on, as checksums."""
        ...

    def prepare(self, recipe: ClassifyRecipe, run: Run, identity: str, start: LoadedModel | None) -> Prepared: ...


@dataclass(frozen=True)
class Division:
    """The labels of all examples, understood, and which examples are held out."""

    labels: Labels
    train: list[int]
    valid: list[int]  # places among the training examples; empty if there are validation files
    targets: Targets

    def describe(self) -> str:
        return describe_labels(self.labels, self.targets)


class Examples(Protocol):
    """All labelled examples of some files, read."""

    @property
    def paths(self) -> Sequence[Path]: ...

    @property
    def labels(self) -> Sequence[Raw]: ...

    @property
    def places(self) -> Sequence[str]: ...

    def keys(self) -> list[str]:
        """What tells two examples apart."""
        ...

    def fingerprint(self) -> str: ...


E = TypeVar("E", bound=Examples)


def require_labels(
    examples: Examples, hint: str = "Save them in it as y, or give a file of them with --labels."
) -> None:
    require(bool(examples.labels), f"{examples.paths[0]} has no labels.", hint)


@dataclass(frozen=True)
class DividedSubject(Generic[E]):
    """What a subject of any kind says of its examples and their division."""

    train: E
    valid: E | None  # None: some of the others are held out
    division: Division

    @property
    def labels(self) -> Labels:
        return self.division.labels

    @property
    def n_examples(self) -> int:
        return len(self.division.train)

    @property
    def front_end(self) -> dict[str, Any]:
        return {}

    @property
    def train_targets(self) -> Targets:
        return self.division.targets[self.division.train]

    @property
    def valid_targets(self) -> Targets:
        """Those of the validation examples; a label that the others do not have is refused."""
        if self.valid is None:
            return self.division.targets[self.division.valid]
        return self.labels.encode(self.valid.labels, self.valid.places.__getitem__)

    def contents(self) -> list[str | None]:
        return [None if part is None else part.fingerprint() for part in (self.train, self.valid)]

    def describe_division(self) -> list[str]:
        n_valid = len(self.division.valid) if self.valid is None else len(self.valid.labels)
        how = "held out" if self.valid is None else "given"
        said = f"{self.n_examples:,} to learn from, {n_valid:,} {how} to validate on."
        return [self.division.describe(), said, *self._repeated()]

    def _repeated(self) -> Iterator[str]:
        """What is there twice: what was learned by heart makes scores too good."""
        known = Counter(map(text_hash, self.train.keys()))  # without regard to case and spacing
        if n := known.total() - len(known):
            yield f"{counted(n, 'example')} {'repeats' if n == 1 else 'repeat'} another one."
        if self.valid is None:
            return
        others = [text_hash(key) for key in self.valid.keys()]  # noqa: SIM118 (not a mapping)
        n_same = sum(key in known for key in others)
        yield f"Also in training: {n_same:,} of those to validate on."
        if n_same > MUCH * len(others):
            share = n_same / len(others)
            yield f"Warning: {share:.0%} of the validation examples are in training too, so scores will be too good."


def divide(
    examples: Examples,
    valid: Examples | None,
    recipe: ClassifyRecipe,
    seen: Iterable[str],
    kind: LabelKind | None = None,
) -> Division:
    """Find what the labels mean, refuse what cannot be learned, and hold examples out where there are no others.

    `kind` is what labels from such a place are, unless the recipe says otherwise.
    """
    with having_seen(seen):
        raw, where = examples.labels, examples.places.__getitem__
        labels = find_labels(raw, where, recipe.labels or kind, recipe.separator)
        chosen_metric(recipe.metric, labels)  # refuses one that does not fit
        require(
            not recipe.balance or labels.kind != "number",
            "--balance is for classes, but the labels are numbers.",
            "Leave it out.",
        )
        if not recipe.allow_rare:
            refuse_rare(labels, raw, where)
        targets = labels.encode(raw, where)
        if valid is not None:
            labels.encode(valid.labels, valid.places.__getitem__)  # says which label is not known
        classes = [str(label) for label in raw] if labels.kind == "class" else [""] * len(raw)
        held = hold_out_examples(examples.keys(), classes) if valid is None else []
    others = set(held)
    return Division(labels, [i for i in range(len(raw)) if i not in others], held, targets)
