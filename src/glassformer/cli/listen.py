"""`glassformer listen MODEL --commands FILE FILES…`."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

NOT_UNDERSTOOD = "not understood"


def listen(
    model: Annotated[str, typer.Argument(help="A model directory, or the name of a built-in model.")],
    files: Annotated[list[Path], typer.Argument(help="Recordings, each of one command.")],
    commands: Annotated[Path, typer.Option(help="The allowed commands, one a line.")],
    threshold: Annotated[float, typer.Option(help="Below this confidence (0 to 1) nothing is understood.")] = 0.5,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a file: command, confidence, what was heard unbound.")
    ] = False,
) -> None:
    """Obey: each recording becomes one of the allowed commands with a confidence, or "not understood".

    glassformer listen runs/voice --commands commands.txt heard.wav
    """
    from glassformer.api import load_transcriber
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
    for file, answer in zip(files, listener.listen(files), strict=True):
        if isinstance(answer, UserError):
            n_bad += 1
            typer.echo(f"glassformer: {answer}", err=True)
            bad = {"file": str(file), "error": answer.message, "hint": answer.hint}
            print(json.dumps(bad, ensure_ascii=False) if as_json else "")
        elif as_json:
            print(json.dumps(dataclasses.asdict(answer), ensure_ascii=False))
        else:
            print(f"{answer.command or NOT_UNDERSTOOD}\t{answer.confidence:.2f}")
        sys.stdout.flush()
    if n_bad:
        raise typer.Exit(2)
