"""/api/look: the page with every number of one answer, made in the model's lane so that no other request is traced."""

from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from pydantic import Base64Bytes, Field

from glassformer.look.page import make_page
from glassformer.look.scene import look_at
from glassformer.look.subject import LookOptions
from glassformer.serve.audio import kept_sound
from glassformer.serve.classify import kept_picture
from glassformer.serve.errors import ApiError
from glassformer.serve.hub import Hub
from glassformer.serve.lists import bounded
from glassformer.serve.models import Served
from glassformer.serve.own_messages import Ask
from glassformer.tasks.classifier import Classifier
from glassformer.tasks.transcriber import Transcriber
from glassformer.tasks.whisper import WhisperTranscriber


class LookAsk(Ask):
    texts: Annotated[list[str], bounded(0, 2)] = Field([], description="One, or two to compare.")
    file: Base64Bytes | None = Field(None, description="In place of a text: a picture or a recording, in base64.")
    beam: int = Field(4, ge=1, le=8)
    max_tokens: int | None = Field(None, ge=1, le=256)
    answer: str | None = Field(None, description="What the model is made to say.")


def routes(hub: Hub) -> APIRouter:
    router = APIRouter(prefix="/api", tags=["Glassformer"])

    @router.post("/look", response_class=HTMLResponse)
    async def look(ask: LookAsk, request: Request) -> HTMLResponse:
        """One offline HTML file, as `glassformer look` writes it."""
        if bool(ask.texts) == bool(ask.file):
            raise ApiError(400, "There is no input, or a text and a file.", "Give either texts or a file.", "texts")
        page = await (_look_at_file(hub, request, ask) if ask.file else _look_at_texts(hub, request, ask))
        return HTMLResponse(page, headers={"X-Content-Type-Options": "nosniff"})

    return router


async def _look_at_texts(hub: Hub, request: Request, ask: LookAsk) -> str:
    served = hub.find(ask.model, reads_texts, "a model whose inside is shown for a text")
    hub.check_texts([*ask.texts, ask.answer or ""])
    return await _look(hub, request, served, ask, ask.texts)


async def _look_at_file(hub: Hub, request: Request, ask: LookAsk) -> str:
    served = hub.find(ask.model, reads_files, "a model whose inside is shown for a file")
    assert ask.file is not None
    is_sound = isinstance(served.face, Transcriber | WhisperTranscriber)
    async with AsyncExitStack() as files:
        path = await files.enter_async_context(kept_sound(hub, ask.file) if is_sound else kept_picture(hub, ask.file))
        return await _look(hub, request, served, ask, [str(path)], "recording" if is_sound else "picture")


async def _look(
    hub: Hub, request: Request, served: Served, ask: LookAsk, inputs: list[str], title: str | None = None
) -> str:
    """`title` stands for the name of a file, which is ours and says nothing."""
    options = LookOptions(beam=ask.beam, max_tokens=ask.max_tokens, answer=ask.answer)

    def run(given: list[list[str]]) -> list[str]:
        scenes = [look_at(served.loaded, each, options) for each in given[0]]
        if title is not None:
            name = Path(inputs[0]).name
            titles = [scene.subject.text.replace(name, title) for scene in scenes]
            scenes = [replace(s, subject=replace(s.subject, text=text)) for s, text in zip(scenes, titles, strict=True)]
        return [make_page(served.name, served.task, scenes)]

    [page] = await hub.ask(request, served, object(), [inputs], run)
    return page


def reads_texts(served: Served) -> bool:
    """A text is a text here: for recordings and pictures it would be the name of a file."""
    return served.reads_text and served.task in ("translate", "complete", "fill", "classify")


def reads_files(served: Served) -> bool:
    face = served.face
    if isinstance(face, Classifier):
        return face.input == "pictures"
    return isinstance(face, Transcriber | WhisperTranscriber) and face.features.kind != "vectors"
