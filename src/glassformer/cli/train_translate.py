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
    languages: Annotated[
        str | None,
        typer.Option(metavar="FROM,TO", help="Codes of the languages, as en,de, for `serve`; else as files are named."),
    ] = None,
    start: Annotated[
        str | None, typer.Option("--from", help="A trained model to start from; alphabets new to it get tokens.")
    ] = None,
    *,
    options: Options,
) -> None:
    """Train a translator on sentence pairs.

    glassformer train translate pairs.tsv --valid dev.tsv --out runs/en-de --minutes 30
    """
    from glassformer.data.pairs import open_pairs
    from glassformer.errors import require
    from glassformer.tasks.train_translate import TrainingFiles, train_translate
    from glassformer.tasks.translate import TranslateRecipe

    codes = None if languages is None else tuple(code.strip() for code in languages.split(","))
    is_pair = codes is None or (len(codes) == 2 and all(codes))
    require(is_pair, f"--languages {languages} does not name two.", "Say --languages en,de.")
    fields = (source, target) if valid is None or len(valid) == 1 else (None, None)  # two aligned files have none
    files = TrainingFiles(open_pairs(data, source, target), open_pairs(valid, *fields) if valid else None, codes)
    recipe = options.read_recipe(TranslateRecipe, start=start)
    options.run(train_translate, files, recipe)
