"""`glassformer train complete DATA…` and `glassformer train fill DATA…`."""

from pathlib import Path
from typing import Annotated

import typer

from glassformer.cli.train_options import Lora, Options

Texts = Annotated[list[Path], typer.Argument(help="Text files, folders of them, or JSONL with a field text; .gz too.")]
OtherTexts = Annotated[list[Path] | None, typer.Option(help="Validation text, as DATA; else the end is held out.")]
Field = Annotated[str, typer.Option(help="The field of JSONL files that holds the text.")]
From = Annotated[str | None, typer.Option("--from", help="A trained or imported model to start from.")]


def complete(
    data: Texts,
    valid: OtherTexts = None,
    field: Field = "text",
    context: Annotated[int | None, typer.Option(help="Tokens that the model sees at once; 256 if left out.")] = None,
    start: From = None,
    lora: Lora = None,
    *,
    options: Options,
) -> None:
    """Train a language model on text.

    glassformer train complete book.txt --out runs/book --minutes 15
    """
    from glassformer.data.documents import open_documents
    from glassformer.tasks.complete import CompleteRecipe
    from glassformer.tasks.text import TextFiles
    from glassformer.tasks.train_complete import train_complete

    files = TextFiles(open_documents(data, field), open_documents(valid, field) if valid else None)
    recipe = options.read_recipe(CompleteRecipe, start=start, context=context, lora__rank=lora)
    options.run(train_complete, files, recipe)


def fill(
    data: Texts,
    valid: OtherTexts = None,
    field: Field = "text",
    context: Annotated[int | None, typer.Option(help="Tokens that the model sees at once; 128 if left out.")] = None,
    start: From = None,
    *,
    options: Options,
) -> None:
    """Train an encoder on text by letting it fill blanks; labels can be taught to it afterwards.

    glassformer train fill book.txt --out runs/book --minutes 15
    """
    from glassformer.data.documents import open_documents
    from glassformer.tasks.fill import FillRecipe
    from glassformer.tasks.text import TextFiles
    from glassformer.tasks.train_fill import train_fill

    files = TextFiles(open_documents(data, field), open_documents(valid, field) if valid else None)
    recipe = options.read_recipe(FillRecipe, start=start, context=context)
    options.run(train_fill, files, recipe)
