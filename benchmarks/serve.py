"""The server under load on this machine: 1, 8 and 64 clients, each asking again as soon as it has its answer.

    .venv-peers/bin/python -m benchmarks.serve                                        # about ten minutes
    python -m benchmarks.serve --systems ours --seconds 5 --rounds 1 --no-result      # for trying it out
    python -m benchmarks.serve --beam 1 --systems ours --tasks translate              # greedy: one row a sentence
    python -m benchmarks.serve --soak 10                   # minutes of mixed load: memory and open files are watched

Translation (one sentence a request, beam 4 unless another is asked for) and completion (streamed, greedy). Every answer
is compared with that of the model alone; how fast the translator is without any server, one text and 64 at a time, says
what the clients could get at most. Beside ours stands what one writes in ten lines: FastAPI around Hugging Face
`generate`, same weights. Server and clients share the machine's cores, as they share them for every system.
"""

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.environment import ROOT, describe, need_peers, settings_of, stop, table, write_result
from benchmarks.serve_client import Connection, Reply

CLIENTS = (1, 8, 64)
NEW = 32  # tokens of a completion
QUIET = ("--port", "0", "--quiet")
Ask = Callable[[Connection, int], Awaitable[Reply]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="en-de", help="a translator")
    parser.add_argument("--engine", default="auto", help="of our translator: auto, c++, ctranslate2 or torch")
    parser.add_argument("--beam", type=int, default=4, help="of translation; 1 is greedy")
    parser.add_argument("--lm", help="a language model's directory; else a random one is made")
    parser.add_argument("--seconds", type=float, default=12.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, nargs="+", default=list(CLIENTS))
    parser.add_argument("--systems", nargs="+", choices=("ours", "huggingface"), default=["ours", "huggingface"])
    parser.add_argument("--tasks", nargs="+", choices=("translate", "complete"), default=["translate", "complete"])
    parser.add_argument("--soak", type=float, help="minutes of mixed load, in place of the measurements")
    parser.add_argument("--no-result", action="store_true", help="for trying it out: write no file")
    parser.add_argument("--work", help=argparse.SUPPRESS)  # JSON: this process is the peer's server
    arguments = parser.parse_args()
    if arguments.work:
        _serve_huggingface(json.loads(arguments.work))
        return
    if arguments.soak:
        _soak(arguments)
        return
    if "huggingface" in arguments.systems:
        need_peers("transformers", "fastapi", "uvicorn")
    _measure(arguments)


def _measure(given: argparse.Namespace) -> None:
    from glassformer.tasks.built_in import find_model

    environment, data, tables = describe(), {}, {}
    with tempfile.TemporaryDirectory() as scratch:
        given.lm = given.lm or str(_random_lm(Path(scratch) / "lm"))
        folders = {"translate": str(find_model(given.model)), "complete": given.lm}
        for task in given.tasks:
            texts, wanted, alone = _alone(task, folders[task], given)
            found: dict[str, dict[int, list[dict[str, float]]]] = {}
            for _ in range(given.rounds):
                for system in given.systems:
                    with _server(system, task, folders[task], given) as port:
                        for n in given.clients:
                            ask = _asker(system, task, texts, given.beam)
                            # The peer's rounding is its own: its answers are counted, not compared.
                            right = wanted if system == "ours" else None
                            load = asyncio.run(_load(port, n, given.seconds, ask, texts, right))
                            found.setdefault(system, {}).setdefault(n, []).append(load)
                            print(f"{task} {system} {n} clients: {load}", file=sys.stderr, flush=True)
            data[task] = {"alone": alone, **found}
            rows = _rows(found) + [[f"ours, no server, {name}", "", rate] + [""] * 5 for name, rate in alone.items()]
            tables[f"{task}: answers a second"] = rows
            print(f"\n{task}\n\n{table(rows)}", flush=True)
    if not given.no_result:
        name = "serve" + ("" if given.beam == 4 else f"-beam-{given.beam}")
        name += "" if given.engine == "auto" else f"-{given.engine}"
        write_result(name, environment, {"settings": settings_of(given), **data}, tables)


def _soak(given: argparse.Namespace) -> None:
    from benchmarks.serve_soak import show, soak

    environment = describe()
    with tempfile.TemporaryDirectory() as scratch:
        lm = given.lm or _random_lm(Path(scratch) / "lm")
        with running(["glassformer.cli.main", "serve", given.model, "digits", f"lm={lm}", *QUIET]) as (port, pid):
            found = asyncio.run(soak(pid, port, given.soak))
    rows = show(found)
    print(table(rows))
    if not given.no_result:
        title = f"{sum(found['done'].values()):,} requests in {given.soak:g} minutes, {found['wrong']} wrong"
        write_result("serve-soak", environment, {"settings": settings_of(given), **found}, {title: rows})


async def _load(
    port: int, n_clients: int, seconds: float, ask: Ask, texts: list[str], wanted: list[str] | None
) -> dict[str, float]:
    """n clients for so many seconds, after a warm-up of one request each."""
    connections = [await Connection.open(port) for _ in range(n_clients)]
    await asyncio.gather(*(ask(c, i % len(texts)) for i, c in enumerate(connections)))
    until = time.perf_counter() + seconds
    times: list[float] = []
    first: list[float] = []
    n_wrong = 0

    async def client(connection: Connection, i: int) -> None:
        nonlocal n_wrong
        while (began := time.perf_counter()) < until:
            i = (i + 1) % len(texts)
            reply = await ask(connection, i)
            times.append(time.perf_counter() - began)
            first.append(reply.first - began)
            n_wrong += reply.status != 200 or (wanted is not None and reply.text != wanted[i])

    began = time.perf_counter()
    await asyncio.gather(*(client(c, 37 * i) for i, c in enumerate(connections)))
    took = time.perf_counter() - began
    for connection in connections:
        connection.close()
    times.sort()
    return {
        "answers_a_second": round(len(times) / took, 2),
        "p50_ms": round(1000 * times[len(times) // 2], 1),
        "p95_ms": round(1000 * times[int(0.95 * (len(times) - 1))], 1),
        "first_ms": round(1000 * statistics.median(first), 1),
        "answers": len(times),
        "wrong": n_wrong,
    }


def _asker(system: str, task: str, texts: list[str], beam: int) -> Ask:
    async def translate(connection: Connection, i: int) -> Reply:
        if system == "ours" and beam != 4:  # LibreTranslate's dialect has no word for it
            reply = await connection.post("/api/translate", {"texts": [texts[i]], "options": {"beam": beam}})
            return reply.with_text(reply.data()["translations"][0][0]["text"])
        reply = await connection.post("/translate", {"q": texts[i], "source": "en", "target": "de"})
        return reply.with_text(reply.data()["translatedText"])

    async def complete(connection: Connection, i: int) -> Reply:
        body = {"model": "lm", "prompt": texts[i], "max_tokens": NEW, "temperature": 0, "stream": system == "ours"}
        reply = await connection.post("/v1/completions", body)
        if system == "ours":
            events = [json.loads(line[6:]) for line in reply.body.decode().split("\n\n") if line.startswith("data: {")]
            return reply.with_text("".join(choice["text"] for event in events for choice in event["choices"]))
        return reply.with_text(reply.data()["text"])

    return translate if task == "translate" else complete


def _alone(task: str, folder: str, given: argparse.Namespace) -> tuple[list[str], list[str], dict[str, float]]:
    """Texts, what the model says to each of them by itself, and for a translator how many it does a second."""
    import glassformer
    from benchmarks.corpus import sentences_to_translate

    face: Any = glassformer.load(folder, engine=given.engine) if task == "translate" else glassformer.load(folder)
    texts = sentences_to_translate(300)
    if task == "complete":
        texts = [" ".join(text.split()[:6]) for text in texts]
        return texts, [face.complete([text], max_tokens=NEW, temperature=0)[0] for text in texts], {}
    rates, answers = {}, []
    face.translate(texts[:2], beam=given.beam)
    for n in (64, 1):
        began = time.perf_counter()
        parts = [face.translate(texts[i : i + n], beam=given.beam) for i in range(0, len(texts), n)]
        rates[f"{n} at a time"] = len(texts) / (time.perf_counter() - began)
        answers = [answer for part in parts for answer in part]
    return texts, answers, rates


def _random_lm(folder: Path) -> Path:
    """The smallest size with the tokenizer of Multi30k; it hardly ever ends by itself."""
    import torch

    from benchmarks.corpus import learn_tokenizer
    from glassformer import config
    from glassformer.model import build
    from glassformer.model.settings import ModelSettings
    from glassformer.sizes import load_size_data
    from glassformer.tasks.model_dir import save_model

    tokenizer = learn_tokenizer(8000)
    words = {"source": {"vocab_size": tokenizer.vocab_size}}
    torch.manual_seed(1)
    model = build(config.parse(ModelSettings, config.merge(load_size_data("complete-tiny"), words), "complete-tiny"))
    save_model(folder, "complete", model, tokenizer, about={"context": 512})
    return folder


@contextlib.contextmanager
def _server(system: str, task: str, folder: str, given: argparse.Namespace) -> Iterator[int]:
    """A server of either kind; gives its port."""
    if system == "ours":
        name = "lm" if task == "complete" else "translator"
        command = ["glassformer.cli.main", "serve", f"{name}={folder}", *QUIET]
        command += ["--engine", given.engine] if task == "translate" else []
    else:
        command = ["benchmarks.serve", "--work", json.dumps({"task": task, "folder": folder, "beam": given.beam})]
    with running(command) as (port, _):
        yield port


@contextlib.contextmanager
def running(command: list[str]) -> Iterator[tuple[int, int]]:
    """A module as a server in its own process, until the block ends: its port and its number."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", *command], cwd=ROOT, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    assert process.stderr is not None
    try:
        said = []
        for line in process.stderr:
            said.append(line)
            if line.startswith("Ready at "):
                yield int(line.rsplit(":", 1)[1]), process.pid
                break
        else:
            stop(f"The server did not start:\n{''.join(said)[-3000:]}")
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


def _serve_huggingface(order: dict[str, Any]) -> None:
    """What one writes first: a function a request, in FastAPI's threads."""
    import socket

    import torch
    import uvicorn
    from fastapi import Body, FastAPI

    from glassformer.data.tokenizer import END, START
    from glassformer.tasks.model_dir import load_model

    app = FastAPI()
    folder = Path(order["folder"])
    if order["task"] == "translate":
        from benchmarks.translators import make_translate

        translate = make_translate("huggingface", folder, order["beam"], 256)

        @app.post("/translate")
        def answer(q: str = Body(embed=True)) -> dict[str, str]:
            return {"translatedText": translate([q])[0]}
    else:
        loaded = load_model(folder)
        model, words = _language_model(loaded.model), loaded.tokenizer

        @app.post("/v1/completions")
        def complete(prompt: str = Body(embed=True)) -> dict[str, str]:
            ids = torch.tensor([[START, *words.encode(prompt)]])
            with torch.inference_mode():
                found = model.generate(
                    ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=NEW, eos_token_id=END
                )
            return {"text": words.decode(found[0, ids.shape[1] :].tolist())}

    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # so that small answers go at once
    sock.bind(("127.0.0.1", 0))
    sock.listen(128)  # who comes before the server runs waits
    print(f"Ready at http://127.0.0.1:{sock.getsockname()[1]}", file=sys.stderr, flush=True)
    # With 64 clients some wait longer than uvicorn keeps a silent connection.
    uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_keep_alive=600)).run([sock])


def _language_model(ours: Any) -> Any:
    """Our weights in the class of theirs that has the shape, shown to be the same on one input."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from glassformer.data.tokenizer import Marks
    from glassformer.exchange.huggingface_export import export_weights
    from glassformer.exchange.huggingface_layout import make_config

    config = make_config(ours.settings, Marks(start=1, ends=(2,)), None)
    theirs = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config)).eval()
    theirs.load_state_dict(export_weights(ours, config), strict=False)
    theirs.tie_weights()
    ids = torch.arange(3, 20)[None]
    with torch.inference_mode():
        torch.testing.assert_close(theirs(ids).logits, ours(ids), atol=1e-3, rtol=1e-3)
    return theirs


def _rows(found: dict[str, dict[int, list[dict[str, float]]]]) -> list[list[Any]]:
    rows: list[list[Any]] = [["system", "clients", "median", "× of 1 client", "p50 ms", "p95 ms", "first ms", "wrong"]]
    for system, by_clients in found.items():
        rates = {n: statistics.median(r["answers_a_second"] for r in runs) for n, runs in by_clients.items()}
        for n, runs in by_clients.items():
            middle = [statistics.median(r[name] for r in runs) for name in ("p50_ms", "p95_ms", "first_ms")]
            wrong = f"{sum(r['wrong'] for r in runs):g} of {sum(r['answers'] for r in runs):g}"
            rows.append([system, n, rates[n], rates[n] / rates[min(rates)], *middle, wrong])
    return rows


if __name__ == "__main__":
    main()
