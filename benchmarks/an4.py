"""AN4 from MFCC vectors to a word error rate; the first 100 of the sorted ids are the development set.

    python -m benchmarks.an4                 # recipes/an4.toml, then an4-crossed.toml; two hours on one core

The second training starts from what the first has learned; the minutes are those of both. As in the published recipe
(ESPnet, from audio: dev WER 12.9), the development set also chooses among the saved weights.
"""

import argparse
import tempfile
from pathlib import Path

from benchmarks.environment import ROOT, describe, read_lines, settings_of, table, write_result
from benchmarks.speech import HEAD, Listed, evaluate, row, train, unpack, write_list

RECIPES = [ROOT / "recipes" / name for name in ("an4.toml", "an4-crossed.toml")]
N_DEV = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--recipes", type=Path, nargs="+", default=RECIPES, help="each starts where the last one ends")
    parser.add_argument("--beam", type=int, default=8)
    parser.add_argument(
        "--set",
        dest="changes",
        nargs="+",
        action="extend",
        default=[],
        help="settings to change in all, as train.lr=2e-3",
    )
    parser.add_argument("--out", type=Path, help="keep the models in this folder; one that is there stays as it is")
    parser.add_argument("--no-result", action="store_true", help="for trying it out: write no file")
    given = parser.parse_args()
    environment = describe()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        learned, tested = an4(folder)
        data, dev = write_list(folder / "train.tsv", learned), write_list(folder / "dev.tsv", tested)
        model, minutes = None, 0.0
        for recipe in given.recipes:
            out = (given.out or folder) / recipe.stem
            clock = out.with_name(f"{out.name}-minutes")  # of a model that is scored again
            if not clock.exists():
                clock.write_text(str(train(data, out, recipe, dev, given.changes, start=model)))
            model, minutes = out, minutes + float(clock.read_text())
        reports = {beam: evaluate(model, dev, beam) for beam in sorted({1, given.beam})}
    rows = [HEAD, *(row(f"dev, beam {beam}", report, minutes) for beam, report in reports.items())]
    best = reports[given.beam]
    errors = [["wanted", "heard", "times"], *([m["wanted"], m["heard"], m["n"]] for m in best["mistakes"])]
    print(table(rows), table(errors), sep="\n\n")
    if not given.no_result:
        kept = {
            "settings": settings_of(given),
            "report": best,
            "recipes": [recipe.read_text() for recipe in given.recipes],
        }
        write_result("an4", environment, kept, {"AN4": rows, "Errors": errors})


def an4(folder: Path) -> tuple[list[Listed], list[Listed]]:
    """Training and development recordings."""
    [index] = unpack("an4_mfcc_train.tar.gz", folder).rglob("train.tsv")
    rows = sorted((line.split("\t") for line in read_lines(index)), key=lambda cells: cells[1])
    listed = [(index.parent / cells[2], cells[4]) for cells in rows]
    return listed[N_DEV:], listed[:N_DEV]


if __name__ == "__main__":
    main()
