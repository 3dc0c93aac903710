"""Spoken digits, from the recordings to the share that is exactly right on recordings and speakers never heard.

    python -m benchmarks.speech_digits --test index      # FSDD: index 0-4 of each digit and speaker as test
    python -m benchmarks.speech_digits --test speaker    # FSDD: one of six speakers as test (--speaker NAME)
    python -m benchmarks.speech_digits --test audiomnist # AudioMNIST: speakers 41-48 after training on 01-40

Each trains once by recipes/digits.toml (55 minutes; --minutes for less). No test recording helps to choose the weights:
a hundred of the training recordings are held out for that.
"""

import argparse
import tempfile
from pathlib import Path

from benchmarks.environment import ROOT, describe, settings_of, stop, table, write_result
from benchmarks.speech import DIGITS, HEAD, Listed, evaluate, row, train, unpack, write_list

RECIPE = ROOT / "recipes" / "digits.toml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--test", choices=["index", "speaker", "audiomnist"], required=True)
    parser.add_argument("--speaker", default="theo", help="for --test speaker")
    parser.add_argument("--recipe", type=Path, default=RECIPE)
    parser.add_argument("--minutes", type=float, help="instead of the recipe's")
    parser.add_argument(
        "--set", dest="changes", nargs="+", action="extend", default=[], help="settings to change, as train.lr=2e-3"
    )
    parser.add_argument("--out", type=Path, help="keep the model in this folder")
    parser.add_argument("--no-result", action="store_true", help="for trying it out: write no file")
    given = parser.parse_args()
    environment = describe()
    changes = [*given.changes, *([f"train.minutes={given.minutes}"] if given.minutes else [])]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        learned, tested = audiomnist(folder) if given.test == "audiomnist" else fsdd(folder, given.test, given.speaker)
        data, test = write_list(folder / "train.tsv", learned), write_list(folder / "test.tsv", tested)
        model = given.out or folder / "model"
        minutes = train(data, model, given.recipe, changes=changes)
        report = evaluate(model, test)
    rows = [HEAD, row(given.speaker if given.test == "speaker" else given.test, report, minutes)]
    errors = [["wanted", "heard", "times"], *([m["wanted"], m["heard"], m["n"]] for m in report["mistakes"])]
    print(table(rows), table(errors), sep="\n\n")
    if not given.no_result:
        kept = {"settings": settings_of(given), "report": report, "recipe": given.recipe.read_text()}
        name = f"digits-{given.test}" + (f"-{given.speaker}" if given.test == "speaker" else "")
        write_result(name, environment, kept, {"Spoken digits": rows, "Errors": errors})


def fsdd(folder: Path, test: str, speaker: str) -> tuple[list[Listed], list[Listed]]:
    learned: list[Listed] = []
    tested: list[Listed] = []
    for path in sorted(unpack("fsdd.tar.gz", folder).rglob("*_*_*.wav")):
        digit, who, index = path.stem.split("_")
        is_test = who == speaker if test == "speaker" else int(index) < 5
        (tested if is_test else learned).append((path, DIGITS[int(digit)]))
    if not tested or not learned:
        stop(f"There is no speaker {speaker!r}.")
    return learned, tested


def audiomnist(folder: Path) -> tuple[list[Listed], list[Listed]]:
    learned: list[Listed] = []
    tested: list[Listed] = []
    for path in sorted(unpack("audiomnist_speakers01-48.tar.gz", folder).rglob("*_*_*.flac")):
        digit, who, _ = path.stem.split("_")
        (tested if int(who) > 40 else learned).append((path, DIGITS[int(digit)]))
    return learned, tested


if __name__ == "__main__":
    main()
