"""Training speed on Multi30k: real target tokens a second, all systems on the same ids, in one interleaved run.

    .venv-peers/bin/python -m benchmarks.train_speed --rounds 5 --seconds 30

Every system trains the published tiny shape with the same dropout, label smoothing, clipping, Adam, fp32 and token
budget, by its own loop and its own batching (benchmarks/training/ says how each is driven). A round runs each system
once, in a fresh process, in an order that rotates; counted are tokens that are not padding, over whole steps from
loading the data to the optimizer, after a warm-up.
"""

import argparse
import importlib
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.corpus import write_corpus
from benchmarks.environment import describe, in_own_process, need_peers, settings_of, table, write_result
from benchmarks.training.meter import Job

SYSTEMS = {
    "ours": "Glassformer",
    "huggingface": "Hugging Face Marian, Trainer",
    "opennmt": "OpenNMT-py",
    "eole": "eole",
    "plain": "torch.nn.Transformer loop, sorted",
}
NEEDED = {"huggingface": "transformers", "opennmt": "onmt", "eole": "eole"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--warmup", type=float, default=8, help="seconds of each run that do not count")
    parser.add_argument("--dropout", type=float, default=0.3)
    parser.add_argument("--budget", type=int, default=4096, help="tokens a batch")
    parser.add_argument("--vocab", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--no-result", action="store_true", help="for trying it out: write no file")
    parser.add_argument("--work", help=argparse.SUPPRESS)  # JSON of one system's job: this is its process
    arguments = parser.parse_args()
    if arguments.work:
        _work(json.loads(arguments.work))
    else:
        _measure(arguments)


def _work(order: dict[str, Any]) -> None:
    job = Job(
        Path(order["folder"]), order["budget"], order["rows"], order["dropout"], order["seconds"], order["warmup"]
    )
    importlib.import_module(f"benchmarks.training.{order['system']}").train(job)


def _measure(given: argparse.Namespace) -> None:
    need_peers(*(NEEDED[name] for name in given.systems if name in NEEDED))
    environment = describe()
    rates: dict[str, list[float]] = {name: [] for name in given.systems}
    runs = []
    with tempfile.TemporaryDirectory() as scratch:
        corpus = write_corpus(Path(scratch), given.vocab)
        rows, tokens_a_batch = _equal_rows(corpus, given.budget)
        order = {"folder": scratch, "rows": rows, "budget": given.budget, "dropout": given.dropout}
        order |= {"seconds": given.seconds, "warmup": given.warmup}
        for i in range(given.rounds):
            turn = i % len(given.systems)
            for name in given.systems[turn:] + given.systems[:turn]:
                found = in_own_process("benchmarks.train_speed", {**order, "system": name}, given.threads)
                rates[name].append(found["tokens"] / found["seconds"])
                runs.append({"round": i + 1, "system": name, **found})
                print(f"round {i + 1}  {SYSTEMS[name]:<36}{rates[name][-1]:>10,.0f} tokens/s", file=sys.stderr)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    shown = _rows(medians, rates, runs)
    print(table(shown))
    if given.no_result:
        return
    data = {
        "settings": {
            **settings_of(given),
            "rows_a_batch_huggingface": rows,
            "our_target_tokens_a_batch": tokens_a_batch,
        },
        "tokens_per_second": {name: {"median": medians[name], "rounds": rates[name]} for name in rates},
        "ours_over": _ratios(medians),
        "runs": runs,
    }
    write_result("train-speed", environment, data, {"Real target tokens a second": shown})


def _equal_rows(corpus: Any, budget: int) -> tuple[int, float]:
    """Sentences a batch that hold as many real target tokens as our batches do, and how many these are."""
    from glassformer.data.batch import plan_epoch

    data = corpus.pair_data()
    lengths = [data.source.tokens.lengths + 1, data.target.tokens.lengths + 1]
    n_tokens = float(lengths[1].sum()) / len(plan_epoch(lengths, budget, 1, 0))
    return round(n_tokens / corpus.tokens_a_pair()), n_tokens


def _ratios(medians: dict[str, float]) -> dict[str, float]:
    return {name: medians["ours"] / value for name, value in medians.items() if name != "ours" and "ours" in medians}


def _rows(medians: dict[str, float], rates: dict[str, list[float]], runs: list[dict[str, Any]]) -> list[list[Any]]:
    rows: list[list[Any]] = [["system", "median", "ours is × as fast", "tokens a step", "parameters", "rounds"]]
    ratios = _ratios(medians)
    for name, median in sorted(medians.items(), key=lambda item: -item[1]):
        own = [run for run in runs if run["system"] == name]
        per_step = sum(run["tokens"] for run in own) / max(1, sum(run["steps"] for run in own))
        every = ", ".join(f"{rate:,.0f}" for rate in rates[name])
        rows.append([SYSTEMS[name], median, ratios.get(name, "–"), per_step, own[0]["parameters"], every])
    return rows


if __name__ == "__main__":
    main()
