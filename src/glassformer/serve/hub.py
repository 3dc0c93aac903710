"""What all dialects share: the models, the queue in front of them, keys, limits; and waiting for an answer."""

import asyncio
import hashlib
import hmac
import time
from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import numpy as np
from fastapi import Request

from glassformer.decode.complete_options import CompleteOptions
from glassformer.fast.cores import n_cores
from glassformer.serve.errors import ApiError, ClientGoneError
from glassformer.serve.limits import Limits
from glassformer.serve.metrics import Metrics
from glassformer.serve.models import Served
from glassformer.serve.queue import Job, Queue
from glassformer.serve.rows import CompleteJob, Piece, Rows
from glassformer.tasks.completer import Completer, Completion
from glassformer.tasks.translator import Translator

T = TypeVar("T")
PEEK = 0.25  # seconds between two looks whether the client is still there


class Hub:
    """One for each server."""

    def __init__(self, models: dict[str, Served], limits: Limits, keys: Sequence[str] = ()) -> None:
        self.models, self.limits, self.metrics = models, limits, Metrics()
        self.keys = [_digest(key) for key in keys]
        self.queue = Queue(limits, self.metrics)
        self.rows: dict[str, Rows] = {}
        for name, served in models.items():
            if isinstance(served.face, Completer):
                self.rows[name] = Rows(served.face, limits.rows, self.metrics, name)
            self.queue.open_lane(name, self.rows.get(name), n_cores() if isinstance(served.face, Translator) else 1)
        self.metrics.gauges["queue_waiting"] = self.queue.n_waiting
        self.metrics.gauges["rows_running"] = lambda: sum(rows.n_running() for rows in self.rows.values())

    def knows_key(self, given: str | None) -> bool:
        """In a time that does not depend on how much of the key is right."""
        if not self.keys:
            return True
        digest = _digest(given or "")
        return sum(hmac.compare_digest(digest, key) for key in self.keys) > 0  # a sum: all are compared

    def find(self, name: str | None, fits: Callable[[Served], bool], what: str) -> Served:
        """The model of this name, or the first that fits where none is named."""
        if name is None:
            for served in self.models.values():
                if fits(served):
                    return served
            raise ApiError(404, f"No model here is {what}.", code="model_not_found")
        if name not in self.models:
            raise ApiError(404, f"There is no model {name[:80]!r}.", "See /v1/models.", "model", "model_not_found")
        if not fits(self.models[name]):
            raise ApiError(400, f"The model {name!r} is not {what}.", "See /v1/models.", "model")
        return self.models[name]

    def check_texts(self, texts: Sequence[Any]) -> int:
        """The length of texts, pairs of them, lists or arrays of numbers: not too many, not too long, and whole."""
        n = sum(map(_size, texts))
        for name, given, most in (("texts", len(texts), self.limits.texts), ("characters", n, self.limits.characters)):
            if given > most:
                raise ApiError(413, f"The request has {given:,} {name}, but at most {most:,} are taken.", "Give fewer.")
        return n

    async def ask(
        self,
        request: Request,
        served: Served,
        kind: Hashable,
        items: list[Any],
        run: Callable[[list[Any]], list[T]],
        beside: bool = False,
    ) -> list[T]:
        """The answers to all items, run together with those of others of the same kind."""
        return await self.wait(request, self.queue.put(served.name, Job(kind, items, run, beside)))

    def check_tokens(self, served: Served, prompts: list[list[int]], n_new: int) -> None:
        """Prompts with so many tokens more are neither too long for the server nor for the model."""
        longest, most = max(map(len, prompts), default=0) + n_new, self.limits.tokens
        if longest > most:
            raise ApiError(
                400, f"Prompt and answer would have {longest:,} tokens, but at most {most:,} are made.", "Ask for less."
            )
        self.rows[served.name].check(prompts, n_new)

    def begin(self, served: Served, job: CompleteJob) -> None:
        """Let completions wait for their turn."""
        self.check_tokens(served, job.prompts, job.options.max_tokens)
        n, most = len(job.prompts) * job.options.n, self.limits.queue
        if n > most:
            raise ApiError(413, f"{n:,} answers are asked for, but at most {most:,} may wait.", "Ask for fewer.", "n")
        self.queue.require_room(n)
        self.rows[served.name].put(job)
        self.queue.lanes[served.name].wake()

    async def complete(
        self, request: Request, served: Served, prompts: list[list[int]], options: CompleteOptions
    ) -> list[Completion]:
        """All answers, `options.n` to each prompt one after the other."""
        job = CompleteJob(prompts, options)
        self.begin(served, job)
        found = await self.wait(request, job.future)
        self.metrics.tokens(served.name, sum(map(len, prompts)), sum(len(answer.tokens) for answer in found))
        return found

    def stream(self, served: Served, prompts: list[list[int]], options: CompleteOptions) -> AsyncIterator[Piece]:
        """The same piece by piece; what is wrong with the request is said at once."""
        loop, pieces = asyncio.get_running_loop(), asyncio.Queue[Piece | None]()

        def tell(piece: Piece | None) -> None:
            loop.call_soon_threadsafe(pieces.put_nowait, piece)

        job = CompleteJob(prompts, options, tell)
        job.future.add_done_callback(lambda _: tell(None))
        self.begin(served, job)
        return self._pieces(served, job, pieces)

    async def _pieces(
        self, served: Served, job: CompleteJob, pieces: "asyncio.Queue[Piece | None]"
    ) -> AsyncIterator[Piece]:
        until, n_made = time.monotonic() + self.limits.seconds, 0
        try:
            while True:
                async with asyncio.timeout(max(0.0, until - time.monotonic())):
                    piece = await pieces.get()
                if piece is None:
                    job.future.result()
                    return
                n_made += len(piece.tokens)
                yield piece
        except TimeoutError:
            raise _too_long(self.limits.seconds) from None
        finally:
            job.future.cancel()
            self.metrics.tokens(served.name, sum(map(len, job.prompts)), n_made)

    async def wait(self, request: Request, future: "Future[T]") -> T:
        """The answer; given up where the client has gone or the time is over."""
        waiting, until = asyncio.wrap_future(future), time.monotonic() + self.limits.seconds
        try:
            while not (await asyncio.wait({waiting}, timeout=PEEK))[0]:
                if await request.is_disconnected():
                    raise ClientGoneError
                if time.monotonic() > until:
                    raise _too_long(self.limits.seconds)
            return waiting.result()
        finally:
            waiting.cancel()


def _size(given: Any) -> int:
    if isinstance(given, str):
        try:
            given.encode("utf-8")
        except UnicodeEncodeError:
            raise ApiError(400, "A text holds half a character.", "Send whole ones.") from None
        return len(given)
    if isinstance(given, np.ndarray):
        return int(given.size)
    return sum(map(_size, given)) if given and isinstance(given[0], str) else len(given)


def _too_long(seconds: float) -> ApiError:
    return ApiError(
        503, f"It was not done in {seconds:g} seconds.", "Ask for less, or ask again later.", code="timeout"
    )


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", errors="replace")).digest()
