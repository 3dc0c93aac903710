"""Kill -9 at random moments, in saving too: each run resumes and ends with the very weights of the unbroken one.

    python -m benchmarks.kill --kills 20

A small translator is trained on the first Multi30k pairs by the command line, with frequent saving. One run is never
broken. Every other run is killed once: half of them at a random time between start and end, half at a random one of
the moments at which a checkpoint is half-written (its `.part` file is there). Then the same command goes on with
--resume. The files model.safetensors of all runs must be equal byte for byte.
"""

import argparse
import hashlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.corpus import text_files
from benchmarks.environment import describe, read_lines, settings_of, table, write_result

SMALL = [
    *("--size", "tiny", "--vocab", "1000"),
    *("--set", "model.encoder.n_layers=1", "--set", "model.decoder.n_layers=1"),
    *("--set", "train.batch_tokens=1024", "--set", "train.n_translated=10"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--saves", type=int, default=15, help="validations, each of which saves")
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--no-result", action="store_true", help="for trying it out: write no file")
    given = parser.parse_args()
    environment = describe()
    chance = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        command = _command(folder, given)
        began = time.monotonic()
        subprocess.run([*command, "--out", str(folder / "unbroken")], check=True)
        whole_time = time.monotonic() - began
        wanted = _digest(folder / "unbroken")
        runs: list[dict[str, Any]] = []
        while sum(not run["ended_first"] for run in runs) < given.kills and len(runs) < 2 * given.kills:
            i = len(runs)
            saving = i % 2 == 1
            moment = chance.randrange(given.saves * 2) if saving else chance.uniform(0.0, whole_time)
            run = _killed(command, folder / f"run-{i}", moment, saving)
            run |= _resumed(command, folder / f"run-{i}", wanted)
            runs.append(run)
            print(f"{i + 1:>3}  {run}", file=sys.stderr)
    good = sum(run["same_weights"] for run in runs)
    in_saving = sum(run["in_saving"] for run in runs)
    late = sum(run["ended_first"] for run in runs)
    rows = [["killed", "while a file was half-written", "too late to kill", "same weights as the unbroken run"]]
    rows.append([len(runs) - late, in_saving, late, f"{good} of {len(runs)}"])
    print(table(rows))
    if not given.no_result:
        data = {"settings": settings_of(given), "seconds_unbroken": whole_time, "weights": wanted, "runs": runs}
        write_result("kill", environment, data, {"Runs": rows})
    sys.exit(0 if good == len(runs) else 1)


def _command(folder: Path, given: argparse.Namespace) -> list[str]:
    files = []
    for part, n in (("train", given.pairs), ("val", 50)):
        for path in text_files(part):
            files.append(folder / path.name)
            files[-1].write_text("".join(f"{line}\n" for line in read_lines(path, n)), encoding="utf-8")
    train, valid = files[:2], files[2:]
    command = [sys.executable, "-m", "glassformer.cli.main", "train", "translate", *map(str, train), *SMALL, "--quiet"]
    command += ["--valid", str(valid[0]), "--valid", str(valid[1]), "--steps", str(given.steps)]
    return [*command, "--set", f"train.validations={given.saves}"]


def _killed(command: list[str], out: Path, moment: float, saving: bool) -> dict[str, Any]:
    """Start, and kill after `moment` seconds, or at the half-written checkpoint number `moment`."""
    process = subprocess.Popen([*command, "--out", str(out)], stderr=subprocess.DEVNULL)
    began = time.monotonic()
    seen: set[str] = set()
    while process.poll() is None:
        if saving:
            seen |= {path.name for path in _parts(out)}
            due = len(seen) > moment
        else:
            due = time.monotonic() - began >= moment
        if due:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0 if saving else 0.005)
    process.wait()
    return {
        "after_seconds": round(time.monotonic() - began, 2),
        "in_saving": bool(_parts(out)),  # what was half-written is still there
        "ended_first": process.returncode == 0,
        "newest_checkpoint": max((path.stem for path in (out / "checkpoints").glob("run-*")), default=None),
    }


def _parts(out: Path) -> list[Path]:
    return list((out / "checkpoints").glob(".*.part"))


def _resumed(command: list[str], out: Path, wanted: str) -> dict[str, Any]:
    done = subprocess.run([*command, "--out", str(out), "--resume"], capture_output=True, text=True)
    same = done.returncode == 0 and _digest(out) == wanted
    return {"same_weights": same} | ({} if done.returncode == 0 else {"said": done.stderr[-500:]})


def _digest(out: Path) -> str:
    return hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
