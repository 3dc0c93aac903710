"""`glassformer train translate DATA…`."""

from pathlib import Path
from typing import Annotated

import typer

from glassformer.cli.options import Source, Target
from glassformer.cli.train_options import Options


def translate(
    data: Annotated[
        list[Path], typer.Argument(help="One file of pairs (TSV, CSV, JSONL; .gz too), or two aligned files.")
    ],
    valid: Annotated[list[Path] | None, typer.Option(help="Validation pairs, as DATA; else some are held out.")] = None,
    source: Source = None,
    target: Target = None,
    start: Annotated[
        str | None, typer.Option("--from", help="A trained model to start from; new words are added.")
    ] = None,
    *,
    options: Options,
) -> None:
    """Train a translator on sentence pairs.

    glassformer train translate pairs.tsv --valid dev.tsv --out runs/en-de --minutes 30
    """
    from glassformer.data.pairs import open_pairs
    from glassformer.tasks.train_translate import TrainingFiles, train_translate
    from glassformer.tasks.translate import TranslateRecipe

    files = TrainingFiles(open_pairs(data, source, target), open_pairs(valid, source, target) if valid else None)
    recipe = options.read_recipe(TranslateRecipe, start=start)
    options.run(train_translate, files, recipe)
