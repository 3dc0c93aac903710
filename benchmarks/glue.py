"""SST-2, CoLA and RTE of GLUE: a trained encoder fine-tuned, a new model beside it, and simple baselines.

    python -m benchmarks.glue --task RTE --from runs/minilm          # fine-tune, and train one from scratch beside it
    python -m benchmarks.glue --task SST-2                           # from scratch alone
    python -m benchmarks.glue --task CoLA --from runs/minilm --subset 500 --minutes 1 --no-result   # try it out

GLUE's test labels are not public, so that everyone reports its dev part. By default the weights are chosen on a part of
the training data that is held out, and dev is looked at once, at the end; with --choose-on-dev they are chosen on dev
itself, as most published figures are. Both ways are the commands that everyone has: `train classify` and `evaluate`.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.environment import ROOT, data_folder, describe, read_lines, settings_of, stop, table, write_result

GLASSFORMER = [sys.executable, "-m", "glassformer.cli.main"]
# The metric that is reported, and the figure that is published for MiniLM-L6 fine-tuned.
TASKS = {"SST-2": ("accuracy", 91.5), "CoLA": ("matthews", 47.5), "RTE": ("accuracy", 68.8)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--task", choices=list(TASKS), required=True)
    parser.add_argument("--from", dest="start", help="a trained model to fine-tune")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--minutes", type=float, help="for each training; without it the recipe's epochs")
    parser.add_argument(
        "--set", dest="changes", nargs="+", action="extend", default=[], help="settings of fine-tuning to change"
    )
    parser.add_argument("--no-scratch", action="store_true", help="leave out the model from scratch")
    parser.add_argument(
        "--choose-on-dev", action="store_true", help="choose the weights on dev, as published figures do"
    )
    parser.add_argument("--subset", type=int, help="train on so many examples only, for trying it out")
    parser.add_argument("--out", type=Path, help="keep the models in this folder")
    parser.add_argument("--no-result", action="store_true", help="for trying it out: write no file")
    given = parser.parse_args()
    if given.start is None and given.no_scratch:
        stop("There is nothing to train: give --from, or leave out --no-scratch.")
    environment = describe()
    metric, published = TASKS[given.task]
    with tempfile.TemporaryDirectory() as scratch:
        train, dev = _files(given, Path(scratch))
        kinds = [*(["fine-tuned"] if given.start else []), *([] if given.no_scratch else ["from scratch"])]
        runs = [_run(given, kind, seed, train, dev, Path(scratch)) for seed in given.seeds for kind in kinds]
    rows: list[list[Any]] = [["system", "seed", metric, "± (95 %)", "minutes", "steps", "parameters"]]
    keys = ("kind", "seed", "score", "interval", "minutes", "steps", "parameters")
    rows += [[run[key] for key in keys] for run in runs]
    rows += [
        [s["name"], "", 100 * s["metrics"][metric], 100 * s["intervals"][metric], "", "", ""] for s in _others(runs)
    ]
    rows += [["MiniLM-L6, published", "", published, "", "", "", ""]]
    print(table(rows))
    means = {kind: statistics.mean(run["score"] for run in runs if run["kind"] == kind) for kind in kinds}
    if not given.no_result:
        data = {"settings": settings_of(given), "metric": metric, "means": means, "runs": runs}
        write_result(f"glue-{given.task.lower()}", environment, data, {f"{given.task} dev, {metric} × 100": rows})


def _run(given: argparse.Namespace, kind: str, seed: int, train: Path, dev: Path, scratch: Path) -> dict[str, Any]:
    """Train once, evaluate once."""
    name = f"{given.task.lower()}-{kind.replace(' ', '-')}-{seed}"
    model = (given.out or scratch) / name
    if model.exists():
        stop(f"{model} exists already: give another --out.")
    recipe = given.task.lower() if kind == "fine-tuned" else "scratch"
    command = [*GLASSFORMER, "train", "classify", str(train), "--out", str(model)]
    command += ["--recipe", str(ROOT / "recipes" / f"glue-{recipe}.toml"), "--metric", TASKS[given.task][0]]
    command += ["--valid", str(dev)] if given.choose_on_dev else []
    command += ["--minutes", str(given.minutes)] if given.minutes else []
    changes = [f"train.seed={seed}"]
    if kind == "fine-tuned":
        command += ["--from", given.start]
        changes += given.changes
    for change in changes:
        command += ["--set", change]
    began = time.monotonic()
    if subprocess.run(command).returncode:
        stop("The training failed; its own words are above.")
    minutes = (time.monotonic() - began) / 60
    report = _evaluate(model, dev, train)
    own, metric = report["systems"][0], TASKS[given.task][0]
    about = json.loads((model / "settings.json").read_text())["about"]
    return {
        "kind": kind,
        "seed": seed,
        "score": 100 * own["metrics"][metric],
        "interval": 100 * own["intervals"][metric],
        "minutes": minutes,
        "steps": about["steps"],
        "parameters": _n_parameters(model),
        "about": about,
        "report": report,
        "recipe": (model / "recipe.toml").read_text(),
    }


def _evaluate(model: Path, dev: Path, train: Path) -> dict[str, Any]:
    command = [*GLASSFORMER, "evaluate", str(model), str(dev), "--memory", str(train), "--json", "--worst", "10"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        stop(f"The evaluation failed: {done.stderr[-1000:]}")
    return dict(json.loads(done.stdout))


def _others(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The baselines, which are the same in all runs."""
    return list(runs[0]["report"]["systems"][1:])


def _n_parameters(model: Path) -> int:
    from glassformer.model import count_parameters
    from glassformer.tasks.model_dir import load_model

    return count_parameters(load_model(model).model)


def _files(given: argparse.Namespace, scratch: Path) -> tuple[Path, Path]:
    folder = data_folder(f"glue/{given.task}")
    train, dev = folder / "train.tsv", folder / "dev.tsv"
    lines = read_lines(train, None if given.subset is None else given.subset + 1)
    read_lines(dev, 1)
    if given.subset is None:
        return train, dev
    part = scratch / "train.tsv"
    part.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return part, dev


if __name__ == "__main__":
    main()
