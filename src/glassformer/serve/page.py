"""The web page: a fixed table of small files, and the lesson. No path of a request reaches the file system."""

import threading
from functools import cache
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import Response

from glassformer.learn.site import POLICY as LESSON_POLICY
from glassformer.learn.site import make_page
from glassformer.serve.errors import ApiError

STATIC = Path(__file__).parent / "static"
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# The browser itself refuses whatever does not come from this server.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; "
    "media-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

# The page of /api/look has its scripts inside and forbids itself all else.
LOOK_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_writing = threading.Lock()  # the lesson takes seconds to write, so it is written once, when the first reader comes


def read_files() -> dict[str, tuple[bytes, str]]:
    """All files by name, each with its type."""
    return {path.name: (path.read_bytes(), KINDS[path.suffix]) for path in sorted(STATIC.iterdir())}


def routes() -> APIRouter:
    router = APIRouter(include_in_schema=False)
    files = read_files()

    @router.get("/")
    async def index() -> Response:
        return _response(*files["index.html"])

    @router.get("/page/{name}")
    async def file(name: str) -> Response:
        if name not in files:
            raise ApiError(404, "There is no such file.")
        return _response(*files[name])

    @router.get("/look")
    async def look() -> Response:
        return _response(*files["look.html"], LOOK_POLICY)

    @router.get("/learn")
    def lesson() -> Response:
        return _response(_lesson(), KINDS[".html"], LESSON_POLICY)

    return router


def _lesson() -> bytes:
    with _writing:
        return _write_lesson()


@cache
def _write_lesson() -> bytes:
    return make_page().encode()


def _response(body: bytes, kind: str, policy: str = POLICY) -> Response:
    headers = {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
        "Cache-Control": "no-cache",
    }
    return Response(body, media_type=kind, headers=headers)
