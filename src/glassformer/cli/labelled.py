"""Files of labelled data, opened as what they hold: texts, series of vectors, or pictures."""

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
    data: list[Path],
    valid: list[Path] | None,
    columns: "Columns",
    labels: Path | None = None,
    valid_labels: Path | None = None,
    pictures: bool = False,
) -> "Callable[[ClassifyRecipe], Subject]":
    """What will read the files, once the recipe is known; `pictures` takes arrays for them where they may be series."""
    from glassformer.data.labelled import open_labelled
    from glassformer.data.picture_find import find_pictures, holds_pictures
    from glassformer.data.series import holds_series, read_series
    from glassformer.errors import require
    from glassformer.tasks.classify_pictures import judge_pictures
    from glassformer.tasks.classify_series import judge_series
    from glassformer.tasks.classify_texts import read_texts

    if holds_pictures(data[0], columns, pictures):
        found = find_pictures(data, columns, labels)
        more_found = find_pictures(valid, columns, valid_labels) if valid else None
        return lambda recipe: judge_pictures(found, more_found, recipe)
    require(not pictures, f"{data[0]} holds no pictures.", "Leave out --pictures.")
    if holds_series(data[0], columns.text):
        series = read_series(data, labels, columns.text, columns.label)
        more = read_series(valid, valid_labels, columns.text, columns.label) if valid else None
        return lambda recipe: judge_series(series, more, recipe)
    require(labels is None and valid_labels is None, f"{data[0]} has its labels in itself.", "Leave out --labels.")
    train = open_labelled(data, columns)
    others = open_labelled(valid, columns, like=train) if valid else None
    return lambda recipe: read_texts(train, others, recipe)


def open_exam(
    classifier: "Classifier",
    data: list[Path],
    memory: list[Path] | None,
    columns: "Columns",
    limit: int | None,
    labels: Path | None = None,
) -> "Exam":
    """Files to test on, and those that baselines learn from."""
    from glassformer.data.labelled import open_labelled
    from glassformer.data.picture_find import find_pictures
    from glassformer.data.series import read_series
    from glassformer.tasks.classify_pictures import exam_of_pictures
    from glassformer.tasks.classify_series import exam_of_series, limited
    from glassformer.tasks.evaluate_classify import exam_of_texts

    if classifier.input == "pictures":
        found = find_pictures(data, columns, labels)
        known_pictures = find_pictures(memory, columns) if memory else None
        return exam_of_pictures(classifier, found, known_pictures, limit)
    if classifier.input == "vectors":
        series = limited(read_series(data, labels, columns.text, columns.label), limit)
        known_series = read_series(memory, None, columns.text, columns.label) if memory else None
        return exam_of_series(classifier, series, known_series)
    files = open_labelled(data, columns)
    known = open_labelled(memory, columns, like=files) if memory else None
    return exam_of_texts(classifier, files, known, limit)
