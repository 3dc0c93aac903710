"""Files of labelled data, opened as what they hold."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from glassformer.data.labelled_layout import Columns
    from glassformer.tasks.classify import ClassifyRecipe
    from glassformer.tasks.classify_data import Subject


def open_subject(
    data: list[Path], valid: list[Path] | None, columns: "Columns"
) -> "Callable[[ClassifyRecipe], Subject]":
    """What will read the files, once the recipe is known."""
    from glassformer.data.labelled import open_labelled
    from glassformer.tasks.classify_texts import read_texts

    train, others = open_labelled(data, columns), open_labelled(valid, columns) if valid else None
    return lambda recipe: read_texts(train, others, recipe)
