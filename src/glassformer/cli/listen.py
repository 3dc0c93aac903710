"""`glassformer listen MODEL --commands FILE FILES…`."""

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.options import Model

if TYPE_CHECKING:
    from glassformer.errors import UserError
    from glassformer.tasks.listen import Heard

NOT_UNDERSTOOD = "not understood"


def listen(
    model: Model,
    commands: Annotated[Path, typer.Option(help="The allowed commands, one a line.")],
    files: Annotated[list[Path] | None, typer.Argument(help="Recordings, each of one command.")] = None,
    mic: Annotated[bool, typer.Option("--mic", help="Hear the microphone (extra mic).")] = False,
    threshold: Annotated[float, typer.Option(help="Below this confidence (0 to 1) nothing is understood.")] = 0.5,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a file: command, confidence, what was heard unbound.")
    ] = False,
) -> None:
    """Obey: each recording becomes one of the allowed commands with a confidence, or "not understood".

    glassformer listen runs/voice --commands commands.txt heard.wav
    """
    from glassformer.api import load_transcriber
    from glassformer.cli.speaking import recordings
    from glassformer.errors import UserError, require
    from glassformer.tasks.listen import Listener, read_commands
    from glassformer.tasks.transcriber import Transcriber

    allowed = read_commands(commands)
    transcriber = load_transcriber(model)
    require(
        isinstance(transcriber, Transcriber),
        f"{model} is a Whisper, which cannot be bound to commands here.",
        "Train a recogniser: `glassformer train transcribe`.",
    )
    assert isinstance(transcriber, Transcriber)
    listener = Listener(transcriber, allowed, threshold)
    n_bad = 0
    for together in recordings(files, mic):
        for file, answer in zip(together, listener.listen(together), strict=True):
            if isinstance(answer, UserError):
                n_bad += 1
                typer.echo(f"glassformer: {answer}", err=True)
            print(_shown(file, answer, as_json), flush=True)
    if n_bad:
        raise typer.Exit(2)


def _shown(file: Path, answer: "Heard | UserError", as_json: bool) -> str:
    """A file that cannot be heard still has its line."""
    from glassformer.errors import UserError

    if isinstance(answer, UserError):
        bad = {"file": str(file), "error": answer.message, "hint": answer.hint}
        return json.dumps(bad, ensure_ascii=False) if as_json else ""
    if as_json:
        return json.dumps(dataclasses.asdict(answer), ensure_ascii=False)
    return f"{answer.command or NOT_UNDERSTOOD}\t{answer.confidence:.2f}"
