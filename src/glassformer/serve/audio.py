"""Recordings in requests: written to a file of our own naming, heard as the command line hears it, and deleted."""

import asyncio
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from fastapi import Request, UploadFile

from glassformer.data.audio import sound_info
from glassformer.decode.options import DecodeOptions
from glassformer.errors import UserError
from glassformer.serve.errors import ApiError
from glassformer.serve.hub import Hub
from glassformer.serve.models import Served
from glassformer.tasks.transcriber import DEFAULT, Answer, Transcriber, Transcript
from glassformer.tasks.whisper import WhisperTranscriber


def is_transcriber(served: Served) -> bool:
    return isinstance(served.face, Transcriber | WhisperTranscriber)


async def transcribe(
    hub: Hub,
    request: Request,
    served: Served,
    upload: UploadFile,
    details: bool = False,
    language: str | None = None,
    task: str = "transcribe",
    options: DecodeOptions = DEFAULT,
) -> Transcript:
    """What is said in a recording; `language` and `task` are for Whisper."""
    face = _face(served, language, task)
    path = await asyncio.to_thread(_keep, upload.file)
    try:
        await asyncio.to_thread(_check_length, path, hub.limits.audio)

        def run(paths: list[Path]) -> list[Answer]:
            return list(face.transcribe_files(paths, options, details))

        # Whisper hears one after the other, and so each client gets its answer as soon as it is there.
        kind = ("transcribe", options, details) if isinstance(face, Transcriber) else object()
        [answer] = await hub.ask(request, served, kind, [path], run)
        if isinstance(answer, UserError):
            raise answer
        return answer
    except UserError as error:
        raise _without_path(error, path) from None
    finally:
        with suppress(OSError):
            path.unlink()


def _face(served: Served, language: str | None, task: str) -> Transcriber | WhisperTranscriber:
    face = served.face
    assert isinstance(face, Transcriber | WhisperTranscriber)
    if isinstance(face, WhisperTranscriber):
        if language is None and task == face.task:
            return face
        return WhisperTranscriber(face.loaded, face.backend, language or face.language, task)
    if task != "transcribe":
        raise ApiError(400, f"The model {served.name!r} does not translate what it hears.", "Use a Whisper.", "model")
    if face.features.kind == "vectors":
        raise ApiError(400, f"The model {served.name!r} reads vectors, not sound.", "Use another.", "model")
    return face  # one that was trained here knows only the language that it was trained on


def _keep(file: BinaryIO) -> Path:
    with tempfile.NamedTemporaryFile(prefix="glassformer-", suffix=".wav", delete=False) as kept:
        while part := file.read(1 << 20):
            kept.write(part)
    return Path(kept.name)


def _check_length(path: Path, most: float) -> None:
    seconds = sound_info(path).seconds
    if seconds > most:
        raise ApiError(
            413, f"The recording lasts {seconds:,.0f} seconds, but at most {most:,.0f} are heard.", "Cut it."
        )


def _without_path(error: UserError, path: Path) -> ApiError:
    return ApiError(400, error.message.replace(str(path), "The recording"), error.hint, "file")
