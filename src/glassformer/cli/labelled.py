"""Files of labelled data, opened as what they hold."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from glassformer.data.labelled_layout import Columns
    from glassformer.tasks.classifier import Classifier
    from glassformer.tasks.classify import ClassifyRecipe
    from glassformer.tasks.classify_data import Subject
    from glassformer.tasks.evaluate_classify import Exam


def open_subject(
    data: list[Path], valid: list[Path] | None, columns: "Columns"
) -> "Callable[[ClassifyRecipe], Subject]":
    """What will read the files, once the recipe is known."""
    from glassformer.data.labelled import open_labelled
    from glassformer.tasks.classify_texts import read_texts

    train = open_labelled(data, columns)
    others = open_labelled(valid, columns, like=train) if valid else None
    return lambda recipe: read_texts(train, others, recipe)


def open_exam(
    classifier: "Classifier", data: list[Path], memory: list[Path] | None, columns: "Columns", limit: int | None
) -> "Exam":
    """Files to test on, and those that baselines learn from."""
    from glassformer.data.labelled import open_labelled
    from glassformer.tasks.evaluate_classify import exam_of_texts

    files = open_labelled(data, columns)
    known = open_labelled(memory, columns, like=files) if memory else None
    return exam_of_texts(classifier, files, known, limit)
