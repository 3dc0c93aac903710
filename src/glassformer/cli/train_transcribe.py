"""`glassformer train transcribe DATA`."""

from pathlib import Path
from typing import Annotated

import typer

from glassformer.cli.train_options import Options


def transcribe(
    data: Annotated[
        Path,
        typer.Argument(help="A list of recordings (path, tab, transcript; CSV, JSONL), or a folder of .wav and .txt."),
    ],
    valid: Annotated[Path | None, typer.Option(help="Validation recordings, as DATA; else some are held out.")] = None,
    source: Annotated[str | None, typer.Option(help="The column of the path, by name or number.")] = None,
    target: Annotated[str | None, typer.Option(help="The column of the transcript.")] = None,
    start: Annotated[str | None, typer.Option("--from", help="A trained recogniser to start from.")] = None,
    *,
    options: Options,
) -> None:
    """Train a speech recogniser on recordings (wav, flac, ogg, mp3) or series of vectors (.npy, .npz, .mfc).

    glassformer train transcribe recordings.tsv --out runs/voice --minutes 30
    """
    from glassformer.data.recordings import open_recordings
    from glassformer.tasks.train_transcribe import SpeechFiles, train_transcribe
    from glassformer.tasks.transcribe import TranscribeRecipe

    other = open_recordings(valid, source, target) if valid else None
    recipe = options.read_recipe(TranscribeRecipe, start=start)
    files = SpeechFiles(open_recordings(data, source, target), other)
    options.run(train_transcribe, files, recipe)
