"""`glassformer export MODEL --to FORMAT --out FOLDER`."""

import tempfile
from pathlib import Path
from typing import Annotated, Literal

import typer


def export(
    model: Annotated[str, typer.Argument(help="A model directory, or a built-in model.")],
    out: Annotated[Path, typer.Option(help="The folder to write.")],
    to: Annotated[str, typer.Option(help="The format: ctranslate2.")] = "ctranslate2",
    precision: Annotated[str, typer.Option(help="fp32 or int8.")] = "int8",
) -> None:
    """Write a model for another engine."""
    from glassformer.errors import require
    from glassformer.fast.ctranslate2 import write_ctranslate2
    from glassformer.model import EncoderDecoder
    from glassformer.tasks.built_in import find_model
    from glassformer.tasks.model_dir import load_model

    require(to == "ctranslate2", f"There is no format {to!r} to export to.", "Choose ctranslate2.")
    require(precision in ("fp32", "int8"), f"There is no precision {precision!r}.", "Choose fp32 or int8.")
    require(not out.exists(), f"{out} exists already.", "Give another --out.")
    require(out.absolute().parent.is_dir(), f"There is no folder {out.parent}.", "Make it first.")
    loaded = load_model(find_model(model))
    require(isinstance(loaded.model, EncoderDecoder), f"{model} is a model for {loaded.task}.", "Export a translator.")
    assert isinstance(loaded.model, EncoderDecoder)
    with tempfile.TemporaryDirectory(
        dir=out.absolute().parent, prefix=f".{out.name}."
    ) as scratch:  # whole or not there
        folder = Path(scratch) / "whole"
        kind: Literal["int8", "float32"] = "int8" if precision == "int8" else "float32"
        write_ctranslate2(loaded.model, loaded.tokenizer, folder, kind, loaded.source_tokenizer)
        folder.rename(out)
    typer.echo(f"{out} can be loaded by ctranslate2.Translator.", err=True)
