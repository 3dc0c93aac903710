"""What is wrong, in the words of each dialect: OpenAI's under /v1, ours under /api, LibreTranslate's elsewhere.

Nothing of the machine leaks: neither paths nor tracebacks.
"""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from glassformer.errors import UserError
from glassformer.serve.queue import QueueFullError

KINDS = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
BROKEN = "Something went wrong in the server."


class ApiError(Exception):
    """Something that is wrong with a request."""

    def __init__(
        self,
        status: int,
        message: str,
        hint: str = "",
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.hint = status, message, hint
        self.param, self.code, self.headers = param, code, headers


class ClientGoneError(Exception):
    """Nobody waits for the answer."""


def as_api_error(error: Exception) -> ApiError:
    """Any error as one that may be told."""
    match error:
        case ApiError():
            return error
        case UserError():
            return ApiError(400, error.message, error.hint)
        case QueueFullError():
            wait = error.retry_after
            return ApiError(
                429,
                str(error),
                f"Ask again in {wait} seconds.",
                code="queue_full",
                headers={"Retry-After": str(wait)},
            )
        case RequestValidationError():
            place, said = _wrong_in(error)
            return ApiError(422, f"{place or 'the body'}: {said}.", "See /openapi.json.", param=place or None)
        case HTTPException():
            return ApiError(error.status_code, f"{error.detail}.", headers=error.headers)
        case _:
            return ApiError(500, BROKEN, "Its log says more.")


def _wrong_in(error: RequestValidationError) -> tuple[str, str]:
    """The field that is wrong, and why: of the types that a value may have, the one that it came nearest to."""
    found: dict[tuple[str, ...], list[str]] = {}
    for each in error.errors():
        said = "a file is wanted" if "UploadFile" in str(each["msg"]) else str(each["msg"])
        found.setdefault(_place(each, error.body), []).append(said)
    first = next(iter(found))
    place = max((place for place in found if place[:1] == first[:1]), key=len)
    return ".".join(place), "; or ".join(dict.fromkeys(found[place]))


def _place(wrong: Mapping[str, Any], body: Any) -> tuple[str, ...]:
    """Where in the body, without the names of types that pydantic puts in between."""
    where, *parts = wrong["loc"]
    if where != "body" or (wrong["type"] == "missing" and len(parts) < 2):
        return tuple(map(str, parts))
    place: list[str] = []
    for part in parts:
        if part in (body if isinstance(body, Mapping) else range(len(body)) if isinstance(body, list) else ()):
            body = body[part]
            place.append(str(part))
    missing = [str(parts[-1])] if wrong["type"] == "missing" else []
    return (*place, *missing)


def in_words(path: str, error: ApiError) -> dict[str, Any]:
    """The error as clients of this path expect it."""
    said = f"{error.message} {error.hint}".strip()
    if path.startswith("/v1/"):
        kind = KINDS.get(error.status, "server_error" if error.status >= 500 else "invalid_request_error")
        return {"error": {"message": said, "type": kind, "param": error.param, "code": error.code}}
    if path.startswith("/api/"):
        return {"error": error.message, "hint": error.hint}
    return {"error": said}


def respond(path: str, error: Exception) -> Response:
    told = as_api_error(error)
    # OpenAI's clients know 400 for what is wrong in a body.
    status = 400 if told.status == 422 and not path.startswith("/api/") else told.status
    return JSONResponse(in_words(path, told), status, dict(told.headers or {}))


def add_handlers(app: FastAPI) -> None:
    async def handle(request: Request, error: Exception) -> Response:
        if isinstance(error, ClientGoneError):
            return Response(status_code=499)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if isinstance(error, RequestValidationError) and error.errors()[0]["loc"] == ("body",) and "json" not in kind:
            given = f"of type {kind[:60]}" if kind else "of no type"
            error = ApiError(415, f"A body {given} is not read here.", "Send Content-Type: application/json.")
        return respond(request.url.path, error)

    for kind in (
        ApiError,
        UserError,
        QueueFullError,
        RequestValidationError,
        HTTPException,
        ClientGoneError,
        Exception,
    ):
        app.add_exception_handler(kind, handle)
