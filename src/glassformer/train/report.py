"""What a person sees of a run: a live line on stderr, and metrics.jsonl.

Nothing here changes a number of the training.
"""

import importlib
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from glassformer.data.files import write_text
from glassformer.errors import UserError

if TYPE_CHECKING:
    from glassformer.train import loop, run_files

WIDTH = 120  # of a line where no terminal says its own


class Report:
    """Writes to stderr and to the run's folder; `quiet` keeps stderr free."""

    def __init__(self, folder: Path, quiet: bool = False, tensorboard: bool = False, unit: str = "tokens") -> None:
        """`unit` is what the loss is summed over."""
        self.unit = unit
        self.console = Console(stderr=True, quiet=quiet, highlight=False)
        self.metrics = folder / "metrics.jsonl"
        self.board = _open_board(folder / "tensorboard") if tensorboard else None
        self.bar = Progress(
            TextColumn("step {task.completed}/{task.total}"),
            BarColumn(bar_width=24),
            TextColumn("{task.description}"),
            console=self.console,
            transient=True,
            auto_refresh=False,
            disable=not self.console.is_terminal,
        )
        self.task: TaskID | None = None
        self.recent: list[tuple[float, float, int]] = []  # (time, loss * tokens, tokens) since the last line
        self.last_line = time.monotonic()
        self.can_log = True
        self.gradient_norm = 0.0  # of the newest step

    def say(self, text: str) -> None:
        self.console.print(text, markup=False, soft_wrap=True)

    def begin(self, p: "run_files.Progress") -> None:
        """A run that was taken up makes its lost steps again: they are taken out of the metrics."""
        if self.metrics.exists():
            entries = read_metrics(self.metrics)
            text = "".join(_line(entry) for entry in entries if entry["step"] <= p.step)
            if text != self.metrics.read_text(encoding="utf-8", errors="replace"):
                write_text(self.metrics, text)
        self.last_line = time.monotonic()

    def step(self, p: "run_files.Progress", loss: float, n_tokens: int, lr: float, gradient_norm: float) -> None:
        now = time.monotonic()
        self.gradient_norm = gradient_norm
        self.recent.append((now, loss * n_tokens, n_tokens))
        if now - self.last_line < (0.5 if self.console.is_terminal else 30) and p.step < p.n_steps:
            return
        described = self._describe(p, lr)
        if self.task is None:
            self.bar.start()
            self.task = self.bar.add_task("", total=p.n_steps)
        self.bar.update(self.task, completed=p.step, total=p.n_steps, description=described, refresh=True)
        if not self.console.is_terminal:
            self.say(f"step {p.step}/{p.n_steps}  {described}")

    def _describe(self, p: "run_files.Progress", lr: float) -> str:
        now = self.recent[-1][0]
        n_tokens = sum(n for _, _, n in self.recent)
        loss = sum(total for _, total, _ in self.recent) / n_tokens
        speed = n_tokens / max(1e-9, now - self.last_line)
        left = (p.seconds - p.preparing) / p.step * (p.n_steps - p.step)
        known = {"loss": loss, "lr": lr, "gradient_norm": round(self.gradient_norm, 6)}
        self.log({**_place(p), **known, f"{self.unit}_per_second": round(speed, 1)})
        self.recent, self.last_line = [], now
        return f"epoch {p.epoch + 1}  loss {loss:.3f}  {speed:,.0f} {self.unit}/s  {_clock(left)} left"

    def validation(self, p: "run_files.Progress", found: "loop.Validation", lr: float) -> None:
        if self.recent:  # so that both losses are known at this step
            self._describe(p, lr)
        self.log({**_place(p), **found.metrics, "samples": found.samples})
        numbers = "  ".join(f"{name} {value:.2f}" for name, value in found.metrics.items())
        self.say(f"[{_clock(p.seconds)}] step {p.step}  {numbers}")
        width = self.console.width if self.console.is_terminal else WIDTH
        for sample in found.samples:
            self.say(_fit(f"    {sample}", width))
        self.last_line = time.monotonic()

    def log(self, entry: dict[str, Any]) -> None:
        """Add a line to the metrics; if that cannot be, it is said once, and training goes on."""
        if self.board is not None:
            for name, value in entry.items():
                if isinstance(value, float):
                    self.board.add_scalar(name, value, entry["step"])
        try:
            self.metrics.parent.mkdir(parents=True, exist_ok=True)
            with self.metrics.open("a", encoding="utf-8") as file:
                file.write(_line(entry))
        except OSError as error:
            if self.can_log:
                self.say(f"{self.metrics} could not be written: {error.strerror or error}. Training goes on.")
            self.can_log = False

    def close(self) -> None:
        self.bar.stop()
        if self.board is not None:
            self.board.close()


def _open_board(folder: Path) -> Any:
    try:
        writer = importlib.import_module("torch.utils.tensorboard").SummaryWriter
    except ImportError:
        raise UserError(
            "TensorBoard is not installed.", "Install it with: pip install 'glassformer[tensorboard]'"
        ) from None
    return writer(str(folder))


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The entries of a metrics.jsonl, without a line that was cut off by a kill."""
    entries = []
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    for line in text.split("\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and isinstance(entry.get("step"), int):
            entries.append(entry)
    return entries


def _line(entry: dict[str, Any]) -> str:
    return json.dumps(entry, ensure_ascii=False) + "\n"


def _place(p: "run_files.Progress") -> dict[str, Any]:
    return {"step": p.step, "epoch": p.epoch, "seconds": round(p.seconds, 2)}


def _fit(text: str, width: int) -> str:
    """One line of at most `width` characters, none of which moves the cursor."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return plain if len(plain) <= width else plain[: width - 1] + "…"


def _clock(seconds: float) -> str:
    whole = max(0, round(seconds))
    return (
        f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
        if whole >= 3600
        else f"{whole // 60}:{whole % 60:02d}"
    )
