"""OpenAI's /v1/audio/transcriptions and /v1/audio/translations; and ours, /api/transcribe."""

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.responses import PlainTextResponse

from glassformer.serve.audio import is_transcriber, transcribe
from glassformer.serve.errors import ApiError
from glassformer.serve.hub import Hub
from glassformer.serve.models import Served
from glassformer.tasks.subtitles import subtitles
from glassformer.tasks.transcriber import Segment, Transcript

Format = Literal["json", "text", "srt", "vtt", "verbose_json"]
Granularity = Literal["word", "segment"]
Sound = Annotated[UploadFile, File(description="wav, flac, ogg or mp3")]
Text = Annotated[str | None, Form()]


def routes(hub: Hub) -> APIRouter:
    router = APIRouter()

    def find(name: str | None) -> Served:
        return hub.find(name, is_transcriber, "a model for speech")

    @router.post("/v1/audio/transcriptions", tags=["OpenAI"], response_model=None)
    async def transcriptions(
        request: Request,
        file: Sound,
        model: Annotated[str, Form()],
        language: Text = None,
        prompt: Text = None,
        response_format: Annotated[Format, Form()] = "json",
        temperature: Annotated[float, Form(ge=0, le=1)] = 0.0,
        granularities: Annotated[list[Granularity] | None, Form(alias="timestamp_granularities[]")] = None,
        include: Annotated[list[str] | None, Form(alias="include[]")] = None,
        stream: Annotated[bool, Form()] = False,
    ) -> dict[str, Any] | PlainTextResponse:
        _check(prompt=prompt, temperature=temperature, include=include, stream=stream)
        words = "word" in (granularities or [])
        heard, spoken = await transcribe(hub, request, find(model), file, words, language)
        return _written(heard, response_format, "transcribe", spoken, words)

    @router.post("/v1/audio/translations", tags=["OpenAI"], response_model=None)
    async def translations(
        request: Request,
        file: Sound,
        model: Annotated[str, Form()],
        prompt: Text = None,
        response_format: Annotated[Format, Form()] = "json",
        temperature: Annotated[float, Form(ge=0, le=1)] = 0.0,
    ) -> dict[str, Any] | PlainTextResponse:
        _check(prompt=prompt, temperature=temperature)
        heard, _ = await transcribe(hub, request, find(model), file, task="translate")
        return _written(heard, response_format, "translate", "en", words=False)

    @router.post("/api/transcribe", tags=["Glassformer"])
    async def ours(
        request: Request,
        file: Sound,
        model: Text = None,
        language: Text = None,
        details: Annotated[bool, Form(description="Times of words too.")] = False,
    ) -> dict[str, Any]:
        """What is said in a recording, in stretches between silences."""
        served = find(model)
        heard, spoken = await transcribe(hub, request, served, file, details, language)
        told = {name: value for name, value in asdict(heard).items() if name != "file"}
        return {"model": served.name, "language": spoken, **told}

    return router


def _check(**given: Any) -> None:
    for name, value in given.items():
        if value:
            raise ApiError(400, f"{name} is not offered for recordings.", "Leave it out.", name)


def _written(
    heard: Transcript, form: Format, task: str, language: str | None, words: bool
) -> dict[str, Any] | PlainTextResponse:
    match form:
        case "json":
            return {"text": heard.text}
        case "text":
            return PlainTextResponse(heard.text + "\n")
        case "srt" | "vtt":
            kind = "text/vtt" if form == "vtt" else "text/plain"
            return PlainTextResponse("\n".join(subtitles(heard, form)) + "\n", media_type=kind)
    said = {
        "task": task,
        "language": language or "unknown",
        "duration": heard.seconds,
        "text": heard.text,
        "segments": [_segment(i, segment) for i, segment in enumerate(heard.segments)],
    }
    return {**said, "words": [asdict(word) for s in heard.segments for word in s.words]} if words else said


def _segment(number: int, segment: Segment) -> dict[str, Any]:
    """What we do not measure stands there as the dialect wants it, with a value that says nothing."""
    return {
        "id": number,
        "seek": 0,
        "start": segment.start,
        "end": segment.end,
        "text": segment.text,
        "tokens": [],
        "temperature": 0.0,
        "avg_logprob": segment.score,
        "compression_ratio": 1.0,
        "no_speech_prob": 0.0,
    }
