"""`glassformer train classify DATA…`."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from glassformer.cli.options import AsPictures, Label, LabelsFile, LabelsKind, Separator, Text2, ValidLabels
from glassformer.cli.train_options import Lora, Options


def classify(
    data: Annotated[
        list[Path],
        typer.Argument(
            help="Labelled texts (TSV, CSV, JSONL; .gz too), series of vectors (NPZ, NPY, JSONL), or pictures "
            "(a folder with a folder for each class, a table of paths, IDX, NPZ)."
        ),
    ],
    valid: Annotated[list[Path] | None, typer.Option(help="Validation data, as DATA; else some is held out.")] = None,
    labels: LabelsFile = None,
    valid_labels: ValidLabels = None,
    pictures: AsPictures = False,
    text: Annotated[str | None, typer.Option(help="The column or field of the text: its name, or number.")] = None,
    text2: Text2 = None,
    label: Label = None,
    kind: LabelsKind = None,
    separator: Separator = None,
    epochs: Annotated[float | None, typer.Option(help="Read all examples so many times.")] = None,
    start: Annotated[
        str | None, typer.Option("--from", help="A model to start from: an encoder, or a language model (GPT's way).")
    ] = None,
    lora: Lora = None,
    freeze: Annotated[int | None, typer.Option(help="With --from: leave so many of its lowest layers alone.")] = None,
    metric: Annotated[
        str | None, typer.Option(help="Choose the best by accuracy, f1, matthews, pearson, spearman …")
    ] = None,
    balance: Annotated[bool, typer.Option("--balance", help="Let rare classes count as much as common ones.")] = False,
    patience: Annotated[
        int | None, typer.Option(help="Stop after so many validations without progress; 0 never does.")
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Tokens of a text that are read; 256 if left out.")] = None,
    allow_rare: Annotated[
        bool, typer.Option("--allow-rare", help="Train although a class was seen only once.")
    ] = False,
    *,
    options: Options,
) -> None:
    """Train a classifier on labelled texts, pairs of texts, series of vectors, or pictures.

    glassformer train classify reviews.tsv --out runs/mood --minutes 10
    """
    from glassformer.cli.labelled import open_subject
    from glassformer.data.labelled_layout import Columns
    from glassformer.tasks.classify import ClassifyRecipe
    from glassformer.tasks.train_classify import train_classify

    recipe = options.read_recipe(
        ClassifyRecipe,
        start=start,
        epochs=epochs,
        labels=kind,
        lora__rank=lora,
        freeze=freeze,
        metric=metric,
        balance="true" if balance else None,
        allow_rare="true" if allow_rare else None,
        max_tokens=max_tokens,
        train__patience=patience,
    )
    if separator is not None:
        recipe = dataclasses.replace(recipe, separator=separator)
    read = open_subject(data, valid, Columns(text, text2, label), labels, valid_labels, pictures)
    options.run(train_classify, read, recipe)
