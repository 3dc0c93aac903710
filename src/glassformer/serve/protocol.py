"""HTTP/1.1 from people who cannot or will not speak it: a head that is too long, or a request that comes too slowly, is
refused, so that nobody keeps a connection or fills the memory without asking anything."""

import asyncio
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class CarefulProtocol(HttpToolsProtocol):
    """Uvicorn's own, which waits for ever and reads heads of any length, with limits."""

    most_head: ClassVar[int] = 1 << 16  # bytes of a request line with its headers
    head_seconds: ClassVar[float] = 20.0
    body_seconds: ClassVar[float] = 300.0  # the largest body over a slow line
    idle_seconds: ClassVar[int] = 30  # between an answer and the next request

    timer: asyncio.TimerHandle | None = None
    n_head = 0  # bytes so far of a head that has no end yet
    in_body = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.timeout_keep_alive = self.idle_seconds
        self._within(self.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._within(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.timer is None and not self.in_body:
            self._within(self.head_seconds)
        super().data_received(data)
        if self.timer is not None and not self.in_body:
            self.n_head += len(data)
            if self.n_head > self.most_head:
                self._refuse("431 Request Header Fields Too Large")

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self.n_head, self.in_body = 0, True
        self._within(self.body_seconds)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self.in_body = False
        self._within(None)

    def _within(self, seconds: float | None) -> None:
        """What is awaited now has so long; None: nothing is awaited."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None if seconds is None else self.loop.call_later(seconds, self._refuse, "408 Request Timeout")

    def _refuse(self, status: str) -> None:
        self._within(None)
        answered = self.cycle is None or self.cycle.response_complete
        if answered or (self.in_body and not self.cycle.response_started):
            self.transport.write(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
        self.transport.close()  # a client that begins to ask again in mid-answer is not waited for
