"""The files of a run: what is saved, what may go, and the way back from what is whole.

In the folder `checkpoints` a run-STEP file is all that a run needs to go on, and a weights-STEP file a validated model
that the final mean may take in.
"""

import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from glassformer.errors import UserError, require
from glassformer.train.average import RunningMean
from glassformer.train.checkpoint import (
    Checkpoint,
    load_optimizer,
    load_parameters,
    optimizer_tensors,
    read_checkpoint,
    read_state,
    trained,
    write_checkpoint,
)


@dataclass
class Progress:
    """Where a run stands; a checkpoint holds it as JSON."""

    step: int = 0
    epoch: int = 0
    position: int = 0  # batches of this epoch that are done
    n_steps: int = 0
    next_validation: int = 0
    seconds: float = 0.0
    preparing: float = 0.0  # seconds of these before the first step
    validating: float = 0.0  # seconds of these that went into validation
    n_tokens: int = 0
    since_better: int = 0
    saved: list[tuple[int, float]] = field(default_factory=list)  # (step, score) of the weights kept for the mean
    finished: bool = False

    @property
    def best_first(self) -> list[tuple[int, float]]:
        """What is saved, by score; of equals the later, which had the smaller steps."""
        return sorted(self.saved, key=lambda item: (-item[1], -item[0]))


@dataclass(frozen=True)
class Moving:
    """What changes from step to step."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    mean: RunningMean | None

    @property
    def weights(self) -> dict[str, Tensor]:
        """What is validated and kept: the running mean if there is one."""
        return self.mean.tensors if self.mean is not None else dict(trained(self.model))


class RunFiles:
    """The checkpoints of one run."""

    def __init__(self, folder: Path, identity: str) -> None:
        self.out, self.folder, self.identity = folder, folder / "checkpoints", identity

    def weights_file(self, step: int) -> Path:
        return self.folder / f"weights-{step:08d}.safetensors"

    def run_file(self, step: int) -> Path:
        return self.folder / f"run-{step:08d}.safetensors"

    def save(self, moving: Moving, progress: Progress) -> None:
        tensors: dict[str, Tensor] = {f"model.{name}": t for name, t in trained(moving.model).items()}
        tensors |= {f"optimizer.{name}": t for name, t in optimizer_tensors(moving.optimizer).items()}
        tensors |= {f"mean.{name}": t for name, t in (moving.mean.tensors if moving.mean else {}).items()}
        tensors["random"] = torch.get_rng_state()
        state = {"identity": self.identity, "progress": asdict(progress)}
        write_checkpoint(self.run_file(progress.step), tensors, state)
        self._prune(progress.step)

    def _prune(self, step: int) -> None:
        """Two runs stay, in case the last gets damaged, and the weights that they name; later ones are damaged."""
        runs = self._runs()
        kept = [path for n, path in runs if n <= step][:2]
        needed = {self.weights_file(n) for path in kept for n, _ in _saved_in(path)}
        unneeded = set(self.folder.glob("weights-*.safetensors")) - needed
        for path in [*(path for _, path in runs if path not in kept), *unneeded]:
            with contextlib.suppress(OSError):  # what cannot be removed is only in the way
                path.unlink(missing_ok=True)

    def _runs(self) -> list[tuple[int, Path]]:
        """Step and file, newest first."""
        names = ((re.fullmatch(r"run-(\d{8,})\.safetensors", path.name), path) for path in self.folder.glob("run-*"))
        return sorted(((int(match[1]), path) for match, path in names if match), reverse=True)

    def load(self, moving: Moving, say: Callable[[str], None]) -> Progress | None:
        """Go back to the newest run that is whole; what is damaged is said. None: there is no such run."""
        for part in self.out.rglob(".*.part"):  # of a run that was killed while it wrote
            part.unlink(missing_ok=True)
        lame: tuple[Checkpoint, Progress] | None = None
        for _, path in self._runs():
            try:
                checkpoint = self._read_run(path)
            except UserError as error:
                say(f"{error.message} Looking for the one before.")
                continue
            self._refuse_other(checkpoint, moving)
            progress = _progress(checkpoint.state["progress"])
            whole = [item for item in progress.saved if self._is_whole(item[0], say)]
            if whole == progress.saved:
                return self._put(checkpoint, moving, progress)
            progress.saved = whole
            lame = lame or (checkpoint, progress)
        if lame is None:
            return None
        say("The damaged weights are left out of the mean at the end.")
        return self._put(lame[0], moving, lame[1])

    def _read_run(self, path: Path) -> Checkpoint:
        checkpoint = read_checkpoint(path)
        require({"identity", "progress"} <= checkpoint.state.keys(), f"{path} is not the checkpoint of a run.")
        return checkpoint

    def _is_whole(self, step: int, say: Callable[[str], None]) -> bool:
        try:
            read_checkpoint(self.weights_file(step))
        except UserError as error:
            say(error.message)
            return False
        return True

    def _refuse_other(self, checkpoint: Checkpoint, moving: Moving) -> None:
        shapes = {name: p.shape for name, p in trained(moving.model).items()}
        same = checkpoint.state["identity"] == self.identity and shapes == _shapes(checkpoint.part("model."))
        if not same or (moving.mean is not None and shapes != _shapes(checkpoint.part("mean."))):
            raise begun_otherwise(self.out)

    def _put(self, checkpoint: Checkpoint, moving: Moving, progress: Progress) -> Progress:
        load_parameters(moving.model, checkpoint.part("model."))
        load_optimizer(moving.optimizer, checkpoint.part("optimizer."))
        if moving.mean is not None:
            moving.mean.load(checkpoint.part("mean."))
        torch.set_rng_state(checkpoint.tensors["random"])
        return progress


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {name: t.shape for name, t in tensors.items()}


def _progress(data: dict[str, object]) -> Progress:
    progress = Progress(**data)  # type: ignore[arg-type]
    progress.saved = [(step, score) for step, score in progress.saved]  # JSON has no tuples
    return progress


def _saved_in(path: Path) -> list[tuple[int, float]]:
    return list(read_state(path).get("progress", {}).get("saved", []))


def begun_otherwise(out: Path, what: str = "other data, model or settings") -> UserError:
    return UserError(
        f"The run in {out} was begun with {what}.",
        "Give the same again to go on, or another --out for a new run.",
    )
