"""What a person sees of a run: a live line on stderr, metrics.jsonl, and a picture of the loss.

Nothing here changes a number of the training.
"""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

if TYPE_CHECKING:
    from glassformer.train import loop


class Report:
    """Writes to stderr and to the run's folder; `quiet` keeps stderr free."""

    def __init__(self, folder: Path, quiet: bool = False) -> None:
        self.console = Console(stderr=True, quiet=quiet, highlight=False)
        self.folder = folder
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

    def say(self, text: str) -> None:
        self.console.print(text, markup=False, soft_wrap=True)

    def step(self, p: "loop.Progress", loss: float, n_tokens: int, lr: float) -> None:
        now = time.monotonic()
        self.recent.append((now, loss * n_tokens, n_tokens))
        if now - self.last_line < (0.5 if self.console.is_terminal else 30) and p.step < p.n_steps:
            return
        described = self._describe(p, lr, now)
        if self.task is None:
            self.bar.start()
            self.task = self.bar.add_task("", total=p.n_steps)
        self.bar.update(self.task, completed=p.step, total=p.n_steps, description=described, refresh=True)
        if not self.console.is_terminal:
            self.say(f"step {p.step}/{p.n_steps}  {described}")
        self.last_line = now

    def _describe(self, p: "loop.Progress", lr: float, now: float) -> str:
        begin = self.last_line
        n_tokens = sum(n for _, _, n in self.recent)
        loss = sum(total for _, total, _ in self.recent) / max(1, n_tokens)
        speed = n_tokens / max(1e-9, now - begin)
        left = p.seconds / p.step * (p.n_steps - p.step)
        self.log({"step": p.step, "epoch": p.epoch, "seconds": round(p.seconds, 2), "loss": loss, "lr": lr,
                  "tokens_per_second": round(speed, 1)})  # fmt: skip
        self.recent = []
        return f"epoch {p.epoch + 1}  loss {loss:.3f}  {speed:,.0f} tokens/s  {_clock(left)} left"

    def validation(self, p: "loop.Progress", found: "loop.Validation") -> None:
        self.log(
            {
                "step": p.step,
                "epoch": p.epoch,
                "seconds": round(p.seconds, 2),
                **found.metrics,
                "samples": found.samples,
            }
        )
        numbers = "  ".join(f"{name} {value:.4g}" for name, value in found.metrics.items())
        self.say(f"[{_clock(p.seconds)}] step {p.step}  {numbers}")
        for sample in found.samples:
            self.say(f"    {sample}")
        self.last_line = time.monotonic()

    def log(self, entry: dict[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")

    def close(self) -> None:
        self.bar.stop()


def _clock(seconds: float) -> str:
    whole = max(0, round(seconds))
    return (
        f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
        if whole >= 3600
        else f"{whole // 60}:{whole % 60:02d}"
    )
