"""The training loop: one way through for every task. A `Job` says what a batch is and how good the model is.

The loop owns steps, schedule, accumulation, clipping, validation, saving and taking up again. A run that was stopped at
any moment and taken up goes on with the very numbers of the run that was never stopped.
"""

import math
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from glassformer.errors import UserError
from glassformer.train.average import RunningMean
from glassformer.train.checkpoint import (
    Checkpoint,
    load_optimizer,
    load_parameters,
    optimizer_tensors,
    read_checkpoint,
    write_checkpoint,
)
from glassformer.train.machine import autocast
from glassformer.train.optim import build_optimizer
from glassformer.train.report import Report
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


@dataclass
class Progress:
    """Where a run stands; a checkpoint holds it as JSON."""

    step: int = 0
    epoch: int = 0
    position: int = 0  # batches of this epoch that are done
    n_steps: int = 0
    next_validation: int = 0
    seconds: float = 0.0
    validating: float = 0.0  # seconds of these that went into validation
    n_tokens: int = 0
    since_better: int = 0
    saved: list[tuple[int, float]] = field(default_factory=list)  # (step, score) of the weights kept for the mean
    finished: bool = False


class Trainer:
    """One run in one folder."""

    def __init__(self, job: Job, settings: TrainSettings, folder: Path, identity: str, report: Report) -> None:
        """`identity` stands for data, model and settings: a run is taken up with the same ones only."""
        self.job, self.settings, self.folder, self.identity, self.report = job, settings, folder, identity, report
        self.optimizer = build_optimizer(job.model, settings)
        self.mean = RunningMean(job.model, settings.ema) if settings.ema else None
        self.progress = Progress(n_steps=settings.steps)
        self.batches: list[Any] = []
        self.stop_requested = False
        self.began = time.monotonic()
        torch.manual_seed(settings.seed)

    def run(self) -> Progress:
        """Train to the end, or to the next full step after `stop_requested`; either way the run is saved."""
        self.began = time.monotonic() - self.progress.seconds
        if self.progress.step == 0:
            self._plan(self._measure() if self.settings.minutes else 0.0)
        p = self.progress
        while not p.finished:
            loss, n_tokens = self._step()
            self.report.step(p, loss, n_tokens, learning_rate(self.settings, p.step, p.n_steps))
            if p.step >= p.n_steps or p.step >= p.next_validation:
                self._validate()
                self._save()
            if self.stop_requested:
                if not p.finished:
                    self._save()
                break
        return p

    def _step(self) -> tuple[float, int]:
        p, s, model = self.progress, self.settings, self.job.model
        batches = [self.job.load(self._next_planned()) for _ in range(s.accumulate)]
        n_tokens = sum(self.job.n_tokens(batch) for batch in batches)
        model.train()
        total = 0.0
        for batch in batches:
            with autocast(s.precision, _device(model)):
                loss = self.job.loss(batch) / n_tokens
            loss.backward()  # type: ignore[no-untyped-call]
            total += float(loss.detach())
        if not math.isfinite(total):
            raise UserError(
                f"The loss is {total} at step {p.step + 1}: training has lost its way.",
                f"Lower the learning rate (--set train.lr={s.lr / 3:.1g}), then go on with --resume.",
            )
        if s.clip:
            nn.utils.clip_grad_norm_(model.parameters(), s.clip)
        p.step += 1
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(s, p.step, p.n_steps)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        if self.mean is not None:
            self.mean.update(model, p.step)
        p.n_tokens += n_tokens
        p.seconds = time.monotonic() - self.began
        return total, n_tokens

    def _next_planned(self) -> Any:
        p = self.progress
        if not self.batches:
            self.batches = self.job.plan_epoch(p.epoch)
        if p.position >= len(self.batches):
            p.epoch, p.position = p.epoch + 1, 0
            self.batches = self.job.plan_epoch(p.epoch)
        p.position += 1
        return self.batches[p.position - 1]

    def _measure(self) -> float:
        """Seconds a step takes here, from a few that change nothing."""
        planned = self.job.plan_epoch(0)
        chosen = [planned[i * len(planned) // 8] for i in range(8)]
        times = []
        with torch.random.fork_rng(devices=[]):
            for item in [chosen[0], *chosen]:
                began = time.monotonic()
                batch = self.job.load(item)
                self.job.model.train()
                (self.job.loss(batch) / self.job.n_tokens(batch)).backward()  # type: ignore[no-untyped-call]
                times.append(time.monotonic() - began)
        self.optimizer.zero_grad(set_to_none=True)
        return sum(times[1:]) / 8 * self.settings.accumulate * 1.05

    def _plan(self, seconds_a_step: float, seconds_a_validation: float = 0.0) -> None:
        """Fit the number of steps to the minutes that are left, and say when to validate next."""
        p, s = self.progress, self.settings
        if s.minutes is not None and seconds_a_step > 0:
            left = s.minutes * 60 - p.seconds
            n_validations = s.validations * max(0.0, 1 - p.step / max(1, p.n_steps)) + 3  # 3: the ending compares means
            p.n_steps = p.step + max(1, int((left - n_validations * seconds_a_validation) / seconds_a_step))
        p.next_validation = min(p.n_steps, p.step + max(1, p.n_steps // s.validations))

    def _validate(self) -> None:
        p, s = self.progress, self.settings
        training_seconds = p.seconds
        began = time.monotonic()
        found = self.validated(self.mean.tensors if self.mean is not None else None)
        p.seconds = time.monotonic() - self.began
        best_before = max((score for _, score in p.saved), default=-float("inf"))
        p.since_better = 0 if found.score > best_before else p.since_better + 1
        self._keep_weights(found.score)
        self.report.validation(p, found)
        tired = s.patience > 0 and p.since_better >= s.patience
        p.finished = p.step >= p.n_steps or tired or (s.minutes is not None and p.seconds >= s.minutes * 60)
        if not p.finished:
            self._plan((training_seconds - p.validating) / p.step, time.monotonic() - began)
        p.validating += time.monotonic() - began

    def validated(self, tensors: dict[str, Tensor] | None) -> Validation:
        """The validation of the model as it is, or with other weights in its place for a moment."""
        self.job.model.eval()
        if tensors is None:
            return self.job.validate()
        own = {name: p.detach().clone() for name, p in self.job.model.named_parameters()}
        load_parameters(self.job.model, tensors)
        try:
            return self.job.validate()
        finally:
            load_parameters(self.job.model, own)

    def _keep_weights(self, score: float) -> None:
        p, s = self.progress, self.settings
        weights = self.mean.tensors if self.mean is not None else dict(self.job.model.named_parameters())
        write_checkpoint(self.weights_file(p.step), weights, {"step": p.step, "score": score})
        p.saved.append((p.step, score))
        newest = p.saved[-s.average :]
        best = sorted(p.saved, key=lambda item: -item[1])[: s.average if s.average_of == "best" else 1]
        p.saved = [item for item in p.saved if item in best or (s.average_of == "last" and item in newest)]

    def weights_file(self, step: int) -> Path:
        return self.folder / "checkpoints" / f"weights-{step:08d}.safetensors"

    def _run_file(self, step: int) -> Path:
        return self.folder / "checkpoints" / f"run-{step:08d}.safetensors"

    def _save(self) -> None:
        p = self.progress
        tensors: dict[str, Tensor] = {f"model.{name}": t for name, t in self.job.model.named_parameters()}
        tensors |= {f"optimizer.{name}": t for name, t in optimizer_tensors(self.optimizer).items()}
        tensors |= {f"mean.{name}": t for name, t in (self.mean.tensors if self.mean else {}).items()}
        tensors["random"] = torch.get_rng_state()
        write_checkpoint(self._run_file(p.step), tensors, {"identity": self.identity, "progress": asdict(p)})
        self._prune()

    def _prune(self) -> None:
        """Two run files are kept, in case the last is damaged; of the weights, those that the mean may need."""
        runs = sorted((self.folder / "checkpoints").glob("run-*.safetensors"))
        kept = {self.weights_file(step) for step, _ in self.progress.saved}
        if len(runs) > 1:
            kept |= {self.weights_file(step) for step, _ in _saved_in(runs[-2])}
        weights = set((self.folder / "checkpoints").glob("weights-*.safetensors"))
        for path in [*runs[:-2], *(weights - kept)]:
            path.unlink(missing_ok=True)

    def resume(self) -> bool:
        """Take up from the newest whole checkpoint; False if there is none."""
        for path in sorted((self.folder / "checkpoints").glob("run-*.safetensors"), reverse=True):
            try:
                checkpoint = read_checkpoint(path)
            except UserError as error:
                self.report.say(f"{error}")
                continue
            if checkpoint.state["identity"] != self.identity:
                raise UserError(
                    f"The run in {self.folder} was begun with other data, model or settings.",
                    "Give the same ones to go on, or another --out for a new run.",
                )
            self._load(checkpoint)
            return True
        return False

    def _load(self, checkpoint: Checkpoint) -> None:
        load_parameters(self.job.model, checkpoint.part("model."))
        load_optimizer(self.optimizer, checkpoint.part("optimizer."))
        if self.mean is not None:
            self.mean.tensors = checkpoint.part("mean.")
        torch.set_rng_state(checkpoint.tensors["random"])
        data = checkpoint.state["progress"]
        self.progress = Progress(**{**data, "saved": [(step, score) for step, score in data["saved"]]})


def _saved_in(run_file: Path) -> list[tuple[int, float]]:
    try:
        return [(step, score) for step, score in read_checkpoint(run_file).state["progress"]["saved"]]
    except UserError:
        return []


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device
