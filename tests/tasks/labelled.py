"""Small labelled sets that we make up, and classifiers small enough to learn them in seconds."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from glassformer import config
from glassformer.data.labelled import open_labelled
from glassformer.tasks.classify import ClassifyRecipe
from glassformer.tasks.classify_texts import read_texts
from glassformer.tasks.train_classify import train_classify

ANIMALS = ["dog", "bird", "fish", "horse", "cow", "wolf", "fox", "mouse"]
DEEDS = ["sees", "chases", "likes", "hears"]
TIMES = ["today", "now", "again", "here", "there"]


def chases() -> list[tuple[str, str]]:
    """Does the cat do it, or is it done to the cat? Both have the same words: a bag of them is blind."""
    drawn = list(itertools.product(ANIMALS, DEEDS, TIMES))
    active = [(f"the cat {deed} the {other} {time}", "does") for other, deed, time in drawn]
    return active + [(f"the {other} {deed} the cat {time}", "suffers") for other, deed, time in drawn]


def pairs() -> list[tuple[str, str, str]]:
    """Two sentences: does the second speak of the cat or dog of the first?"""
    drawn = itertools.product(("cat", "dog"), ("cat", "dog"), ANIMALS[1:], DEEDS, TIMES[:2])
    return [(f"a {a} {deed} a {c} {t}", f"it is a {b}", "same" if a == b else "other") for a, b, c, deed, t in drawn]


def write(path: Path, rows: list[tuple[Any, ...]]) -> Path:
    order = np.random.default_rng(0).permutation(len(rows))
    path.write_text("".join("\t".join(map(str, rows[i])) + "\n" for i in order), encoding="utf-8")
    return path


def tiny_recipe(**changes: Any) -> ClassifyRecipe:
    data = {
        "size": "tiny",
        "dropout": 0.0,
        "model": {"encoder": {"d_model": 32, "n_layers": 1, "attention": {"n_heads": 2}, "feed_forward": {"d_ff": 64}}},
        "tokenizer": {"kind": "word", "size": 400},
        "train": {"steps": 150, "validations": 5, "precision": "fp32", "lr": 5e-3},
    }
    if "start" in changes:
        data = {"train": data["train"]}
    recipe: ClassifyRecipe = config.parse(ClassifyRecipe, config.merge(data, changes))
    return recipe


def train(data: Path, out: Path, valid: Path | None = None, resume: bool = False, **changes: Any) -> bool:
    files = open_labelled([data])
    others = None if valid is None else open_labelled([valid], like=files)
    recipe = tiny_recipe(**changes)
    return train_classify(lambda r: read_texts(files, others, r), recipe, out, resume=resume, device="cpu", quiet=True)
