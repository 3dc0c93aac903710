"""The demo: translate with the built-in model, then teach a new one to read dates as people write them.

Makes its own data with Babel's tables (dates in eight languages, several styles), holds out whole days so that the
model cannot have seen an answer, trains for about two minutes, and compares with the nearest neighbour.
"""

import argparse
import datetime
import difflib
import random
import sys
import tempfile
import time
from pathlib import Path

from babel.dates import format_date

LOCALES = ["en_US", "en_GB", "de_DE", "fr_FR", "es_ES", "it_IT", "nl_NL", "sv_SE"]
SENTENCES = [
    "Where is the station?",
    "I would like a cup of coffee, please.",
    "The children are playing in the garden.",
]
STYLES = ["full", "long", "medium", "EEE, d MMM y", "d. MMMM y", "MMMM d, y"]


def date_pairs(days: list[datetime.date], n: int, random: random.Random) -> list[tuple[str, str]]:
    """Dates as people write them, and as ISO 8601 does."""
    pairs = []
    for _ in range(n):
        day = random.choice(days)
        written = format_date(day, random.choice(STYLES), locale=random.choice(LOCALES))
        pairs.append((written.replace("\u202f", " "), day.isoformat()))
    return pairs


def make_data(seed: int = 0) -> dict[str, list[tuple[str, str]]]:
    """Pairs to learn from, and pairs of other days for validation and test."""
    chance = random.Random(seed)
    first = datetime.date(1950, 1, 1)
    days = [first + datetime.timedelta(days=i) for i in range(100 * 365)]
    chance.shuffle(days)
    parts = {"train": (days[2000:], 20_000), "valid": (days[1000:2000], 300), "test": (days[:1000], 500)}
    return {name: date_pairs(part, n, chance) for name, (part, n) in parts.items()}


def nearest(text: str, known: dict[str, str]) -> str:
    """What a translation memory would answer: the date of the most similar text."""
    found = difflib.get_close_matches(text, known, n=1, cutoff=0.0)
    return known[found[0]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--out", type=Path, help="keep the model in this folder")
    arguments = parser.parse_args()
    translate_some()
    with tempfile.TemporaryDirectory() as temporary:
        run(arguments.minutes, arguments.out or Path(temporary) / "dates", Path(temporary))


def translate_some() -> None:
    """The built-in model at work."""
    from glassformer import load

    print("The built-in model en-de, English to German:")
    for source, target in zip(SENTENCES, load("en-de").translate(SENTENCES), strict=True):
        print(f"  {source:<42} → {target}")
    print("\nNow a new model: dates as people write them, in eight languages, to be read as ISO dates.\n")


def run(minutes: float, out: Path, scratch: Path) -> None:
    """Train, measure on held-out days, and show."""
    from glassformer import config, load
    from glassformer.data.pairs import open_pairs
    from glassformer.tasks.built_in import built_in_models
    from glassformer.tasks.train_translate import TrainingFiles, train_translate
    from glassformer.tasks.translate import TranslateRecipe

    data = make_data()
    train, test = data["train"], data["test"]
    for name, pairs in data.items():
        (scratch / f"{name}.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    recipe = config.parse(
        TranslateRecipe,
        {
            "tokenizer": {"kind": "char"},
            "train": {"minutes": minutes, "validations": 6, "n_translated": 100, "batch_tokens": 1024},
            "model": {side: {"n_layers": 2} for side in ("encoder", "decoder")},
            "dropout": 0.05,
        },
    )
    files = TrainingFiles(open_pairs([scratch / "train.tsv"]), open_pairs([scratch / "valid.tsv"]))
    began = time.monotonic()
    train_translate(files, recipe, out)
    took = time.monotonic() - began
    model = load(out)
    answers = model.translate([written for written, _ in test])
    right = sum(answer == iso for answer, (_, iso) in zip(answers, test, strict=True))
    known = dict(random.Random(1).sample(train, 2000))
    lookup = sum(nearest(written, known) == iso for written, iso in test[:100])
    print(f"\nTrained for {took:.0f} s on {len(train):,} dates; tested on {len(test)} dates of days it never saw:")
    print(f"  exactly right: {right / len(test):.1%}   (nearest neighbour: {lookup / 100:.1%})\n")
    for (written, iso), answer in list(zip(test, answers, strict=True))[:8]:
        print(f"  {written:<34} → {answer}  {'right' if answer == iso else 'wrong, it is ' + iso}")
    print("\nNext: train on your own pairs.")
    print("  .venv/bin/glassformer train translate pairs.tsv --out runs/mine --minutes 15")
    print("Or open a page to type into, here on this machine, with what is built in:")
    print(f"  .venv/bin/glassformer serve {' '.join(built_in_models())}")


if __name__ == "__main__":
    sys.exit(main())
