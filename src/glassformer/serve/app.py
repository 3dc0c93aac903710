"""The application: all dialects around one hub, with keys, CORS and the edge."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import PlainTextResponse

from glassformer import __version__
from glassformer.serve import libretranslate, look, openai_audio, openai_models, openai_text, own, page, runs
from glassformer.serve.edge import App, Edge
from glassformer.serve.errors import add_handlers
from glassformer.serve.guard import Guard
from glassformer.serve.hub import Hub
from glassformer.serve.limits import Limits
from glassformer.serve.models import Served


@dataclass(frozen=True, kw_only=True)
class Access:
    """Who may ask: with which keys, under which names of this machine, from which web pages."""

    keys: Sequence[str] = ()
    hosts: Sequence[str] = ("*",)
    origins: Sequence[str] = ()


def create_app(
    models: dict[str, Served],
    limits: Limits | None = None,
    access: Access | None = None,
    run_folders: Sequence[Path] = (),
) -> App:
    """An ASGI application; in `run_folders` there are training runs to be shown."""
    access = access or Access()
    hub = Hub(models, limits or Limits(), access.keys)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        hub.queue.close()

    app = FastAPI(
        title="Glassformer",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # behind a proxy it would lead elsewhere
        lifespan=lifespan,
        debug=False,
    )
    app.state.hub = hub
    add_handlers(app)
    _add_routes(app, hub, run_folders)
    app.add_middleware(Guard, hub=hub, hosts=access.hosts)
    if access.origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=list(access.origins), allow_methods=["GET", "POST"], allow_headers=["*"]
        )
    return Edge(app, hub)


def _add_routes(app: FastAPI, hub: Hub, run_folders: Sequence[Path]) -> None:
    for part in (own, look, openai_models, openai_text, openai_audio, libretranslate):
        app.include_router(part.routes(hub))
    app.include_router(runs.routes(hub, run_folders))
    app.include_router(page.routes())

    @app.get("/health")
    async def health() -> dict[str, Any]:
        return {"status": "ok"}

    @app.get("/metrics")
    async def metrics() -> PlainTextResponse:
        return PlainTextResponse(hub.metrics.text(), media_type="text/plain; version=0.0.4")
