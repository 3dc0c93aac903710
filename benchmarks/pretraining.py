"""What reading without labels is worth: blanks filled beside guesses by counting, then few labels with and without it.

    python -m benchmarks.pretraining                          # about half an hour on one core
    python -m benchmarks.pretraining --minutes 2 --labels 200 --seeds 1 --no-result    # try it out

An encoder reads the phrases of SST-2 (GLUE) without their labels and learns to fill blanks in them; the sentences of
dev, which it never saw, measure the fills. Then it is shown a few labels; a new model of the same shape and words
learns the same ones from nothing, and bag of words stands beside both. Each model looks at dev once.
"""

import argparse
import json
import random
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.environment import data_folder, describe, read_lines, settings_of, stop, table, write_result
from benchmarks.glue import GLASSFORMER

# A reader has to leave the plateau of the commonest words behind in little time: many blanks in each step.
READER = ("--vocab", 4000, "--set", "masked=0.3", "--set", "train.lr=2e-3")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=20, help="of reading without labels")
    parser.add_argument("--labels", type=int, nargs="+", default=[200, 1000], help="how many labelled sentences")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--out", type=Path, help="keep the reader in this folder")
    parser.add_argument("--no-result", action="store_true", help="for trying it out: write no file")
    given = parser.parse_args()
    environment = describe()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        reader = given.out or folder / "reader"
        fills = learn_to_fill(reader, folder, given.minutes)
        runs = [
            run
            for n in given.labels
            for seed in given.seeds
            for run in learn_labels(reader, n, seed, folder / "few.tsv")
        ]
    tables = {"Blanks in sentences never seen": fill_rows(fills), "SST-2 dev with few labels": label_rows(runs)}
    for title, rows in tables.items():
        print(title, table(rows), sep="\n\n")
    if not given.no_result:
        data = {"settings": settings_of(given), "fills": fills, "runs": runs}
        write_result("pretraining", environment, data, tables)


def learn_to_fill(reader: Path, folder: Path, minutes: float) -> dict[str, Any]:
    """Train on the sentences; what a blank is filled with in others, beside counting."""
    held, learned = (folder / f"{part}.txt" for part in ("dev", "train"))
    for path in (held, learned):
        # A part of train alone would not do to measure: its phrases lie in each other.
        texts = sorted({text for text, _ in labelled(path.stem)})
        path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    run("train", "fill", learned, "--out", reader, "--size", "tiny", "--minutes", minutes, *READER)
    return evaluate(reader, held, "--memory", learned)


def learn_labels(reader: Path, n: int, seed: int, few: Path) -> list[dict[str, Any]]:
    """The same few labels, taught to the reader and to a new model of its shape."""
    examples = labelled("train")
    random.Random(seed).shuffle(examples)
    lines = [f"{text}\t{label}" for text, label in examples[:n]]
    few.write_text("\n".join(["sentence\tlabel", *lines]) + "\n", encoding="utf-8")
    runs = []
    for kind in ("read before", "from nothing"):
        begin = (
            ["--from", reader]
            if kind == "read before"
            else ["--size", "tiny", "--tokenizer", reader / "tokenizer.json"]
        )
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "model"
            run("train", "classify", few, "--out", model, *begin, "--set", f"train.seed={seed}")
            report = evaluate(model, data_folder("glue/SST-2") / "dev.tsv", "--memory", few)
        scores = {system["name"]: 100 * system["metrics"]["accuracy"] for system in report["systems"]}
        own = scores.pop(report["systems"][0]["name"])
        runs.append({"kind": kind, "labels": n, "seed": seed, "accuracy": own, "baselines": scores})
    return runs


def labelled(part: str) -> list[tuple[str, str]]:
    lines = read_lines(data_folder("glue/SST-2") / f"{part}.tsv")[1:]
    return [(text.strip(), label) for text, _, label in (line.partition("\t") for line in lines)]


def run(*words: Any) -> None:
    if subprocess.run([*GLASSFORMER, *map(str, words)]).returncode:
        stop("The training failed; its own words are above.")


def evaluate(*words: Any) -> dict[str, Any]:
    done = subprocess.run([*GLASSFORMER, "evaluate", *map(str, words), "--json"], capture_output=True, text=True)
    if done.returncode:
        stop(f"The evaluation failed: {done.stderr[-1000:]}")
    return dict(json.loads(done.stdout))


def fill_rows(report: dict[str, Any]) -> list[list[Any]]:
    rows = [[g["name"], 100 * g["accuracy"], 100 * g["in_top"], g["perplexity"]] for g in report["guessers"]]
    return [["who guesses", "right, %", "among the five best, %", "perplexity"], *rows]


def label_rows(runs: list[dict[str, Any]]) -> list[list[Any]]:
    """The mean over the seeds, and how far they lie apart."""
    rows: list[list[Any]] = [["labels", "system", "accuracy, %", "lowest", "highest", "seeds"]]
    for n in sorted({run["labels"] for run in runs}):
        found: dict[str, list[float]] = {}
        for run in (run for run in runs if run["labels"] == n):
            found.setdefault(run["kind"], []).append(run["accuracy"])
            if run["kind"] == "read before":
                for name, score in run["baselines"].items():
                    found.setdefault(name, []).append(score)
        rows += [[n, name, statistics.mean(s), min(s), max(s), len(s)] for name, s in found.items()]
    return rows


if __name__ == "__main__":
    main()
