"""Recordings in requests, heard as the command line hears them."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import BinaryIO

from fastapi import Request, UploadFile
from torch import Tensor

from glassformer.data.audio import sound_info
from glassformer.decode.options import DecodeOptions
from glassformer.errors import UserError
from glassformer.serve.errors import ApiError
from glassformer.serve.hub import Hub
from glassformer.serve.models import Served
from glassformer.serve.uploads import kept
from glassformer.tasks.transcriber import DEFAULT, Answer, Transcriber, Transcript
from glassformer.tasks.whisper import WhisperTranscriber

STEREO = 2 * 48_000  # samples of a second: the longest recording may have so many


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
) -> tuple[Transcript, str | None]:
    """What is said in a recording, and in which language where that is known; `language` and `task` are for Whisper."""
    face = _face(served, language, task)

    def run(paths: list[Path]) -> list[Answer]:
        return list(face.transcribe_files(paths, options, details))

    # Whisper hears one after the other, and so each client gets its answer as soon as it is there.
    kind = ("transcribe", options, details) if isinstance(face, Transcriber) else object()
    async with kept_sound(hub, upload.file) as path:
        [answer] = await hub.ask(request, served, kind, [path], run)
        if isinstance(answer, UserError):
            raise answer
        return answer, face.language if isinstance(face, WhisperTranscriber) else None


def kept_sound(hub: Hub, file: BinaryIO | bytes) -> AbstractAsyncContextManager[Path]:
    """A recording as a file, if it is one and not too long."""

    def check(path: Path) -> None:
        found, most = sound_info(path), hub.limits.audio
        if found.seconds > most:
            raise ApiError(
                413, f"The recording lasts {found.seconds:,.0f} seconds; at most {most:,.0f} are heard.", "Cut it."
            )
        # A few bytes of silence may unpack to channels and rates that nobody needs for speech.
        if found.seconds * found.rate * found.n_channels > most * STEREO:
            raise ApiError(413, "The recording has too many channels or samples.", "Mix it down to one channel.")

    return kept(file, ".wav", "The recording", check)


class _OneHearing(WhisperTranscriber):
    """A Whisper for one recording, which notes the language that it hears."""

    def prompt(self, window: Tensor, times: bool = True) -> list[int]:
        if self.marks.languages and self.language is None:
            self.language = self.backend.language(window)
        return super().prompt(window, times)


def _face(served: Served, language: str | None, task: str) -> Transcriber | WhisperTranscriber:
    face = served.face
    assert isinstance(face, Transcriber | WhisperTranscriber)
    if isinstance(face, WhisperTranscriber):
        return _OneHearing(face.loaded, face.backend, language or face.language, task)
    if task != "transcribe":
        raise ApiError(400, f"The model {served.name!r} does not translate what it hears.", "Use a Whisper.", "model")
    if face.features.kind == "vectors":
        raise ApiError(400, f"The model {served.name!r} reads vectors, not sound.", "Use another.", "model")
    return face  # one that was trained here knows only the language that it was trained on
