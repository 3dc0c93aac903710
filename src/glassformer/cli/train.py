"""`glassformer train TASK DATA…`."""

from pathlib import Path
from typing import Annotated

import typer

train = typer.Typer(help="Train a model on your own data.", no_args_is_help=False)


@train.command()
def translate(
    data: Annotated[
        list[Path], typer.Argument(help="One file of pairs (TSV, CSV, JSONL; .gz too), or two aligned files.")
    ],
    out: Annotated[Path, typer.Option(help="The folder for the model.")],
    valid: Annotated[list[Path] | None, typer.Option(help="Validation pairs, as DATA; else some are held out.")] = None,
    source: Annotated[str | None, typer.Option(help="The source field of a CSV, TSV or JSONL file.")] = None,
    target: Annotated[str | None, typer.Option(help="The target field.")] = None,
    size: Annotated[str, typer.Option(help="tiny, small, base, big, or auto.")] = "auto",
    minutes: Annotated[float | None, typer.Option(help="Plan the training so that it ends in time.")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Train for so many steps; without it and --minutes, what the data is worth.")
    ] = None,
    start: Annotated[
        str | None, typer.Option("--from", help="A trained model to start from; new words are added.")
    ] = None,
    tokenizer: Annotated[str | None, typer.Option(help="bpe, word, char, or a tokenizer.json.")] = None,
    vocab: Annotated[int | None, typer.Option(help="Tokens of the vocabulary; automatic if left out.")] = None,
    recipe: Annotated[Path | None, typer.Option(help="A recipe file (TOML).")] = None,
    changes: Annotated[list[str] | None, typer.Option("--set", help="Change a setting, as train.lr=1e-3.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write the curves for TensorBoard too.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")] = False,
) -> None:
    """Train a translator on sentence pairs.

    glassformer train translate pairs.tsv --valid dev.tsv --out runs/en-de --minutes 30
    """
    from glassformer import config
    from glassformer.data.pairs import open_pairs
    from glassformer.tasks.train_translate import TrainingFiles, train_translate
    from glassformer.tasks.translate import TranslateRecipe

    files = TrainingFiles(open_pairs(data, source, target), open_pairs(valid, source, target) if valid else None)
    flags = {
        "size": size if size != "auto" else None,
        "start": start,
        "train.minutes": minutes,
        "train.steps": steps,
        "tokenizer.kind": tokenizer,
        "tokenizer.size": vocab,
    }
    settings = config.read_toml(recipe) if recipe else {}
    settings = config.override(settings, [f"{key}={value}" for key, value in flags.items() if value is not None])
    settings = config.override(settings, changes or [])
    checked: TranslateRecipe = config.parse(TranslateRecipe, settings, str(recipe) if recipe else "The settings")
    finished = train_translate(files, checked, out, resume, device, quiet, tensorboard)
    raise typer.Exit(0 if finished else 130)
