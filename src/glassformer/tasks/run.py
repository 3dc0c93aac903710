"""A training run in a folder, whatever the task: whether it may begin, how it goes on, how it is stopped and ends."""

import contextlib
import hashlib
import json
import shlex
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import torch
from torch import nn

from glassformer import __version__, config
from glassformer.data.counted import counted
from glassformer.data.files import is_unfinished, write_text
from glassformer.errors import require
from glassformer.model import count_parameters
from glassformer.model.settings import EncoderOnlySettings, ModelSettings, Settings
from glassformer.tasks.built_in import find_model
from glassformer.tasks.model_dir import weights_checksum
from glassformer.train.checkpoint import trained
from glassformer.train.finish import choose_weights, draw_losses
from glassformer.train.helpers import LEAST_TOKENS, for_each_core
from glassformer.train.loop import Job, Trainer, Validation
from glassformer.train.report import Report
from glassformer.train.run_files import begun_otherwise
from glassformer.train.settings import TrainSettings

LR_TIMES_WIDTH, MOST_LR, GENTLE = 0.4, 5e-3, 0.2
FEW_STEPS = 200  # a model that made fewer has hardly begun
_OUR_NAMES = "data tokenizer.json source_tokenizer.json recipe.toml metrics.jsonl tensorboard early .lock"
OURS = _OUR_NAMES.split()


@dataclass(frozen=True, kw_only=True)
class Recipe(Settings):
    """All that a run depends on besides its data, saved as recipe.toml; each task adds its own settings."""

    train: TrainSettings = field(default_factory=TrainSettings)
    # A trained model to start from: its shape and vocabulary are taken.
    start: str | None = None

    @property
    def gentle(self) -> bool:
        """Whether trained weights are changed, which small steps suit better."""
        return self.start is not None


R = TypeVar("R", bound=Recipe)


@dataclass(frozen=True)
class Finished:
    """A run that came to its end."""

    validation: Validation
    about: dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One run in one folder."""

    out: Path
    resume: bool
    report: Report
    began: float

    def __post_init__(self) -> None:
        # No error: a run may have been killed before it left anything, and whoever starts it again need not know.
        if self.resume and all(path.name == ".lock" for path in self.out.glob("*")):
            self.report.say(f"There is no run in {self.out} to go on with: one begins.")

    @property
    def data(self) -> Path:
        return self.out / "data"

    def is_prepared(self, identity: str, recipe: Recipe) -> bool:
        """Whether an earlier start of the same run left its data; another run's is refused.

        Where it is not, the mark goes: data of two runs may lie there mixed from now on, if this one is killed too.
        """
        mark = self.data / "identity"
        same = mark.exists() and mark.read_text() == identity
        if mark.exists() and not same and (self.out / "checkpoints").exists():
            raise begun_otherwise(self.out, _what_changed(self.out / "recipe.toml", recipe))
        if not same:
            mark.unlink(missing_ok=True)
        return same

    def for_cores(self, recipe: R, device: torch.device, least: int = LEAST_TOKENS) -> R:
        """The recipe with a step's batch cut for the cores of this machine, or of the one where the run was begun."""
        train, file = recipe.train, self.out / "recipe.toml"
        if train.accumulate is None and self.resume and file.exists():
            begun: TrainSettings = config.parse(type(recipe), config.read_toml(file), str(file)).train
            if begun.batch_tokens == train.batch_tokens // begun.n_batches:
                cut = replace(train, accumulate=begun.n_batches, batch_tokens=begun.batch_tokens)
                return replace(recipe, train=cut)
        return replace(recipe, train=for_each_core(train, device, least))

    def prepared(self, identity: str) -> None:
        write_text(self.data / "identity", identity)

    def say_model(self, kind: str, model: nn.Module, besides: str) -> None:
        """What is trained: its kind and size."""
        n, n_trained = count_parameters(model), sum(p.numel() for p in trained(model).values())
        only = f" ({n_trained:,} of them trained)" if n_trained < n else ""
        self.report.say(f"Model: {kind}, {n:,} parameters{only}{besides}.")

    def train(self, job: Job, recipe: Recipe, identity: str, automatic_steps: int) -> Finished | None:
        """Train to the end and put the best weights into the model; None if the run was stopped and can be taken up."""
        recipe = replace(recipe, train=_settled(recipe, job.model, automatic_steps))
        trainer = Trainer(job, recipe.train, self.out, identity, self.report)
        if self.resume:
            going = trainer.resume()
            self.report.say(
                f"Going on from step {trainer.progress.step}." if going else "There is no checkpoint yet: beginning."
            )
        if trainer.progress.step == 0:
            trainer.progress.seconds = time.monotonic() - self.began  # the minutes are those of the whole command
        write_text(self.out / "recipe.toml", config.write_toml(config.to_data(recipe)))
        with _stopping(trainer):
            trainer.run()
        self.report.close()
        step = trainer.progress.step
        if not trainer.progress.finished:
            self.report.say(f"Stopped and saved at step {step}. The same command with --resume goes on.")
            return None
        validation, how = choose_weights(trainer)
        draw_losses(self.out / "metrics.jsonl", self.out / "losses.png")
        about = {
            "glassformer": __version__,
            "weights": how,
            "steps": step,
            "minutes": round(trainer.progress.seconds / 60, 2),
            "validation": {name: round(value, 4) for name, value in validation.metrics.items()},
        }
        return Finished(validation, about)

    def end(self, finished: Finished, use: str) -> None:
        """The last words, with the command that uses the model."""
        numbers = ", ".join(f"{name} {value:.2f}" for name, value in finished.validation.metrics.items())
        how, steps = finished.about["weights"], finished.about["steps"]
        self.report.say(f"Done: {self.out} holds the model ({how}; {numbers}).\nTry: {_command(use, self.out)}")
        if steps < FEW_STEPS:
            self.report.say(
                f"It made only {counted(steps, 'step')} and can know little: give it more --minutes or --steps."
            )

    def write_card(self, what: str, use: str, finished: Finished) -> None:
        """The model's README.md, with the path from here; of one that leads elsewhere others need not know more."""
        path, here = self.out.resolve(), Path.cwd().resolve()
        shown = path.relative_to(here) if path.is_relative_to(here) else Path(path.name)
        about = {**finished.about, **finished.about["validation"]}
        rows = "\n".join(f"| {key} | {value} |" for key, value in about.items() if key != "validation")
        samples = "\n".join(f"- {sample}" for sample in finished.validation.samples)
        text = (
            f"# {path.name}\n\n{what} `recipe.toml` says how, `metrics.jsonl` and `losses.png` how it went.\n\n"
            f"| | |\n|---|---|\n{rows}\n\nSamples of the validation set:\n\n{samples}\n\n"
            f"Use it: `{_command(use, shown)}`\n"
        )
        write_text(self.out / "README.md", text)


def _command(use: str, path: Path) -> str:
    """`use` is the verb and its words, with MODEL in place of the folder."""
    return f"glassformer {use.replace('MODEL', shlex.quote(str(path)), 1)}"


def _settled(recipe: Recipe, model: nn.Module, steps: int) -> TrainSettings:
    """What was left open, now that the data and the model are known."""
    train = recipe.train
    if train.lr is None:
        settings: ModelSettings = model.settings  # type: ignore[assignment]
        stack = settings.encoder if isinstance(settings, EncoderOnlySettings) else settings.decoder
        lr = min(MOST_LR, LR_TIMES_WIDTH / stack.d_model)
        train = replace(train, lr=lr * GENTLE if recipe.gentle else lr)
    return replace(train, steps=steps) if train.steps is None and train.minutes is None else train


def check_folder(out: Path, resume: bool) -> None:
    """Refuse a folder that holds another run, or anything else."""
    finished, begun = (out / "settings.json").exists(), (out / "checkpoints").exists()
    require(
        begun or not finished,
        f"{out} is a finished model; there is no run to go on with.",
        "Start from it with --from, and give another --out.",
    )
    require(
        resume or not begun,
        f"{out} holds a run already.",
        "Add --resume to go on with it, or give another --out.",
    )
    require(not out.exists() or out.is_dir(), f"{out} is a file, not a folder.", "Give another --out.")
    names = [] if begun or not out.exists() else [path.name for path in out.iterdir()]
    foreign = [name for name in names if name not in OURS and not is_unfinished(name)]
    require(
        not foreign, f"{out} holds other files, such as {foreign[0] if foreign else ''}.", "Give a new folder as --out."
    )


def check_start(start: str, shaped: bool, twice_adapted: bool = False) -> None:
    """Refuse what does not go with the trained model that a run starts from."""
    require(
        not shaped,
        f"Training starts from {start}, whose size, shape and vocabulary are given.",
        "Leave out the size, model and tokenizer settings.",
    )
    require(
        not twice_adapted,
        f"{start} is an adapter itself.",
        "Put it into its model first: glassformer export … --to glassformer.",
    )


def identity_of(recipe: Recipe, contents: Iterable[str | None]) -> str:
    """What a run depends on: its recipe, its data's contents and the weights that it starts from."""
    data = {**config.to_data(recipe), "files": list(contents)}
    if recipe.start is not None:
        data["weights"] = weights_checksum(find_model(recipe.start))
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _what_changed(file: Path, recipe: Recipe) -> str:
    """In words, what the run was begun with; where all settings are the same, it is what they name."""
    before, now = (config.flatten(data) for data in (config.read_toml(file), config.to_data(recipe)))
    # The file names what was settled in the end.
    if recipe.train.steps is None and recipe.train.minutes is None:
        before["train.steps"] = None
    if recipe.train.lr is None:
        before["train.lr"] = None
    # What the file does not name and has its usual value came with a later version.
    usual = config.flatten(config.to_data(type(recipe)()))
    new = [key for key in sorted(now.keys() - before.keys()) if key in usual and now[key] == usual[key]]
    changed = [
        f"{key} = {before.get(key)} (now {now.get(key)})"
        for key in sorted(before.keys() | now.keys())
        if before.get(key) != now.get(key) and key not in new
    ]
    if new and not changed:
        return f"another version of Glassformer, which had no {', '.join(new)}"
    return ", ".join(changed) if changed else "other data" + (" or other weights to start from" if recipe.start else "")


@contextlib.contextmanager
def _stopping(trainer: Trainer) -> Iterator[None]:
    """The first Ctrl-C or polite kill ends the run after its step, saved; a second one ends it at once."""

    def stop(number: int, _: FrameType | None) -> None:
        trainer.stop_requested = True
        signal.signal(number, signal.default_int_handler)

    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError):  # only the main thread may set them
            before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
