"""The training loop: one way through for every task. A `Job` says what a batch is and how good the model is.

The loop owns steps, schedule, accumulation, clipping, validation and when to save. A run that was stopped at any moment
and taken up goes on with the very numbers of the run that was never stopped.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from glassformer.errors import UserError
from glassformer.model.dropout import set_strength
from glassformer.train.average import RunningMean
from glassformer.train.checkpoint import load_parameters, trained, write_checkpoint
from glassformer.train.early import keep_early
from glassformer.train.helpers import Helpers, backward
from glassformer.train.optim import build_optimizer
from glassformer.train.plan import measure_step, plan_steps
from glassformer.train.report import Report
from glassformer.train.run_files import Moving, Progress, RunFiles
from glassformer.train.schedule import learning_rate
from glassformer.train.settings import TrainSettings


@dataclass(frozen=True)
class Validation:
    """How good a model is: `score` decides (more is better), the metrics and samples are for people."""

    score: float
    metrics: dict[str, float]
    samples: list[str] = field(default_factory=list)


class Job(Protocol):
    """What the loop needs to know of a task."""

    @property
    def model(self) -> nn.Module: ...

    def plan_epoch(self, epoch: int) -> list[Any]:
        """The epoch's batches, as whatever `load` understands."""
        ...

    def load(self, planned: Any) -> Any: ...

    def n_tokens(self, batch: Any) -> int: ...

    def loss(self, batch: Any) -> Tensor:
        """Summed over the batch's tokens, so that batches add up."""
        ...

    def validate(self) -> Validation: ...


class Trainer:
    """One run in one folder."""

    def __init__(self, job: Job, settings: TrainSettings, folder: Path, identity: str, report: Report) -> None:
        """`identity` stands for data, model and settings: a run is taken up with the same ones only."""
        self.job, self.settings, self.report = job, settings, report
        mean = RunningMean(job.model, settings.ema) if settings.ema else None
        self.moving = Moving(job.model, build_optimizer(job.model, settings), mean)
        self.files = RunFiles(folder, identity)
        assert settings.steps is not None or settings.minutes is not None
        self.progress = Progress(n_steps=settings.steps or 1)
        self.batches: list[Any] = []
        self.strength = 0.0  # of dropout; none is set yet
        self.stop_requested = False
        self.began = time.monotonic()
        torch.manual_seed(settings.seed)

    def resume(self) -> bool:
        """Take up from the newest whole checkpoint; False if there is none."""
        found = self.files.load(self.moving, self.report.say)
        self.progress = found or self.progress
        return found is not None

    def run(self) -> Progress:
        """Train to the end, or to the next full step after `stop_requested`; either way the run is saved."""
        p = self.progress
        self.began = time.monotonic() - p.seconds
        self.helpers = Helpers(self.job, self.settings)
        try:
            return self._run()
        finally:
            self.helpers.close()

    def _run(self) -> Progress:
        """The steps, now that helpers are there for them."""
        p = self.progress
        if p.step == 0:
            seconds = measure_step(self.job, self.settings, self.helpers) if self.settings.minutes else 0.0
            p.seconds = p.preparing = time.monotonic() - self.began
            plan_steps(p, self.settings, seconds)
        self.report.begin(p)
        try:
            while not p.finished:
                loss, n_tokens, norm = self._step()
                self.report.step(p, loss, n_tokens, self._learning_rate(), norm)
                keep_early(self.files.out, p.step, self.moving)
                due = p.step >= p.n_steps or p.step >= p.next_validation
                if due:
                    self._validate()
                if due or self.stop_requested:
                    self.files.save(self.moving, p)
                if self.stop_requested:
                    break
        finally:
            self.report.close()
        return p

    def _step(self) -> tuple[float, int, float]:
        """The loss, the tokens that it counts, and how long the gradient was before it was shortened."""
        p, s, model = self.progress, self.settings, self.job.model
        planned = [self._next_planned() for _ in range(s.n_batches)]
        self._grow_dropout()
        with self.helpers.one_core():
            self.helpers.load(p.step, self.strength, planned[self.helpers.own_share :])
            batches = [self.job.load(item) for item in planned[: self.helpers.own_share]]
            n_tokens = sum(self.job.n_tokens(batch) for batch in batches) + self.helpers.n_tokens()
            self.helpers.go(n_tokens)
            model.train()
            total = sum(backward(self.job, s, batch, n_tokens, p.step, i) for i, batch in enumerate(batches))
            total += self.helpers.gather()
        norm = float(nn.utils.clip_grad_norm_(model.parameters(), s.clip or math.inf))
        p.step += 1
        _check_finite(total, norm, p.step, s.peak)
        for group in self.moving.optimizer.param_groups:
            group["lr"] = self._learning_rate() * group["speed"]
        self.moving.optimizer.step()
        self.moving.optimizer.zero_grad(set_to_none=True)
        if self.moving.mean is not None:
            self.moving.mean.update(model, p.step)
        p.n_tokens += n_tokens
        p.seconds = time.monotonic() - self.began
        return total, n_tokens, norm

    def _grow_dropout(self) -> None:
        p, over = self.progress, self.settings.dropout_epochs
        strength = min(1.0, (p.epoch + 1) / over) if over else 1.0
        if strength != self.strength:
            set_strength(self.job.model, strength)
            self.strength = strength

    def _learning_rate(self) -> float:
        return learning_rate(self.settings, self.progress.step, self.progress.n_steps)

    def _next_planned(self) -> Any:
        p = self.progress
        if not self.batches:
            self.batches = self.job.plan_epoch(p.epoch)
        if p.position >= len(self.batches):
            p.epoch, p.position = p.epoch + 1, 0
            self.batches = self.job.plan_epoch(p.epoch)
        p.position += 1
        return self.batches[p.position - 1]

    def _validate(self) -> None:
        p, s = self.progress, self.settings
        seconds_a_step = (p.seconds - p.preparing - p.validating) / p.step
        began = time.monotonic()
        found = self.validated(self.moving.mean.tensors if self.moving.mean is not None else None)
        p.seconds = time.monotonic() - self.began
        best_before = max((score for _, score in p.saved), default=-float("inf"))
        p.since_better = 0 if found.score > best_before else p.since_better + 1
        self._keep_weights(found.score)
        self.report.validation(p, found, self._learning_rate())
        tired = s.patience > 0 and p.since_better >= s.patience
        p.finished = p.step >= p.n_steps or tired or (s.minutes is not None and p.seconds >= s.minutes * 60)
        seconds = time.monotonic() - began
        if not p.finished:
            plan_steps(p, s, seconds_a_step, seconds)
            p.finished = p.step >= p.n_steps
        p.validating += seconds

    def validated(self, tensors: Mapping[str, Tensor] | None) -> Validation:
        """The validation of the model as it is, or with other weights in its place for a moment."""
        self.job.model.eval()
        if tensors is None:
            return self.job.validate()
        own = {name: p.detach().clone() for name, p in trained(self.job.model).items()}
        load_parameters(self.job.model, tensors)
        try:
            return self.job.validate()
        finally:
            load_parameters(self.job.model, own)

    def _keep_weights(self, score: float) -> None:
        """Save the weights if the mean at the end may need them, or if they are the best."""
        p, s = self.progress, self.settings
        write_checkpoint(self.files.weights_file(p.step), self.moving.weights, {"step": p.step, "score": score})
        p.saved.append((p.step, score))
        newest = p.saved[-s.average :]
        best = p.best_first[: s.average if s.average_of == "best" else 1]
        p.saved = [item for item in p.saved if item in best or (s.average_of == "last" and item in newest)]


def _check_finite(loss: float, norm: float, step: int, lr: float) -> None:
    if not math.isfinite(loss) or not math.isfinite(norm):
        what = f"loss is {loss}" if not math.isfinite(loss) else f"gradient is {norm}"
        raise UserError(
            f"The {what} at step {step}: training has lost its way.",
            f"Begin again with a lower learning rate (--set train.lr={lr / 3:.1g}) and another --out.",
        )
