"""`glassformer train transcribe DATA`."""

from pathlib import Path
from typing import Annotated

import typer

from glassformer.cli.train import (
    Changes,
    Device,
    Minutes,
    Out,
    Quiet,
    RecipeFile,
    Resume,
    Size,
    Steps,
    TensorBoard,
    Vocab,
    read_recipe,
    train,
)


@train.command()
def transcribe(
    data: Annotated[
        Path,
        typer.Argument(help="A list of recordings (path, tab, transcript; CSV, JSONL), or a folder of .wav and .txt."),
    ],
    out: Out,
    valid: Annotated[Path | None, typer.Option(help="Validation recordings, as DATA; else some are held out.")] = None,
    source: Annotated[str | None, typer.Option(help="The column of the path, by name or number.")] = None,
    target: Annotated[str | None, typer.Option(help="The column of the transcript.")] = None,
    size: Size = "auto",
    minutes: Minutes = None,
    steps: Steps = None,
    start: Annotated[str | None, typer.Option("--from", help="A trained recogniser to start from.")] = None,
    tokenizer: Annotated[str | None, typer.Option(help="char, bpe, word, or a tokenizer.json.")] = None,
    vocab: Vocab = None,
    recipe: RecipeFile = None,
    changes: Changes = None,
    resume: Resume = False,
    device: Device = "auto",
    tensorboard: TensorBoard = False,
    quiet: Quiet = False,
) -> None:
    """Train a speech recogniser on recordings (wav, flac, ogg, mp3) or series of vectors (.npy, .npz, .mfc).

    glassformer train transcribe recordings.tsv --out runs/voice --minutes 30
    """
    from glassformer.data.recordings import open_recordings
    from glassformer.tasks.train_transcribe import SpeechFiles, train_transcribe
    from glassformer.tasks.transcribe import TranscribeRecipe

    other = open_recordings(valid, source, target) if valid else None
    flags = {
        "size": size if size != "auto" else None,
        "start": start,
        "train.minutes": minutes,
        "train.steps": steps,
        "tokenizer.kind": tokenizer,
        "tokenizer.size": vocab,
    }
    checked = read_recipe(TranscribeRecipe, recipe, flags, changes)
    files = SpeechFiles(open_recordings(data, source, target), other)
    finished = train_transcribe(files, checked, out, resume, device, quiet, tensorboard)
    raise typer.Exit(0 if finished else 130)
