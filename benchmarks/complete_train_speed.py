"""Training speed of language models: tokens a second on tiny Shakespeare, all systems in one interleaved run.

    .venv-peers/bin/python -m benchmarks.complete_train_speed --rounds 5 --seconds 20           # nanoGPT's small shape
    .venv-peers/bin/python -m benchmarks.complete_train_speed --d-model 384 --layers 6 --heads 6 --context 256 --rows 16

Every system trains GPT-2's block in the same shape with the same batch, dropout, clipping and AdamW in fp32. A round
runs each system once, in a fresh process, in an order that rotates; whole steps count, after a warm-up.
"""

import argparse
import importlib
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.environment import (
    data_folder,
    describe,
    in_own_process,
    need_peers,
    settings_of,
    table,
    write_result,
)
from benchmarks.training.meter import Job

SYSTEMS = {
    "ours": "Glassformer",
    "huggingface": "Hugging Face GPT-2, Trainer",
    "huggingface_loop": "Hugging Face GPT-2, plain loop",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--warmup", type=float, default=5, help="seconds of each run that do not count")
    parser.add_argument("--d-model", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--rows", type=int, default=12, help="windows a batch")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-result", action="store_true", help="for trying it out: write no file")
    parser.add_argument("--work", help=argparse.SUPPRESS)  # JSON of one system's job: this is its process
    given = parser.parse_args()
    if given.work:
        order = json.loads(given.work)
        job = Job(Path(order["folder"]), 0, order["rows"], order["dropout"], order["seconds"], order["warmup"])
        importlib.import_module(f"benchmarks.training.complete_{order['system']}").train(job)
    else:
        _measure(given)


def _measure(given: argparse.Namespace) -> None:
    need_peers("transformers", "accelerate")
    environment = describe()
    rates: dict[str, list[float]] = {name: [] for name in SYSTEMS}
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        text = (data_folder("lm") / "tinyshakespeare.txt").read_text(encoding="utf-8")
        (Path(scratch) / "text.txt").write_text(text, encoding="utf-8")
        shape = {"d_model": given.d_model, "n_layers": given.layers, "n_heads": given.heads, "context": given.context}
        (Path(scratch) / "shape.json").write_text(json.dumps(shape))
        order = {"folder": scratch, "rows": given.rows, "dropout": given.dropout}
        order |= {"seconds": given.seconds, "warmup": given.warmup}
        names = list(SYSTEMS)
        for i in range(given.rounds):
            for name in names[i % len(names) :] + names[: i % len(names)]:
                found = in_own_process("benchmarks.complete_train_speed", {**order, "system": name}, given.threads)
                rates[name].append(found["tokens"] / found["seconds"])
                runs.append({"round": i + 1, "system": name, **found})
                print(f"round {i + 1}  {SYSTEMS[name]:<32}{rates[name][-1]:>10,.0f} tokens/s", file=sys.stderr)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    rows = [["system", "tokens/s, median", "slowest", "fastest", "ours is x times", "parameters"]]
    for name, found in medians.items():
        parameters = next(run["parameters"] for run in runs if run["system"] == name)
        rows.append([SYSTEMS[name], found, min(rates[name]), max(rates[name]), medians["ours"] / found, parameters])
    print(table(rows))
    if not given.no_result:
        name = f"complete-train-speed-{given.d_model}"
        data = {"settings": settings_of(given), "medians": medians, "runs": runs}
        write_result(name, environment, data, {"Training tokens a second": rows})


if __name__ == "__main__":
    main()
