"""The queue by itself: batches, turns, errors that are one's own, and room."""

import math
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from glassformer.errors import UserError
from glassformer.serve.limits import Limits
from glassformer.serve.metrics import Metrics
from glassformer.serve.queue import Job, Queue, QueueFullError


class Slow:
    """Doubles numbers, once it may; notes each batch."""

    def __init__(self) -> None:
        self.may, self.began = threading.Event(), threading.Event()
        self.batches: list[list[int]] = []

    def __call__(self, items: list[Any]) -> list[int]:
        self.began.set()
        assert self.may.wait(20)
        self.batches.append(list(items))
        if 13 in items:
            raise UserError("13 is unlucky.")
        if 0 in items:
            raise ZeroDivisionError
        return [2 * item for item in items]


@pytest.fixture
def slow() -> Iterator[Slow]:
    run = Slow()
    yield run
    run.may.set()


@pytest.fixture
def queue(slow: Slow) -> Iterator[Queue]:
    found = Queue(Limits(batch=4, queue=10, wait_ms=0), Metrics())
    found.open_lane("m")
    yield found
    slow.may.set()
    found.close()


def test_what_comes_while_a_batch_runs_is_joined_fairly(queue: Queue, slow: Slow) -> None:
    first = queue.put("m", Job("a", [1], slow))
    assert slow.began.wait(20)
    many = queue.put("m", Job("a", [2, 3, 4, 5, 6], slow))
    other = queue.put("m", Job("b", [7], slow))
    single = queue.put("m", Job("a", [8], slow))
    slow.may.set()
    assert first.result(20) == [2]
    assert many.result(20) == [4, 6, 8, 10, 12]
    assert other.result(20) == [14]
    assert single.result(20) == [16]
    assert [sorted(batch) for batch in slow.batches] == [[1], [2, 3, 4, 8], [7], [5, 6]]


def test_what_is_wrong_with_one_is_not_wrong_with_others(queue: Queue, slow: Slow) -> None:
    queue.put("m", Job("a", [1], slow))
    assert slow.began.wait(20)
    good, bad, broken = (queue.put("m", Job("a", [n], slow)) for n in (3, 13, 0))
    slow.may.set()
    assert good.result(20) == [6]
    with pytest.raises(UserError, match="unlucky"):
        bad.result(20)
    with pytest.raises(ZeroDivisionError):
        broken.result(20)


def test_a_job_that_is_given_up_is_not_run(queue: Queue, slow: Slow) -> None:
    queue.put("m", Job("a", [1], slow))
    assert slow.began.wait(20)
    gone = queue.put("m", Job("a", [2, 3], slow))
    assert queue.n_waiting() == 2
    gone.cancel()
    assert queue.n_waiting() == 0
    last = queue.put("m", Job("a", [4], slow))
    slow.may.set()
    assert last.result(20) == [8]
    assert slow.batches == [[1], [4]]


def test_helpers_run_batches_beside_others_where_that_is_allowed() -> None:
    queue, slow, alone = Queue(Limits(batch=4, wait_ms=0), Metrics()), Slow(), Slow()
    queue.open_lane("m", n_threads=2)
    both = threading.Barrier(2, timeout=20)

    def meet(items: list[Any]) -> list[int]:
        both.wait()  # passes only where two batches run at once
        return [3 * item for item in items]

    first = [queue.put("m", Job(i, [i], meet, beside=True)) for i in (1, 2)]
    assert [found.result(20) for found in first] == [[3], [6]]
    # What may not run beside others is done by one thread, while a helper goes on with the rest.
    one, two = (queue.put("m", Job(f"alone {n}", [n], alone)) for n in (1, 2))
    assert alone.began.wait(20)
    slow.may.set()
    assert queue.put("m", Job("a", [1, 2, 3, 4, 5], slow, beside=True)).result(20) == [2, 4, 6, 8, 10]
    assert [len(batch) for batch in slow.batches] == [2, 2, 1]  # a batch is shared out between the threads
    assert not alone.batches
    many = queue.put("m", Job("many", [1, 2, 3, 4], alone))
    alone.may.set()
    assert [one.result(20), two.result(20), many.result(20)] == [[2], [4], [2, 4, 6, 8]]
    assert alone.batches == [[1], [2], [1, 2, 3, 4]]  # and not in parts, as no other thread takes the rest
    queue.close()
    assert not any(thread.is_alive() for thread in queue.lanes["m"].threads)


def test_a_full_queue_says_when_to_come_again(queue: Queue, slow: Slow) -> None:
    queue.put("m", Job("a", [1], slow))
    assert slow.began.wait(20)
    queue.put("m", Job("a", list(range(1, 11)), slow))
    with pytest.raises(QueueFullError) as caught:
        queue.put("m", Job("a", [2], slow))
    assert caught.value.retry_after >= 1
    assert "refused_total 1" in queue.metrics.text()


def test_nothing_asked_is_answered_at_once(queue: Queue, slow: Slow) -> None:
    assert queue.put("m", Job("a", [], slow)).result(1) == []


@pytest.mark.parametrize("change", [{"batch": 0}, {"queue": 0}, {"wait_ms": -1}, {"seconds": 0}, {"seconds": math.inf}])
def test_limits_must_allow_something_and_be_some(change: dict[str, float]) -> None:
    with pytest.raises(UserError, match="limit"):
        Limits(**change)  # type: ignore[arg-type]
