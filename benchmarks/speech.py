"""What the benchmarks of speech share: unpacked data, lists of recordings, our own commands."""

import json
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.environment import data_folder, stop

GLASSFORMER = [sys.executable, "-m", "glassformer.cli.main"]
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

Listed = tuple[Path, str]  # a recording and what is said in it


def unpack(name: str, folder: Path) -> Path:
    """A tar archive of the speech data, unpacked into a folder."""
    archive = data_folder("speech") / name
    if not archive.exists():
        stop(f"{name} is missing from speech in GLASSFORMER_DATA.")
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    return folder


def write_list(path: Path, recordings: Iterable[Listed]) -> Path:
    path.write_text("".join(f"{recording}\t{text}\n" for recording, text in recordings), encoding="utf-8")
    return path


def train(
    data: Path,
    out: Path,
    recipe: Path,
    valid: Path | None = None,
    changes: Iterable[str] = (),
    start: Path | None = None,
) -> float:
    """Train by the command that everyone has; the minutes of the wall clock."""
    if out.exists():
        stop(f"{out} exists already: give another --out.")
    command = [*GLASSFORMER, "train", "transcribe", str(data), "--out", str(out), "--recipe", str(recipe)]
    command += ["--valid", str(valid)] if valid is not None else []
    command += ["--from", str(start)] if start is not None else []
    for change in changes:
        command += ["--set", change]
    began = time.monotonic()
    if subprocess.run(command).returncode:
        stop("The training failed; its own words are above.")
    return (time.monotonic() - began) / 60


def evaluate(model: Path, data: Path, beam: int = 4) -> dict[str, Any]:
    """The report of `glassformer evaluate`."""
    command = [*GLASSFORMER, "evaluate", str(model), str(data), "--beam", str(beam), "--json", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        stop(f"Evaluating failed: {done.stderr[-1000:]}")
    # Paths of this machine are nobody's business: they end where the data begins.
    return dict(json.loads(done.stdout.replace(f"{data.parent}/", "")))


def row(name: str, report: dict[str, Any], minutes: float | None = None) -> list[Any]:
    own = report["systems"][0]
    wer = own["wer"]
    interval = f"{wer['low']:.1f} to {wer['high']:.1f}"
    shown = "" if minutes is None else f"{minutes:.1f}"
    return [name, report["n_recordings"], f"{own['exact']:.1%}", wer["rate"], interval, own["cer"]["rate"], shown]


HEAD = ["test", "recordings", "exactly right", "WER", "95 %", "CER", "minutes of training"]
