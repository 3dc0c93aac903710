"""What each rung of the ladder buys on tiny Shakespeare: bits per byte, from counting to the Transformer.

    python -m benchmarks.ladder                    # about 20 minutes on a free core
    python -m benchmarks.ladder --minutes 0.2      # a first look

A word is a character here. The first 90 % of the text are for fitting, the rest is measured, as nanoGPT does it. All
rungs with weights get the same minutes of processor time, so that a busy neighbour costs none of them anything. Skips
give votes, which have no bits: of them, and of all others too, the table says how often the best character was right.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks.environment import data_folder, describe, settings_of, stop, table, write_result
from glassformer.ladder import (
    LSTM,
    BackOff,
    EmbeddedAttention,
    FullTransformer,
    Markov,
    MaskedSkips,
    OneLayerTransformer,
    Recurrent,
    Rung,
    Skips,
    Uniform,
    Unigram,
)
from glassformer.ladder.fitting import Progress
from glassformer.ladder.learned import LearnedRung

FILE = "tinyshakespeare.txt"
CONTEXT = 64  # characters that a learned rung reads at once
PIECE = 64  # skips look at all earlier characters: in a whole book these would be all that there are
HEADS = ["rung", "bits per byte", "best is right, %", "parameters or counts", "steps", "fit, CPU s", "measure, CPU s"]

# Widths that learn something in minutes; batch and rates are usual ones, not searched for.
LEARNED: dict[str, Callable[..., LearnedRung]] = {
    "attention with embeddings, d 128": lambda **o: EmbeddedAttention(128, batch=12, lr=2e-3, **o),
    "recurrent cell, d 256": lambda **o: Recurrent(256, batch=12, lr=2e-3, **o),
    "LSTM, d 256": lambda **o: LSTM(256, batch=12, lr=4e-3, **o),
    "one layer, one head, d 128": lambda **o: OneLayerTransformer(128, batch=12, lr=4e-3, **o),
    "Transformer, 4 layers, 4 heads, d 128": lambda **o: FullTransformer("complete-tiny", batch=12, lr=2e-3, **o),
}
COUNTED: dict[str, Callable[[], Rung]] = {
    "uniform": Uniform,
    "unigram": Unigram,
    "first order": lambda: Markov(1),
    "second order": lambda: Markov(2),
    "skips": Skips,
    "skips with a mask": MaskedSkips,
    **{f"back-off, order {n}": lambda n=n: BackOff(n) for n in range(1, 7)},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=3.0, help="processor time for each rung with weights")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", help="rungs whose name begins so")
    parser.add_argument("--no-result", action="store_true", help="for trying it out: write no file")
    given = parser.parse_args()
    names = [n for n in (*COUNTED, *LEARNED) if not given.only or n.startswith(tuple(given.only))]
    if not names:
        stop(f"No rung begins like that; there are: {', '.join((*COUNTED, *LEARNED))}.")
    torch.set_num_threads(1)  # one core for all: counting uses no more
    environment = describe()
    text = (data_folder("lm") / FILE).read_text(encoding="ascii")  # a character is a byte
    cut = int(0.9 * len(text))
    runs = []
    for name in names:
        runs.append(measure(name, text[:cut], text[cut:], 60 * given.minutes, given.seed))
        print(table([HEADS, row(runs[-1])]).splitlines()[-1], file=sys.stderr, flush=True)
    rows = [HEADS, *map(row, runs)]
    print(table(rows))
    if not given.no_result:
        about = [
            ["text", "fitted on", "measured on", "context", "CPU minutes for each learned rung", "threads", "load"]
        ]
        about += [[FILE, cut, len(text) - cut, CONTEXT, given.minutes, 1, environment["load_at_start"]]]
        data = {"settings": settings_of(given), "context": CONTEXT, "piece_of_skips": PIECE, "runs": runs}
        write_result("ladder", environment, data, {"Rungs": rows, "How": about})


def measure(name: str, train: str, test: str, seconds: float, seed: int) -> dict[str, Any]:
    """Fit one rung and try it on the rest of the text."""
    told: list[Progress] = []
    if name in LEARNED:
        options = {"steps": None, "seconds": seconds, "clock": time.process_time, "seed": seed, "context": CONTEXT}
        rung: Rung = LEARNED[name](**options, report=lambda progress: told.append(progress))
    else:
        rung = COUNTED[name]()
    started = time.process_time()
    rung.fit(pieces(train) if isinstance(rung, Skips) else [train])
    fitted = time.process_time()
    bits = None
    impossible = 0
    if rung.kind == "probabilities":
        logs = rung.log_probabilities(test) / math.log(2)
        impossible = int(np.isinf(logs).sum())
        bits = None if impossible else float(-logs.mean())  # JSON has no infinity
    return {
        "rung": name,
        "bits_per_byte": bits,
        "held_impossible": impossible,
        "accuracy": accuracy(rung, test),
        "size": size(rung),
        "steps": told[-1].step if told else None,
        "last_losses": [round(p.loss, 4) for p in told[-5:]],
        "fit_seconds": fitted - started,
        "measure_seconds": time.process_time() - fitted,
    }


def pieces(text: str) -> list[str]:
    return [text[i : i + PIECE] for i in range(0, len(text), PIECE)]


def accuracy(rung: Rung, test: str) -> float:
    """The share of characters that were the rung's first choice."""
    if isinstance(rung, LearnedRung):
        best = np.concatenate([piece.argmax(axis=1) for piece in rung.predict_along(test)])
        return float(np.mean([rung.vocabulary[i] == character for i, character in zip(best, test, strict=True)]))
    reach = rung.order if isinstance(rung, Markov | BackOff) else PIECE if isinstance(rung, Skips) else 0
    known: dict[str, str] = {}  # the same few characters before, the same choice
    right = 0
    for i, character in enumerate(test):
        before = test[max(0, i - reach) : i]
        if before not in known:
            known[before] = rung.predict(before).top(1)[0][0]
        right += known[before] == character
    return right / len(test)


def size(rung: Rung) -> int:
    """How many numbers the rung consists of; of tables only what was seen."""
    match rung:
        case LearnedRung():
            return rung.n_parameters
        case Markov():
            return len(rung._tree.levels[rung.order].counts)
        case BackOff():
            return sum(len(level.counts) for level in rung._tree.levels)
        case Skips():
            return int(rung.kept[rung.pairs.rows_of_entries].sum()) + len(rung.alone.counts)
        case Unigram():
            return len(rung.vocabulary)
        case _:
            return 0


def row(run: dict[str, Any]) -> list[Any]:
    never = f"∞ ({run['held_impossible']} never seen)" if run["held_impossible"] else "votes"
    shown = never if run["bits_per_byte"] is None else run["bits_per_byte"]
    steps = "" if run["steps"] is None else f"{run['steps']:,}"
    accuracy = 100 * run["accuracy"]
    return [run["rung"], shown, accuracy, f"{run['size']:,}", steps, run["fit_seconds"], run["measure_seconds"]]


if __name__ == "__main__":
    main()
