"""`glassformer transcribe MODEL FILES…`."""

import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.options import Beam, Model

if TYPE_CHECKING:
    from glassformer.tasks.transcriber import Answer

FORMATS = ("text", "srt", "vtt")


def transcribe(
    model: Model,
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Recordings: wav, flac, ogg, mp3; or vectors for models that read them."),
    ] = None,
    mic: Annotated[bool, typer.Option("--mic", help="Hear the microphone (extra mic); a line for each pause.")] = False,
    beam: Beam = 4,
    max_len: Annotated[int, typer.Option(help="Tokens of a part between silences at most.")] = 400,
    form: Annotated[str, typer.Option("--format", help="text, or subtitles: srt or vtt.")] = "text",
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a file: segments, scores, times of words.")
    ] = False,
    language: Annotated[
        str | None, typer.Option(help="For Whisper: the language spoken, such as en; else it is guessed.")
    ] = None,
    task: Annotated[str, typer.Option(help="For Whisper: transcribe, or translate into English.")] = "transcribe",
    engine: Annotated[str, typer.Option(help="For Whisper: auto, ctranslate2 or torch.")] = "auto",
    precision: Annotated[str, typer.Option(help="For Whisper: auto, fp32 or int8.")] = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", help="Nothing on stderr but errors.")] = False,
) -> None:
    """Write down what is said: one line a file, in their order. A file that cannot be read is named on stderr.

    glassformer transcribe runs/voice a.wav b.mp3
    """
    from glassformer.api import load_transcriber
    from glassformer.cli.speaking import recordings
    from glassformer.decode.options import DecodeOptions
    from glassformer.errors import UserError, require

    require(form in FORMATS, f"There is no format {form!r}.", f"Choose {', '.join(FORMATS)}.")
    require(
        form == "text" or (files is not None and len(files) == 1 and not as_json),
        "Subtitles are for one file at a time.",
        "Give one file, without --json.",
    )
    options = DecodeOptions(beam=beam, length_penalty=0.0, max_len=max_len)
    transcriber = load_transcriber(model, engine, precision, language, task)  # type: ignore[arg-type]
    if not quiet:
        typer.echo(f"engine: {transcriber.engine}", err=True)
    n_bad = n_all = 0
    for together in recordings(files, mic):
        n_all += len(together)
        answers = transcriber.transcribe_files(together, options, as_json or form != "text")
        for file, answer in zip(together, answers, strict=True):
            if isinstance(answer, UserError):
                n_bad += 1
                typer.echo(f"glassformer: {answer}", err=True)
            for line in _shown(file, answer, form, as_json):
                print(line)
            sys.stdout.flush()
    if n_bad:
        typer.echo(f"glassformer: {n_bad} of {n_all} files could not be heard.", err=True)
        raise typer.Exit(2)


def _shown(file: Path, answer: "Answer", form: str, as_json: bool) -> Iterator[str]:
    """A file that cannot be heard still has its line, so that lines and files stay side by side."""
    from glassformer.errors import UserError
    from glassformer.tasks.subtitles import subtitles

    if isinstance(answer, UserError):
        bad = {"file": str(file), "error": answer.message, "hint": answer.hint}
        yield json.dumps(bad, ensure_ascii=False) if as_json else ""
    elif as_json:
        yield json.dumps(dataclasses.asdict(answer), ensure_ascii=False)
    elif form == "text":
        yield " ".join(answer.text.splitlines())
    else:
        yield from subtitles(answer, form)
