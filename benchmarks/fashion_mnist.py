"""Fashion-MNIST: a ViT of at most 210,000 parameters, trained for given minutes from Debian's dataset-fashion-mnist.

    python -m benchmarks.fashion_mnist --minutes 10 115                # accuracy at 10 minutes, and at nearly two hours
    python -m benchmarks.fashion_mnist --minutes 1 --no-result         # try it out

Each figure is a training of its own, planned for its minutes: the learning rate has come down at its end. A part of the
training pictures chooses the weights; the 10,000 test pictures are looked at once, when all is done.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.environment import ROOT, describe, settings_of, stop, table, write_result

GLASSFORMER = [sys.executable, "-m", "glassformer.cli.main"]
DEBIAN = Path("/usr/share/datasets/fashion-mnist")
MOST_PARAMETERS = 210_000
PUBLISHED = 92.3  # of a ViT of that size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=DEBIAN, help="the folder of the four IDX files")
    parser.add_argument("--minutes", type=float, nargs="+", default=[10, 115])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument(
        "--set", dest="changes", nargs="+", action="extend", default=[], help="settings of the recipe to change"
    )
    parser.add_argument(
        "--baselines", action="store_true", help="put the nearest neighbour beside it, which takes a minute"
    )
    parser.add_argument("--out", type=Path, help="keep the models in this folder")
    parser.add_argument("--no-result", action="store_true", help="for trying it out: write no file")
    given = parser.parse_args()
    train, test = _find(given.data, "train"), _find(given.data, "t10k")
    environment = describe()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.out or Path(scratch)
        runs = [_run(given, minutes, seed, train, test, folder) for minutes in given.minutes for seed in given.seeds]
    rows: list[list[Any]] = [["system", "seed", "minutes", "accuracy", "± (95 %)", "epochs", "parameters"]]
    keys = ("seed", "minutes", "accuracy", "interval", "epochs", "parameters")
    rows += [["ours", *(run[key] for key in keys)] for run in runs]
    rows += [
        [s["name"], "", "", 100 * s["metrics"]["accuracy"], 100 * s["intervals"]["accuracy"], "", ""]
        for s in runs[0]["report"]["systems"][1:]
    ]
    rows += [["ViT, published", "", "", PUBLISHED, "", "", "210k"]]
    print(table(rows))
    if not given.no_result:
        data = {"settings": settings_of(given), "published": PUBLISHED, "runs": runs}
        write_result("fashion-mnist", environment, data, {"Fashion-MNIST, 10,000 test pictures, % right": rows})


def _run(given: argparse.Namespace, minutes: float, seed: int, train: Path, test: Path, folder: Path) -> dict[str, Any]:
    """Train once, look at the test pictures once."""
    model = folder / f"fashion-{minutes:g}-{seed}"
    if model.exists():
        stop(f"{model} exists already: give another --out.")
    command = [*GLASSFORMER, "train", "classify", str(train), "--out", str(model), "--minutes", str(minutes)]
    command += ["--recipe", str(ROOT / "recipes" / "fashion-mnist.toml")]
    for change in [f"train.seed={seed}", *given.changes]:
        command += ["--set", change]
    began = time.monotonic()
    if subprocess.run(command).returncode:
        stop("The training failed; its own words are above.")
    taken = (time.monotonic() - began) / 60
    report = _evaluate(model, test, train if given.baselines else None)
    n_parameters, own = _n_parameters(model), report["systems"][0]
    if n_parameters > MOST_PARAMETERS:
        stop(f"The model has {n_parameters:,} parameters; {MOST_PARAMETERS:,} are allowed.")
    about = json.loads((model / "settings.json").read_text())["about"]
    return {
        "seed": seed,
        "minutes": taken,
        "accuracy": 100 * own["metrics"]["accuracy"],
        "interval": 100 * own["intervals"]["accuracy"],
        "epochs": _epochs(model),
        "parameters": n_parameters,
        "about": about,
        "report": report,
        "recipe": (model / "recipe.toml").read_text(),
    }


def _evaluate(model: Path, test: Path, memory: Path | None) -> dict[str, Any]:
    command = [*GLASSFORMER, "evaluate", str(model), str(test), "--json", "--worst", "10"]
    command += ["--memory", str(memory)] if memory else []
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        stop(f"The evaluation failed: {done.stderr[-1000:]}")
    return dict(json.loads(done.stdout))


def _epochs(model: Path) -> int:
    lines = (model / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return int(json.loads(lines[-1])["epoch"])


def _n_parameters(model: Path) -> int:
    from glassformer.model import count_parameters
    from glassformer.tasks.model_dir import load_model

    return count_parameters(load_model(model).model)


def _find(folder: Path, part: str) -> Path:
    names = (f"{part}-images-idx3-ubyte.gz", f"{part}-images-idx3-ubyte")
    found = [folder / name for name in names if (folder / name).exists()]
    if not found:
        stop(f"There is no {names[1]} in {folder}: apt install dataset-fashion-mnist, or give --data.")
    return found[0]


if __name__ == "__main__":
    main()
