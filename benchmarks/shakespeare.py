"""Tiny Shakespeare by characters: the validation loss of a recipe, by the command that everyone has.

    python -m benchmarks.shakespeare --small                 # nanoGPT's small shape and budget: 1.88 published
    python -m benchmarks.shakespeare --out runs/shakespeare  # our own recipe, up to 2 hours: 1.47 wanted

The last tenth of the text is held out, as nanoGPT does. The loss is the mean over all of it in windows as wide as the
context, one after the other: the mean over places that nanoGPT estimates from windows drawn at random.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.environment import ROOT, data_folder, describe, settings_of, stop, table, write_result

OWN, SMALL = (ROOT / "recipes" / f"{name}.toml" for name in ("shakespeare", "shakespeare-small"))
GLASSFORMER = [sys.executable, "-m", "glassformer.cli.main"]
PUBLISHED = {"shakespeare": 1.4697, "shakespeare-small": 1.88}  # nanoGPT: d_model 384 with 6 layers; 128 with 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="nanoGPT's small shape and budget")
    parser.add_argument(
        "--set", dest="changes", nargs="+", action="extend", default=[], help="settings to change, as train.lr=2e-3"
    )
    parser.add_argument("--out", type=Path, help="keep the model in this folder")
    parser.add_argument("--no-result", action="store_true", help="for trying it out: write no file")
    given = parser.parse_args()
    environment, recipe = describe(), SMALL if given.small else OWN
    text = data_folder("lm") / "tinyshakespeare.txt"
    with tempfile.TemporaryDirectory() as scratch:
        out = given.out or Path(scratch) / "model"
        command = [*GLASSFORMER, "train", "complete", str(text), "--recipe", str(recipe), "--out", str(out)]
        for change in given.changes:
            command += ["--set", change]
        began = time.monotonic()
        if subprocess.run(command).returncode:
            stop("The training failed; its own words are above.")
        minutes = (time.monotonic() - began) / 60
        about = json.loads((out / "settings.json").read_text())["about"]
    found, published = about["validation"], PUBLISHED[recipe.stem]
    rows = [
        ["validation loss", "nanoGPT", "bits per byte", "minutes", "steps", "weights"],
        [found["valid_loss"], published, found["bits_per_byte"], minutes, about["steps"], about["weights"]],
    ]
    print(table(rows))
    if not given.no_result:
        data = {"settings": settings_of(given), "recipe": recipe.read_text(), "about": about, "minutes": minutes}
        write_result(recipe.stem, environment, data, {"Tiny Shakespeare by characters": rows})


if __name__ == "__main__":
    main()
