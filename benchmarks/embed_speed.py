"""Embedding speed: sentences a second for 1,000 sentences of mixed length, the same fp32 weights everywhere.

    .venv-peers/bin/python -m benchmarks.embed_speed --rounds 5

Texts in, vectors out, tokenizing included. Ours is `glassformer.load(model).embed(texts)` as it comes.
sentence-transformers is `SentenceTransformer(folder).encode(texts)` as it comes, which sorts by length itself.
transformers is the recipe of the model's own page, 32 texts at a time in their order. Each measurement is a fresh
process with a warm-up; the order rotates from round to round.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environment import describe, in_own_process, need_peers, settings_of, table, write_result
from benchmarks.minilm import minilm_folder, sentences

SYSTEMS = ("ours", "sentence-transformers", "transformers")
TOLERANCE = 1e-5
Embed = Callable[[list[str]], Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--no-result", action="store_true", help="for trying it out: write no file")
    parser.add_argument("--work", help=argparse.SUPPRESS)  # JSON of one measurement: this is its process
    arguments = parser.parse_args()
    if arguments.work:
        _work(json.loads(arguments.work))
    else:
        need_peers("transformers", "sentence_transformers")
        _measure(arguments)


def _work(order: dict[str, Any]) -> None:
    import torch

    torch.set_num_threads(order["threads"])
    texts = sentences(order["sentences"])
    embed = make_embed(order["system"], Path(order["theirs"]), Path(order["ours"]))
    embed(texts[:64])
    began = time.perf_counter()
    vectors = embed(texts)
    seconds = time.perf_counter() - began
    np.save(order["vectors"], np.asarray(vectors, dtype=np.float32))
    print("METER " + json.dumps({"seconds": seconds}))


def make_embed(system: str, theirs: Path, ours: Path) -> Embed:
    os.environ["HF_HUB_OFFLINE"] = "1"
    if system == "ours":
        import glassformer

        return glassformer.load(ours).embed  # type: ignore[union-attr, no-any-return]
    if system == "sentence-transformers":
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(str(theirs), device="cpu").encode  # type: ignore[no-any-return]
    return transformers_embed(theirs)


def transformers_embed(folder: Path, batch: int = 32) -> Embed:
    """Tokenize with padding, run, take the mean of what is real, normalise."""
    import torch
    import torch.nn.functional as F
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()

    @torch.no_grad()
    def embed(texts: list[str]) -> Any:
        found = []
        for i in range(0, len(texts), batch):
            rows = tokenizer(texts[i : i + batch], padding=True, truncation=True, max_length=256, return_tensors="pt")
            keep = rows["attention_mask"][:, :, None].float()
            states = model(**rows).last_hidden_state
            found.append(F.normalize((states * keep).sum(1) / keep.sum(1), dim=-1))
        return torch.cat(found).numpy()

    return embed


def _measure(given: argparse.Namespace) -> None:
    from glassformer.exchange.importing import import_model

    environment = describe()
    rates: dict[str, list[float]] = {system: [] for system in SYSTEMS}
    vectors = {}
    with tempfile.TemporaryDirectory() as scratch:
        import_model(minilm_folder(), Path(scratch) / "minilm")
        order = {"theirs": str(minilm_folder()), "ours": f"{scratch}/minilm", "vectors": f"{scratch}/vectors.npy"}
        order |= {"threads": given.threads, "sentences": given.sentences}
        for i in range(given.rounds):
            turn = i % len(SYSTEMS)
            for system in SYSTEMS[turn:] + SYSTEMS[:turn]:
                found = in_own_process("benchmarks.embed_speed", {**order, "system": system}, given.threads)
                rates[system].append(given.sentences / found["seconds"])
                vectors[system] = np.load(order["vectors"])
                print(f"round {i + 1}  {system:<24}{rates[system][-1]:>8.1f} sentences/s", file=sys.stderr)
    medians = {system: statistics.median(values) for system, values in rates.items()}
    far = {system: float(np.abs(found - vectors["ours"]).max()) for system, found in vectors.items()}
    rows: list[list[Any]] = [["system", "sentences/s, median", "ours is × as fast", "largest difference", "rounds"]]
    for system, median in sorted(medians.items(), key=lambda item: -item[1]):
        every = ", ".join(f"{rate:.1f}" for rate in rates[system])
        ratio = "–" if system == "ours" else medians["ours"] / median
        rows.append([system, median, ratio, f"{far[system]:.1e}", every])
    print(table(rows))
    if max(far.values()) > TOLERANCE:
        print(f"Vectors differ by more than {TOLERANCE:.0e}.", file=sys.stderr)
    if not given.no_result:
        data = {"settings": settings_of(given), "medians": medians, "rounds": rates, "differences": far}
        title = f"{given.sentences:,} sentences of mixed length, MiniLM-L6, fp32, {given.threads} threads"
        write_result("embed-speed", environment, data, {title: rows})


if __name__ == "__main__":
    main()
