"""/api/look: the page with every number of one answer, made in the model's lane so that no other request is traced."""

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from glassformer.look.page import make_page
from glassformer.look.scene import look_at
from glassformer.look.subject import LookOptions
from glassformer.serve.hub import Hub
from glassformer.serve.models import Served
from glassformer.serve.own import STRICT, Name


class LookAsk(BaseModel):
    model_config = STRICT
    model: Name = None
    texts: Annotated[list[str], Field(min_length=1, max_length=2, description="One, or two to compare.")]
    beam: int = Field(4, ge=1, le=8)
    max_tokens: int | None = Field(None, ge=1, le=256)
    answer: str | None = Field(None, description="What the model is made to say.")


def routes(hub: Hub) -> APIRouter:
    router = APIRouter(prefix="/api", tags=["Glassformer"])

    @router.post("/look", response_class=HTMLResponse)
    async def look(ask: LookAsk, request: Request) -> HTMLResponse:
        """One offline HTML file, as `glassformer look` writes it."""
        served = hub.find(ask.model, can_look, "a model whose inside is shown for a text")
        hub.check_texts([*ask.texts, ask.answer or ""])
        options = LookOptions(beam=ask.beam, max_tokens=ask.max_tokens, answer=ask.answer)

        def run(given: list[list[str]]) -> list[str]:
            with served.encoding:
                scenes = [look_at(served.loaded, text, options) for text in given[0]]
                return [make_page(served.name, served.task, scenes)]

        [page] = await hub.ask(request, served, object(), [ask.texts], run)
        return HTMLResponse(page, headers={"X-Content-Type-Options": "nosniff"})

    return router


def can_look(served: Served) -> bool:
    """A text is a text here: for recordings and pictures it would be the name of a file."""
    return served.reads_text and served.task in ("translate", "complete", "fill", "classify")
