"""A tiny language pair that we make up, and a translator small enough to train on it in a second or two."""

import itertools
from pathlib import Path
from typing import Any

from glassformer import config
from glassformer.tasks.translate import TranslateRecipe

NUMBERS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier", "five": "fünf", "six": "sechs"}
COLOURS = {"red": "rot", "blue": "blau", "green": "grün", "white": "weiß", "black": "schwarz"}
THINGS = {"cats": "Katzen", "dogs": "Hunde", "trees": "Bäume", "houses": "Häuser", "birds": "Vögel"}
PLACES = {"here": "hier", "there": "dort"}


def pairs() -> list[tuple[str, str]]:
    """300 pairs, all different, the target with another order of words."""
    words = itertools.product(NUMBERS, COLOURS, THINGS, PLACES)
    return [(f"{n} {c} {t} {p}", f"{PLACES[p]} {NUMBERS[n]} {THINGS[t]} {COLOURS[c]}") for n, c, t, p in words]


def write_tsv(path: Path, rows: list[tuple[str, str]] | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{source}\t{target}\n" for source, target in rows or pairs())
    path.write_text(text, encoding="utf-8")
    return path


def tiny_data(**changes: Any) -> dict[str, Any]:
    """A recipe as plain data; changes are laid over it."""
    stack = {
        "d_model": 16,
        "n_layers": 1,
        "dropout": 0.1,
        "attention": {"n_heads": 2},
        "feed_forward": {"d_ff": 32},
    }
    data = {
        "size": "tiny",
        "model": {"encoder": stack, "decoder": stack},
        "tokenizer": {"size": 320},
        "train": {"steps": 12, "validations": 3, "batch_tokens": 256, "n_translated": 5, "precision": "fp32"},
    }
    return config.merge(data, changes)


def tiny_recipe(**changes: Any) -> TranslateRecipe:
    recipe: TranslateRecipe = config.parse(TranslateRecipe, tiny_data(**changes))
    return recipe
