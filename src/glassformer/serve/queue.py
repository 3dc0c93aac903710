"""The one queue between HTTP and the engines: what all clients ask of a model is joined into batches.

Each model has a lane: a thread that runs its batches, one after the other. Where the engine allows it, helpers run
others beside them, so that no core waits while the answers of a batch are sent. Requests that may run together have the
same `kind`; a batch takes one text of each request in turn, so that a long list does not keep a single text waiting.
A request is given up by cancelling its future. Deliberately not here: completions, which are joined token by token
(`rows`), and what an answer looks like.
"""

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from glassformer.errors import UserError
from glassformer.serve.limits import Limits
from glassformer.serve.log import log_failure
from glassformer.serve.metrics import Metrics


class QueueFullError(Exception):
    """There is no place left; `retry_after` is in seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__("The server has too much to do.")
        self.retry_after = retry_after


@dataclass(eq=False)
class Job:
    """The texts (or what else the model reads) of one request; `run` answers any of this kind, of other jobs too."""

    kind: Hashable
    items: list[Any]
    run: Callable[[list[Any]], list[Any]]
    beside: bool = False  # it may run while another batch of the same model does
    future: "Future[list[Any]]" = field(default_factory=Future)
    n_taken: int = 0
    turn: int = 0

    def __post_init__(self) -> None:
        self.answers: list[Any] = [None] * len(self.items)


class StepByStep(Protocol):
    """Work that goes on a step at a time beside the batches."""

    def n_waiting(self) -> int: ...

    def n_running(self) -> int: ...

    def step(self) -> None: ...

    def fail(self, error: Exception) -> None: ...


class Lane:
    """The work for one model, done by one thread, and by helpers where it may be done beside."""

    def __init__(
        self, name: str, limits: Limits, metrics: Metrics, rows: StepByStep | None = None, n_threads: int = 1
    ) -> None:
        self.name, self.limits, self.metrics, self.rows = name, limits, metrics, rows
        self.n_threads = n_threads
        self.jobs: list[Job] = []
        self.changed = threading.Condition()
        self.turn = 0
        self.closed = False
        self.threads = [
            threading.Thread(target=self._work, args=(i > 0,), name=f"lane {name}", daemon=True)
            for i in range(n_threads)
        ]
        for thread in self.threads:
            thread.start()

    def put(self, job: Job) -> None:
        with self.changed:
            self.turn += 1
            job.turn = self.turn
            self.jobs.append(job)
            self.changed.notify_all()

    def wake(self) -> None:
        """There is something to do step by step."""
        with self.changed:
            self.changed.notify_all()

    def n_waiting(self) -> int:
        """Texts and completions that have not begun."""
        with self.changed:
            n = sum(len(job.items) - job.n_taken for job in self.jobs if not job.future.cancelled())
        return n + (self.rows.n_waiting() if self.rows is not None else 0)

    def close(self) -> None:
        """End when all is done."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        for thread in self.threads:
            thread.join()

    def _work(self, is_helper: bool) -> None:
        n_last = 0  # texts in this thread's last batch
        while True:
            with self.changed:
                while not self._has_work(is_helper):
                    if self.closed:
                        return
                    self.changed.wait()
            self._wait_for_company(n_last)
            batch = self._take(is_helper)
            n_last = len(batch) or n_last
            self._run(batch)
            if not is_helper and self.rows is not None and self.rows.n_waiting() + self.rows.n_running():
                try:
                    self.rows.step()
                except Exception as error:
                    self.rows.fail(_told(error))

    def _has_work(self, is_helper: bool) -> bool:
        if is_helper:
            return any(job.beside for job in self.jobs)
        return bool(self.jobs) or (self.rows is not None and self.rows.n_waiting() + self.rows.n_running() > 0)

    def _wait_for_company(self, n_last: int) -> None:
        """Clients that got their answers together ask together again: the first of them waits for the others."""
        if n_last < 2 or not self.limits.wait_ms or (self.rows is not None and self.rows.n_running()):
            return
        until = time.monotonic() + self.limits.wait_ms / 1000
        wanted = min(n_last, self.limits.batch)
        with self.changed:
            while sum(len(job.items) - job.n_taken for job in self.jobs) < wanted:
                if (left := until - time.monotonic()) <= 0 or not self.jobs:
                    return
                self.changed.wait(left)

    def _take(self, is_helper: bool) -> list[tuple[Job, int]]:
        """The next batch: of the kind whose turn it is, one text of each job after the other until it is full."""
        with self.changed:
            self.jobs = [job for job in self.jobs if not job.future.cancelled()]
            mine = [job for job in self.jobs if job.beside or not is_helper]
            if not mine:
                return []
            first = min(mine, key=lambda job: job.turn)
            alike = sorted((job for job in mine if job.kind == first.kind), key=lambda job: job.turn)
            batch: list[tuple[Job, int]] = []
            most = max(1, self.limits.batch // self.n_threads) if first.beside else self.limits.batch
            while alike and len(batch) < most:
                for job in alike[: most - len(batch)]:
                    batch.append((job, job.n_taken))
                    job.n_taken += 1
                alike = [job for job in alike if job.n_taken < len(job.items)]
            for job in {job for job, _ in batch}:
                self.turn += 1
                job.turn = self.turn
            self.jobs = [job for job in self.jobs if job.n_taken < len(job.items)]
        return batch

    def _run(self, batch: list[tuple[Job, int]]) -> None:
        if not batch:
            return
        self.metrics.batch(self.name, len(batch))
        batch.sort(key=lambda pair: pair[1])
        try:
            found = batch[0][0].run([job.items[i] for job, i in batch])
        except Exception as error:
            self._run_apart(batch, error)
            return
        for (job, i), answer in zip(batch, found, strict=True):
            _answer(job, i, answer)

    def _run_apart(self, batch: list[tuple[Job, int]], error: Exception) -> None:
        """What was wrong with one request is no fault of the others."""
        jobs = list(dict.fromkeys(job for job, _ in batch))
        if len(jobs) == 1:
            job = jobs[0]
            with self.changed:
                self.jobs = [other for other in self.jobs if other is not job]
            settle(job.future, error=_told(error))
            return
        for job in jobs:
            if not job.future.cancelled():
                self._run([(other, i) for other, i in batch if other is job])


def _answer(job: Job, i: int, answer: Any) -> None:
    job.answers[i] = (answer,)  # so that None can be one
    if all(each is not None for each in job.answers):
        settle(job.future, [each[0] for each in job.answers])


def settle(future: "Future[Any]", result: Any = None, error: Exception | None = None) -> None:
    """The answer, or what went wrong; nothing if nobody waits for it any more."""
    with suppress(InvalidStateError):
        future.set_exception(error) if error is not None else future.set_result(result)


def _told(error: Exception) -> Exception:
    """The error itself, after the log got where it happened, unless it is a user's own."""
    if not isinstance(error, UserError):
        log_failure(error)
    return error


class Queue:
    """The lanes of all models, and how much may wait in them together."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self.limits, self.metrics = limits, metrics
        self.lanes: dict[str, Lane] = {}

    def open_lane(self, name: str, rows: StepByStep | None = None, n_threads: int = 1) -> Lane:
        self.lanes[name] = Lane(name, self.limits, self.metrics, rows, n_threads)
        return self.lanes[name]

    def n_waiting(self) -> int:
        return sum(lane.n_waiting() for lane in self.lanes.values())

    def require_room(self, n: int) -> None:
        """Refuse what the queue has no room for; an empty queue takes any request that keeps its own limits."""
        waiting = self.n_waiting()
        if waiting and waiting + n > self.limits.queue:
            self.metrics.refused()
            raise QueueFullError(retry_after=1 + waiting // (4 * self.limits.batch))

    def put(self, lane: str, job: Job) -> "Future[list[Any]]":
        self.require_room(len(job.items))
        if not job.items:
            job.future.set_result([])
        else:
            self.lanes[lane].put(job)
        return job.future

    def close(self) -> None:
        for lane in self.lanes.values():
            lane.close()
