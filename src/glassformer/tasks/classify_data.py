"""What every kind of labelled data has in common: it is checked, divided, and made ready for a model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from glassformer.data.labelled import hold_out_examples
from glassformer.data.labelled_batch import LabelledData
from glassformer.data.labels import Labels, Raw, Targets, Where, describe_labels, find_labels, refuse_rare
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


def divide(raw: Sequence[Raw], keys: Sequence[str], where: Where, recipe: ClassifyRecipe, hold_out: bool) -> Division:
    """Find what the labels mean, refuse what cannot be learned, and hold examples out to validate on."""
    labels = find_labels(raw, where, recipe.labels, recipe.separator)
    chosen_metric(recipe.metric, labels)  # refuses one that does not fit
    require(
        not recipe.balance or labels.kind != "number",
        "--balance is for classes, but the labels are numbers.",
        "Leave it out.",
    )
    if not recipe.allow_rare:
        refuse_rare(labels, raw, where)
    targets = labels.encode(raw, where)
    classes = [str(label) for label in raw] if labels.kind == "class" else [""] * len(raw)
    valid = hold_out_examples(keys, classes) if hold_out else []
    held = set(valid)
    return Division(labels, [i for i in range(len(raw)) if i not in held], valid, targets)
