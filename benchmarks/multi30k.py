"""Multi30k English to German, from the files to a BLEU on test_2016, by the commands that everyone has.

    python -m benchmarks.multi30k --tiny --seeds 1 2     # the published shape, tokenised files; up to 2 hours a seed
    python -m benchmarks.multi30k --tiny --recipe recipes/multi30k-from-en-de.toml     # another shape on the same files
    python -m benchmarks.multi30k --tiny --recipe recipes/multi30k-wide-together.toml --seeds 1 2 --together
    python -m benchmarks.multi30k --tiny --first recipes/multi30k-tatoeba.toml \
        --recipe recipes/multi30k-after-tatoeba.toml --seeds 1 2 --together     # more pairs than published results have
    python -m benchmarks.multi30k --minutes 15           # raw files, nothing but --minutes given

With --tiny the published 41.02 is what to compare with (lowercased tokenised BLEU, beam 5); else it is cased sacreBLEU.
Time is the wall clock of the whole training command: check, vocabulary, training, choosing the weights. Each model
translates by the engine that is chosen by default, and once more in fp32. With --together the seeds are trained at the
same time, each on its share of the cores, and are scored alone and as one translator. With --first each begins with
another training, on the same pairs twice and on those of Tatoeba, brought into the same form. With --penalties the
length penalty is the one that makes the most of the validation set; the test set is translated with that one only.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from benchmarks.corpus import text_files, write_with_tatoeba
from benchmarks.environment import ROOT, describe, read_lines, settings_of, stop, table, write_result

RECIPE = ROOT / "recipes" / "multi30k-tiny.toml"
GLASSFORMER = [sys.executable, "-m", "glassformer.cli.main"]
BEAM = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument(
        "--tiny", action="store_true", help="a recipe, by default the published shape's, on the tokenised files"
    )
    mode.add_argument("--minutes", type=float, help="the raw files in so many minutes")
    parser.add_argument("--recipe", type=Path, default=RECIPE, help="for --tiny")
    parser.add_argument("--first", type=Path, help="a recipe to begin with, on the pairs of Tatoeba too")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--together", action="store_true", help="train the seeds side by side; they answer as one too")
    parser.add_argument(
        "--set", dest="changes", nargs="+", action="extend", default=[], help="settings to change, as train.lr=2e-3"
    )
    parser.add_argument("--subset", type=int, help="train on so many pairs only, for trying it out")
    parser.add_argument("--penalties", type=float, nargs="+", default=[1.0], help="length penalties to choose from")
    parser.add_argument(
        "--out", type=Path, help="keep the models in this folder; one that is there is not trained again"
    )
    parser.add_argument("--no-result", action="store_true", help="for trying it out: write no file")
    given = parser.parse_args()
    environment = describe()
    with tempfile.TemporaryDirectory() as scratch:
        data = {part: _files(part, given, Path(scratch)) for part in ("train", "val", "test_2016_flickr")}
        if given.first:
            data["first"] = [str(file) for file in write_with_tatoeba(Path(scratch))]
        models = [Trained(seed, (given.out or Path(scratch)) / f"seed-{seed}") for seed in given.seeds]
        new = [model for model in models if not model.is_there()]
        with ThreadPoolExecutor(len(models) if given.together else 1) as pool:
            list(pool.map(lambda model: _train(given, model, data), new))
        runs = [_score(given, [model], data) for model in models]
        mean = statistics.mean(run["bleu"] for run in runs)
        if given.together and len(models) > 1:
            runs.append(_score(given, models, data))
    rows = [["seed", "BLEU", "BLEU fp32", "chrF", "minutes", "steps", "length penalty", "engine"]]
    columns = ("seed", "bleu", "bleu_fp32", "chrf", "minutes", "steps", "length_penalty", "engine")
    rows += [[r[key] for key in columns] for r in runs]
    signature = [["mean BLEU of the seeds", "signature"], [mean, runs[0]["signature"]]]
    print(table(rows), table(signature), sep="\n\n")
    if not given.no_result:
        name = given.recipe.stem if given.tiny else f"multi30k-{given.minutes:g}-minutes"
        result = {"settings": settings_of(given), "mean_bleu": mean, "runs": runs}
        if given.tiny:
            result["recipe"] = given.recipe.read_text()
        if given.first:
            result["first"] = given.first.read_text()
        write_result(name, environment, result, {"test_2016": rows, "Score": signature})


@dataclass(frozen=True)
class Trained:
    seed: int
    folder: Path

    @property
    def clock(self) -> Path:
        """Minutes of the whole command, for a model that is scored again."""
        return self.folder.with_name(f"{self.folder.name}-minutes")

    def is_there(self) -> bool:
        """Trained before; one that was stopped is no use."""
        if self.folder.exists() and not self.clock.exists():
            stop(f"{self.folder} was not trained to its end by this: give another --out.")
        return self.folder.exists()

    @property
    def about(self) -> dict[str, Any]:
        return json.loads((self.folder / "settings.json").read_text())["about"]


def _score(given: argparse.Namespace, models: list[Trained], data: dict[str, list[str]]) -> dict[str, Any]:
    """One model's answers, or those of several as one translator."""
    bleu = BLEU(tokenize="none", force=True) if given.tiny else BLEU()

    def score(part: str, penalty: float, *options: str) -> tuple[float, list[str], str]:
        source, target = data[part]
        answers, engine = _translate(models, source, ["--length-penalty", str(penalty), *options])
        return bleu.corpus_score(answers, [read_lines(Path(target))]).score, answers, engine

    on_valid = {}
    if len(given.penalties) > 1:
        on_valid = {each: score("val", each)[0] for each in given.penalties}
        print(f"length penalties on the validation set: {on_valid}", file=sys.stderr)
    penalty = max(given.penalties, key=lambda each: on_valid.get(each, 0))
    found, answers, engine = score("test_2016_flickr", penalty)
    return {
        "seed": " + ".join(str(model.seed) for model in models),
        "bleu": found,
        "bleu_fp32": score("test_2016_flickr", penalty, "--precision", "fp32")[0],
        "chrf": CHRF().corpus_score(answers, [read_lines(Path(data["test_2016_flickr"][1]))]).score,
        "signature": str(bleu.get_signature()),
        "minutes": max(float(model.clock.read_text()) for model in models),  # several were trained at the same time
        "steps": sum(model.about["steps"] for model in models),
        "length_penalty": penalty,
        "validation_bleu": on_valid,
        "about": [model.about for model in models],
        "engine": engine,
        "answers": answers,
    }


def _train(given: argparse.Namespace, model: Trained, data: dict[str, list[str]]) -> None:
    """By the command that everyone has; its minutes are kept beside the model."""

    def command(part: str, out: Path, *options: str) -> list[str]:
        valid = [word for file in data["val"] for word in ("--valid", file)]
        changes = [word for change in (f"train.seed={model.seed}", *given.changes) for word in ("--set", change)]
        return [*GLASSFORMER, "train", "translate", *data[part], "--out", str(out), *valid, *options, *changes]

    how = ["--recipe", str(given.recipe)] if given.tiny else ["--minutes", str(given.minutes)]
    commands = [command("train", model.folder, *how)]
    if given.first:
        begun = model.folder.with_name(f"{model.folder.name}-first")
        commands = [command("first", begun, "--recipe", str(given.first)), [*commands[0], "--from", str(begun)]]
    model.folder.parent.mkdir(parents=True, exist_ok=True)
    n_threads = (os.cpu_count() or 1) // len(given.seeds)
    share = {"OMP_NUM_THREADS": str(max(n_threads, 1))} if given.together else {}
    began = time.monotonic()
    for each in commands:
        if subprocess.run(each, env=os.environ | share).returncode:
            stop("The training failed; its own words are above.")
    model.clock.write_text(str((time.monotonic() - began) / 60))


def _files(part: str, given: argparse.Namespace, scratch: Path) -> list[str]:
    files = text_files(part, tokenised=given.tiny)
    for file in files:
        read_lines(file, 1)  # says which is missing
    if part != "train" or given.subset is None:
        return [str(file) for file in files]
    parts = []
    for file in files:
        parts.append(scratch / file.name)
        parts[-1].write_text("".join(f"{line}\n" for line in read_lines(file, given.subset)), encoding="utf-8")
    return [str(file) for file in parts]


def _translate(models: list[Trained], source: str, options: list[str]) -> tuple[list[str], str]:
    """What `glassformer translate` says to the file, and the engine that it names."""
    first, *others = (str(model.folder) for model in models)
    for other in others:
        options = ["--with", other, *options]
    with Path(source).open("rb") as lines:
        command = [*GLASSFORMER, "translate", first, "--beam", str(BEAM), *options]
        done = subprocess.run(command, stdin=lines, capture_output=True)
    if done.returncode:
        stop(f"Translating failed: {done.stderr.decode()[-1000:]}")
    return done.stdout.decode().split("\n")[:-1], done.stderr.decode().partition("engine: ")[2].partition("\n")[0]


if __name__ == "__main__":
    main()
