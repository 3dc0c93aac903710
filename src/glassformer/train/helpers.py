"""The batches of one step side by side, each on a core of its own, in processes that share the weights.

Several threads inside every small product spend much of their time waiting for each other; processes meet once a step.
A helper is a fork: it has the job already, sees the weights change, and leaves its gradients where the trainer adds
them up. What comes out is what comes out alone, to the bit where each has one batch, else but for the order of sums:
every batch after a step's first draws from a generator of its own.
"""

import contextlib
import math
import mmap
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, nn

from glassformer.errors import UserError
from glassformer.model.dropout import set_strength
from glassformer.train.checkpoint import trained
from glassformer.train.machine import autocast
from glassformer.train.settings import TrainSettings

if TYPE_CHECKING:
    from glassformer.train.loop import Job

SEEDS_APART = 1_000_003
T = TypeVar("T", bound=TrainSettings)
LEAST_TOKENS = 512  # of a batch on a core of its own; products of fewer rows lose more than waiting costs


def backward(job: "Job", settings: TrainSettings, batch: Any, n_tokens: int, step: int, number: int) -> float:
    """Add the gradients of a step's batch; its part of the mean loss."""
    device = next(job.model.parameters()).device
    with _chance(settings.seed, step, number, device), autocast(settings.precision, device):
        loss = job.loss(batch) / n_tokens
    loss.backward()  # type: ignore[no-untyped-call]
    return float(loss.detach())


@contextlib.contextmanager
def _chance(seed: int, step: int, number: int, device: torch.device) -> Iterator[None]:
    """The first batch of a step draws on; every other one as if it were alone, wherever it is worked on."""
    if number == 0:
        yield
        return
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed((seed + SEEDS_APART * (step + SEEDS_APART * number)) % 2**63)
        yield


def for_each_core(settings: T, device: torch.device, least: int = LEAST_TOKENS) -> T:
    """A step's batch cut into one for each core, unless their number was chosen or they would be too small."""
    if settings.accumulate is not None:
        return settings
    n = torch.get_num_threads()
    n = n if _can_fork(device) and settings.batch_tokens >= n * least else 1
    return replace(settings, accumulate=n, batch_tokens=settings.batch_tokens // n)


def n_processes(model: nn.Module, n_batches: int) -> int:
    """How many batches of a step run side by side: where there are enough of them, torch's threads become processes."""
    n_threads = torch.get_num_threads()
    return n_threads if n_batches >= n_threads and _can_fork(next(model.parameters()).device) else 1


def _can_fork(device: torch.device) -> bool:
    return device.type == "cpu" and sys.platform.startswith("linux")


class Helpers:
    """All processes but this one; with none of them everything is as usual."""

    def __init__(self, job: "Job", settings: TrainSettings) -> None:
        n = n_processes(job.model, settings.n_batches)
        self.own_share = math.ceil(settings.n_batches / n)  # batches of a step that are left to this process
        self.parameters = list(trained(job.model).values())
        self.n_threads = torch.get_num_threads()
        self.helpers: list[_Helper] = []
        if n == 1:
            return
        for parameter in self.parameters:
            parameter.data = _shared_like(parameter.data).copy_(parameter.data)
        for first in range(self.own_share, settings.n_batches, self.own_share):
            self.helpers.append(_Helper(job, settings, range(first, first + self.own_share), self))

    def load(self, step: int, strength: float, planned: Sequence[Any]) -> None:
        """Let each load its share of what this process does not do itself."""
        for i, helper in enumerate(self.helpers):
            helper.send(step, strength, planned[i * self.own_share : (i + 1) * self.own_share])

    def n_tokens(self) -> int:
        return sum(helper.receive() for helper in self.helpers)

    def go(self, n_tokens: int) -> None:
        """Now that it is known how many tokens the whole step has."""
        for helper in self.helpers:
            helper.send(n_tokens)

    @torch.no_grad()
    def gather(self) -> float:
        """Add their gradients to this process's own; their part of the mean loss."""
        total = 0.0
        for helper in self.helpers:
            loss, missing = helper.receive()
            total += loss
            for i, (parameter, found) in enumerate(zip(self.parameters, helper.gradients, strict=True)):
                if i not in missing:
                    parameter.grad = found.clone() if parameter.grad is None else parameter.grad.add_(found)
        return total

    @contextlib.contextmanager
    def one_core(self) -> Iterator[None]:
        """The other cores are theirs."""
        if not self.helpers:
            yield
            return
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(self.n_threads)

    def close(self) -> None:
        for helper in self.helpers:
            helper.close()
        self.helpers = []


class _Helper:
    """A process, seen from the trainer's."""

    def __init__(self, job: "Job", settings: TrainSettings, numbers: range, helpers: Helpers) -> None:
        self.gradients = [_shared_like(parameter.data) for parameter in helpers.parameters]
        self.pipe, theirs = Pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                for number in (signal.SIGINT, signal.SIGTERM):  # a group gets them together: the trainer decides
                    signal.signal(number, signal.SIG_IGN)
                for pipe in [self.pipe, *(other.pipe for other in helpers.helpers)]:
                    pipe.close()  # so that a trainer that is gone is noticed
                torch.set_num_threads(1)  # more of them would not survive a fork
                _help(theirs, job, settings, numbers, helpers.parameters, self.gradients)
                code = 0
            except (EOFError, OSError):  # the trainer is gone
                code = 0
            finally:
                os._exit(code)
        theirs.close()

    def send(self, *message: Any) -> None:
        with self._there():
            self.pipe.send(message)

    def receive(self) -> Any:
        with self._there():
            found = self.pipe.recv()
        if isinstance(found, str):
            raise RuntimeError(f"A helper failed.\n{found}")
        return found

    @contextlib.contextmanager
    def _there(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, OSError):
            raise UserError(
                f"The process {self.pid}, which worked on a part of each step, is gone: killed, or memory was short.",
                "The same command with --resume goes on; with OMP_NUM_THREADS=1 in front of it in one process.",
            ) from None

    def close(self) -> None:
        self.pipe.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def _help(
    pipe: Connection,
    job: "Job",
    settings: TrainSettings,
    numbers: range,
    parameters: Sequence[nn.Parameter],
    gradients: Sequence[Tensor],
) -> None:
    """The life of a helper: until the trainer closes its end."""
    while True:
        step, strength, planned = pipe.recv()
        try:
            batches = [job.load(item) for item in planned]
            pipe.send(sum(job.n_tokens(batch) for batch in batches))
            [n_tokens] = pipe.recv()
            job.model.train()
            set_strength(job.model, strength)
            for parameter in parameters:
                parameter.grad = None
            total = sum(
                backward(job, settings, batch, n_tokens, step, number)
                for number, batch in zip(numbers, batches, strict=False)
            )
            missing = {i for i, parameter in enumerate(parameters) if parameter.grad is None}
            for parameter, to in zip(parameters, gradients, strict=True):
                if parameter.grad is not None:
                    to.copy_(parameter.grad)
            pipe.send((total, missing))
        except EOFError:
            raise
        except Exception:
            pipe.send(traceback.format_exc())


def _shared_like(tensor: Tensor) -> Tensor:
    """Room for as many numbers in memory that a fork sees too."""
    size = max(1, tensor.numel() * tensor.element_size())
    return torch.frombuffer(mmap.mmap(-1, size), dtype=tensor.dtype, count=tensor.numel()).view(tensor.shape)
