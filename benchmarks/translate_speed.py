"""Translation speed with beam 4, one sentence or 64 at a time: sentences a second, the same weights everywhere.

    .venv-peers/bin/python -m benchmarks.translate_speed --model runs/en-de --rounds 5
    .venv-peers/bin/python -m benchmarks.translate_speed            # a random model that always makes 24 tokens

Texts in, texts out. Ours is `glassformer.load(model).translate_all(texts)` as it comes. CTranslate2 by hand is tried
with all sensible settings first; the best three of them then run in every round, and the best median of these counts.
Each measurement is a fresh process; the order rotates from round to round.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.corpus import sentences_to_translate
from benchmarks.environment import describe, in_own_process, need_peers, settings_of, stop, table, write_result

N_SENTENCES = {1: 200, 64: None}
SETTINGS = {  # inter_threads, intra_threads, max_batch_size (0: as given)
    1: [(1, 1, 0), (1, 2, 0)],
    64: [(1, 1, 0), (1, 2, 0), (2, 1, 32), (2, 1, 16), (2, 1, 8), (2, 1, 4)],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, help="a model directory; else a random model of --size is made")
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--vocab", type=int, default=10_000)
    parser.add_argument("--length", type=int, default=24, help="tokens that the random model makes")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sentences", type=int, help="fewer sentences, for trying it out")
    parser.add_argument("--batches", type=int, nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--no-result", action="store_true", help="for trying it out: write no file")
    parser.add_argument("--work", help=argparse.SUPPRESS)  # JSON of one measurement: this is its process
    arguments = parser.parse_args()
    if arguments.work:
        _work(json.loads(arguments.work))
    else:
        need_peers("transformers", "ctranslate2")
        _measure(arguments)


def _work(order: dict[str, Any]) -> None:
    import torch

    from benchmarks.translators import make_translate

    torch.set_num_threads(order["threads"])
    texts = sentences_to_translate(order["sentences"])
    batch = order["batch"]
    translate = make_translate(order["system"], Path(order["folder"]), order["beam"], order["max_len"])
    parts = [texts[i : i + batch] for i in range(0, len(texts), batch)]
    for part in parts[: 1 if batch > 1 else 10]:
        translate(part)
    began = time.perf_counter()
    answers = [answer for part in parts for answer in translate(part)]
    seconds = time.perf_counter() - began
    print("METER " + json.dumps({"seconds": seconds, "sentences": len(texts), "answers": answers}))


def _measure(given: argparse.Namespace) -> None:
    environment = describe()
    tables, data = {}, {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "model"
        if given.model is None:
            from benchmarks.translators import make_random_model

            make_random_model(folder, given.size, given.vocab)
        else:
            if not (given.model / "settings.json").exists():
                stop(f"{given.model} is not a finished model directory: train one, or leave out --model.")
            folder.mkdir()
            for path in given.model.iterdir():  # exports go beside the copy, not into the user's folder
                if path.is_file():
                    (folder / path.name).write_bytes(path.read_bytes())
        order = {"folder": str(folder), "beam": given.beam, "threads": given.threads}
        order["max_len"] = 256 if given.model else given.length
        for batch in given.batches:
            n = given.sentences or N_SENTENCES[batch]
            found = _measure_batch({**order, "batch": batch, "sentences": n}, given.rounds)
            data[f"batch {batch}"] = found
            tables[f"Sentences a second, batch {batch}, beam {given.beam}"] = _rows(found)
            print(f"\nBatch {batch}\n\n{table(_rows(found))}", flush=True)
    if not given.no_result:
        write_result("translate-speed", environment, {"settings": settings_of(given), **data}, tables)


def _measure_batch(order: dict[str, Any], rounds: int) -> dict[str, Any]:
    scan = {}
    for precision, numbers in product(("int8", "float32"), SETTINGS[order["batch"]]):
        system = f"ctranslate2 {precision} {' '.join(map(str, numbers))}"
        scan[system] = _rate(_run({**order, "system": system}))
        print(f"batch {order['batch']}  trying {system:<28}{scan[system]:>8.1f} sentences/s", file=sys.stderr)
    by_hand = sorted(scan, key=lambda system: -scan[system])[:3]
    systems = ["ours", *by_hand, "huggingface"]
    rates: dict[str, list[float]] = {system: [] for system in systems}
    answers: dict[str, list[str]] = {}
    for i in range(rounds):
        turn = i % len(systems)
        for system in systems[turn:] + systems[:turn]:
            found = _run({**order, "system": system})
            rates[system].append(_rate(found))
            answers[system] = found["answers"]
            print(f"batch {order['batch']}  round {i + 1}  {system:<28}{rates[system][-1]:>8.1f}", file=sys.stderr)
    medians = {system: statistics.median(values) for system, values in rates.items()}
    best = max(by_hand, key=lambda system: medians[system])
    return {
        "sentences": len(answers["ours"]),
        "medians": medians,
        "rounds": rates,
        "tried": scan,
        "best_by_hand": best,
        "ours_over_best_by_hand": medians["ours"] / medians[best],
        "ours_over_huggingface": medians["ours"] / medians["huggingface"],
        "characters_an_answer": {system: statistics.mean(map(len, texts)) for system, texts in answers.items()},
        "answers_as_ours": {
            system: statistics.mean(a == b for a, b in zip(texts, answers["ours"], strict=True))
            for system, texts in answers.items()
        },
    }


def _run(order: dict[str, Any]) -> dict[str, Any]:
    return in_own_process("benchmarks.translate_speed", order, order["threads"])


def _rate(found: dict[str, Any]) -> float:
    return found["sentences"] / found["seconds"]


def _rows(found: dict[str, Any]) -> list[list[Any]]:
    rows: list[list[Any]] = [["system", "median", "ours is × as fast", "characters", "answers as ours", "rounds"]]
    for system, median in sorted(found["medians"].items(), key=lambda item: -item[1]):
        every = ", ".join(f"{rate:.1f}" for rate in found["rounds"][system])
        ratio = "–" if system == "ours" else found["medians"]["ours"] / median
        same = f"{found['answers_as_ours'][system]:.0%}"
        rows.append([system, median, ratio, found["characters_an_answer"][system], same, every])
    untried = {system: rate for system, rate in found["tried"].items() if system not in found["medians"]}
    rows += [[system, rate, "–", "–", "–", "tried once"] for system, rate in untried.items()]
    return rows


if __name__ == "__main__":
    main()
