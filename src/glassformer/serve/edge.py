"""Around every request: a body that is too large is refused, a failure is told without its traceback, and each request
leaves one line in the log (JSON, without a word of what users wrote) and its time in the metrics."""

import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from fastapi import HTTPException

from glassformer.serve.errors import respond
from glassformer.serve.hub import Hub
from glassformer.serve.log import log, log_failure

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


class Edge:
    """An ASGI application around another."""

    def __init__(self, app: App, hub: Hub) -> None:
        self.app, self.hub = app, hub

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] == "HEAD":  # the answer to GET, of which the protocol sends the head
            scope = {**scope, "method": "GET"}
        began, status, most = time.perf_counter(), 0, self.hub.limits.body
        too_large = HTTPException(413, f"The request has more than {most:,} bytes")
        n_read = 0

        async def counting_receive() -> Message:
            nonlocal n_read
            message = await receive()
            n_read += len(message.get("body", b""))
            if n_read > most:
                raise too_large
            return message

        async def watching_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            if _announced(scope) > most:
                raise too_large
            await self.app(scope, counting_receive, watching_send)
        except HTTPException as error:
            if not status:
                await respond(scope["path"], error)(scope, receive, watching_send)
        except Exception as error:
            log_failure(error)
            if not status:
                await respond(scope["path"], error)(scope, receive, watching_send)
        finally:
            self._note(scope, status or 499, time.perf_counter() - began)

    def _note(self, scope: Message, status: int, seconds: float) -> None:
        # A path that is none of ours may hold anything, and would make a new row in the metrics each time.
        path = getattr(scope.get("route"), "path", None) or "-"
        self.hub.metrics.request(path, status, seconds)
        fields = {"method": scope["method"][:10], "path": path, "status": status, "ms": round(1000 * seconds, 1)}
        log.info("request", extra={"fields": fields})


def _announced(scope: Message) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0
