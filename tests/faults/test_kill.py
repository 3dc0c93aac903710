"""Training from the shell, killed without warning at random moments: it ends with the bytes of the unbroken run."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from glassformer import config
from glassformer.tasks.model_dir import load_model
from tests.tasks.corpus import tiny_data, write_tsv

PATIENCE = 120  # seconds to wait for a process on a busy machine
COMMAND = "from glassformer.cli.main import run; run()"
# Imports once, then forks a process for each command, since imports take longer than these trainings.
NURSERY = """
import json, os, sys
import matplotlib.figure, torch._dynamo, glassformer.tasks.train_translate
from glassformer.cli.main import run
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        os.dup2(os.open("said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        run(json.loads(line))
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Shell:
    """Starts the same training again and again; every step validates and saves, so that kills fall into saving."""

    def __init__(self, folder: Path, n_steps: int) -> None:
        self.folder = folder
        data = write_tsv(folder / "pairs.tsv")
        train = {"steps": n_steps, "validations": n_steps, "n_translated": 0, "average": 3, "ema": 0.9}
        (folder / "recipe.toml").write_text(config.write_toml(tiny_data(train=train)))
        self.command = ["train", "translate", data.name, "--recipe", "recipe.toml", "--device", "cpu"]
        self.nursery = self.python(NURSERY, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def python(self, code: str, *arguments: str, **pipes: int) -> subprocess.Popen[str]:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            [sys.executable, "-c", code, *arguments], cwd=self.folder, env=environment, text=True, **pipes
        )

    def start(self, out: str) -> int:
        """Begin or go on; the number of the process."""
        assert self.nursery.stdin is not None
        self.nursery.stdin.write(json.dumps([*self.command, "--out", out, "--resume"]) + "\n")
        self.nursery.stdin.flush()
        return self.answer()

    def answer(self) -> int:
        assert self.nursery.stdout is not None
        return int(self.nursery.stdout.readline())

    def finish(self, out: str) -> bytes:
        self.start(out)
        assert self.answer() == 0, (self.folder / "said.txt").read_text()
        return (self.folder / out / "model.safetensors").read_bytes()

    def kill(self, process: int) -> bool:
        """False if it was done before."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        code = self.answer()
        assert code in (0, -signal.SIGKILL), (self.folder / "said.txt").read_text()
        return code != 0

    def newest(self, out: str) -> str:
        return max((p.name for p in (self.folder / out / "checkpoints").glob("run-*.safetensors")), default="")

    def wait_for_progress(self, out: str) -> None:
        """Until a checkpoint is there that was not there before."""
        before, end = self.newest(out), time.monotonic() + PATIENCE
        while self.newest(out) == before and time.monotonic() < end:
            time.sleep(0.002)

    def is_honest(self, out: str) -> bool:
        """What looks finished is finished."""
        folder = self.folder / out
        return not (folder / "settings.json").exists() or load_model(folder).task == "translate"

    def close(self) -> None:
        self.nursery.communicate(timeout=PATIENCE)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    shell = Shell(tmp_path_factory.mktemp("shell"), 40)
    yield shell
    shell.close()


@pytest.fixture(scope="module")
def unbroken(shell: Shell) -> bytes:
    return shell.finish("unbroken")


def test_three_kills(shell: Shell, unbroken: bytes) -> None:
    chance, folder = random.Random(1), shell.folder / "killed"
    for _ in range(3):
        process = shell.start("killed")
        shell.wait_for_progress("killed")
        time.sleep(chance.uniform(0, 0.1))
        assert shell.kill(process)
        assert not (folder / "settings.json").exists()
    assert shell.finish("killed") == unbroken
    assert list(folder.rglob("*.part")) == []
    steps = [json.loads(line)["step"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert steps == sorted(steps)


def test_interrupt_saves_and_says_how_to_go_on(shell: Shell, unbroken: bytes) -> None:
    arguments = [*shell.command, "--out", "stopped"]
    process = shell.python(COMMAND, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    shell.wait_for_progress("stopped")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, said
    assert "Stopped and saved at step" in said
    assert "The same command with --resume goes on." in said
    assert "Traceback" not in said
    assert not (shell.folder / "stopped" / "settings.json").exists()
    assert shell.finish("stopped") == unbroken


@pytest.mark.slow
def test_twenty_kills(tmp_path: Path) -> None:
    shell, chance = Shell(tmp_path, 150), random.Random(2)
    expected = shell.finish("unbroken")
    began = time.monotonic()
    assert shell.finish("again") == expected
    longest = time.monotonic() - began
    n_kills = n_runs = 0
    while n_kills < 20:
        out = f"killed-{n_runs}"
        process = shell.start(out)
        time.sleep(chance.uniform(0, longest / 2))  # while it prepares, trains, saves or chooses
        if shell.kill(process):
            n_kills += 1
            assert shell.is_honest(out)
        else:
            assert (tmp_path / out / "model.safetensors").read_bytes() == expected
            n_runs += 1
    assert shell.finish(f"killed-{n_runs}") == expected
    shell.close()
