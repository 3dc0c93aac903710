"""Where the sound comes from: the files that were named, or the microphone, one recording after the other."""

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import typer


def recordings(files: list[Path] | None, mic: bool) -> Iterator[list[Path]]:
    """What is to be heard together: all files, or each thing that is said, as soon as it is."""
    from glassformer.errors import require

    require(bool(files) or mic, "There is nothing to hear.", "Name recordings, or give --mic.")
    require(not (files and mic), "Files and the microphone cannot be heard together.", "Leave out --mic, or the files.")
    if files:
        yield files
        return
    import soundfile

    from glassformer.data.microphone import RATE, microphone, spoken

    sound = microphone()
    first = next(sound)  # what is wrong with it is said before anybody speaks
    typer.echo("Speak; Ctrl-C ends.", err=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spoken.wav"
        try:
            for wave in spoken(itertools.chain([first], sound)):
                soundfile.write(path, wave, RATE)
                yield [path]
        except KeyboardInterrupt:
            return
