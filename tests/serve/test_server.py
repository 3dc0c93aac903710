"""The running server under load, left by its clients, with too much to do, stopped, and fed with garbage."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from glassformer.decode.complete_options import CompleteOptions
from glassformer.serve.app import Access
from glassformer.serve.limits import Limits
from glassformer.serve.models import Served
from glassformer.tasks.completer import Completer
from glassformer.tasks.embedder import Embedder, Vectors
from glassformer.tasks.model_dir import save_model
from glassformer.tasks.translator import Translator
from tests.serve.conftest import metric, running, until

LONG = {"model": "stories", "prompt": "the cat", "max_tokens": 7000, "stream": True, "temperature": 1.0}
WHAT = ("milk", "the old house by the sea, where nobody lives", "you")
SENTENCES = [f"{who} {does} {w}." for who in ("I", "Tom", "The cat") for does in ("sees", "likes") for w in WHAT]


def test_many_clients_get_what_each_would_get_alone(models: dict[str, Served]) -> None:
    translator, completer = models["en-de"].face, models["stories"].face
    assert isinstance(translator, Translator)
    assert isinstance(completer, Completer)
    wanted = dict(zip(SENTENCES, translator.translate(SENTENCES), strict=True))
    options = CompleteOptions(max_tokens=24, temperature=0.8, seed=7)
    continued = {text: completer.complete_all([text], options)[0][0].text for text in SENTENCES}
    with running(models) as address, httpx.Client(base_url=address, timeout=120) as client:

        def ask(text: str) -> bool:
            said = client.post("/translate", json={"q": text, "source": "en", "target": "de"}).json()
            body = {"model": "stories", "prompt": text, "max_tokens": 24, "temperature": 0.8, "seed": 7}
            more = client.post("/v1/completions", json=body).json()
            return bool(said["translatedText"] == wanted[text] and more["choices"][0]["text"] == continued[text])

        with ThreadPoolExecutor(12) as pool:
            assert all(pool.map(ask, SENTENCES * 3))
        assert metric(address, "batch_items_total") > metric(address, "batches_total")
        assert metric(address, "step_rows_total") > metric(address, "steps_total")
        assert metric(address, "queue_waiting") == metric(address, "rows_running") == 0


def test_a_long_text_is_cut_and_joined_as_on_the_command_line(server: str, models: dict[str, Served]) -> None:
    translator = models["en-de"].face
    assert isinstance(translator, Translator)
    text = " ".join(SENTENCES * 3) + "\n\n" + " ".join(SENTENCES)
    texts = [text, "", "Yes."]
    wanted = translator.translate_all(texts, details=True)
    said = httpx.post(f"{server}/api/translate", json={"texts": texts, "details": True}, timeout=60).json()
    for ours, [best] in zip(said["translations"], wanted, strict=True):
        assert ours[0]["text"] == best.text
        assert ours[0]["tokens"] == best.tokens
        assert ours[0]["alignment"] == best.alignment
        assert ours[0]["score"] == pytest.approx(best.score, abs=1e-3)


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_away_frees_its_place(endless: dict[str, Served], stream: bool) -> None:
    with running(endless) as address:
        body = json.dumps({**LONG, "stream": stream}).encode()
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            head = f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
            client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            until(lambda: metric(address, "rows_running") == 1)
        until(lambda: metric(address, "rows_running") == 0)
        assert metric(address, "steps_total") < LONG["max_tokens"]


def test_a_slow_batch_of_one_model_does_not_stall_the_server(
    models: dict[str, Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    may, began, embed_ids = threading.Event(), threading.Event(), Embedder.embed_ids

    def slowly(self: Embedder, *given: Any) -> Vectors:
        began.set()
        assert may.wait(30)
        return embed_ids(self, *given)

    monkeypatch.setattr(Embedder, "embed_ids", slowly)
    talker: dict[str, Any] = {"model": "talker", "max_tokens": 2}
    others = {
        "/v1/chat/completions": {**talker, "messages": [{"role": "user", "content": "Hi"}]},
        "/v1/completions": {**talker, "prompt": "Hi"},
        "/api/complete": {"model": "talker", "prompts": ["Hi"], "options": {"max_tokens": 2}},
    }
    with running({name: models[name] for name in ("talker", "stories")}) as address, ThreadPoolExecutor(4) as pool:
        try:
            asked = [pool.submit(httpx.post, f"{address}/api/embed", json={"model": "talker", "texts": ["a"]})]
            assert began.wait(30)
            asked += [pool.submit(httpx.post, address + path, json=body) for path, body in others.items()]
            until(lambda: metric(address, "queue_waiting") == len(others))
            assert httpx.post(f"{address}/v1/completions", json={"model": "stories", "prompt": "a"}).status_code == 200
        finally:
            may.set()
        assert [each.result(30).status_code for each in asked] == [200] * 4


def test_a_full_queue_answers_429(endless: dict[str, Served]) -> None:
    with (
        running(endless, Limits(rows=1, queue=1)) as address,
        httpx.Client(base_url=address) as client,
        client.stream("POST", "/v1/completions", json=LONG) as first,
    ):
        until(lambda: metric(address, "rows_running") == 1)  # the only place to wait is free again
        with client.stream("POST", "/v1/completions", json=LONG) as second:
            until(lambda: metric(address, "queue_waiting") == 1)
            refused = client.post("/v1/completions", json=LONG)
            assert refused.status_code == 429
            assert int(refused.headers["Retry-After"]) >= 1
            assert refused.json()["error"]["type"] == "rate_limit_error"
            assert first.status_code == second.status_code == 200


def test_one_request_may_not_ask_for_more_answers_than_may_wait(endless: dict[str, Served]) -> None:
    with running(endless, Limits(queue=20)) as address:
        asked = {"model": "stories", "prompt": ["a", "b"], "max_tokens": 1}
        assert httpx.post(f"{address}/v1/completions", json={**asked, "n": 10}).status_code == 200
        refused = httpx.post(f"{address}/v1/completions", json={**asked, "n": 11})
        assert refused.status_code == 413
        assert "22 answers" in refused.json()["error"]["message"]


def test_a_request_that_takes_too_long_is_given_up(endless: dict[str, Served]) -> None:
    with running(endless, Limits(seconds=1)) as address:
        answer = httpx.post(f"{address}/v1/completions", json={**LONG, "stream": False}, timeout=60)
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "timeout"
        with httpx.stream("POST", f"{address}/v1/completions", json=LONG, timeout=60) as streamed:
            lines = [line for line in streamed.iter_lines() if line]
        assert json.loads(lines[-2].removeprefix("data: "))["error"]["code"] == "timeout"
        assert lines[-1] == "data: [DONE]"
        until(lambda: metric(address, "rows_running") == 0)


def test_sigterm_finishes_what_is_under_way(tmp_path: Path, endless: dict[str, Served]) -> None:
    loaded = endless["stories"].loaded
    save_model(tmp_path / "stories", "complete", loaded.model, loaded.tokenizer, about=loaded.about)
    command = [sys.executable, "-m", "glassformer.cli.main", "serve", str(tmp_path / "stories"), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert process.stderr is not None
    try:
        lines = iter(process.stderr.readline, "")
        address = next(line for line in lines if line.startswith("Ready at ")).split()[-1]
        with httpx.stream("POST", f"{address}/v1/completions", json={**LONG, "max_tokens": 1500}, timeout=60) as said:
            events = said.iter_lines()
            assert next(events).startswith("data: {")
            process.send_signal(signal.SIGTERM)
            rest = [line for line in events if line]
        assert rest[-1] == "data: [DONE]"
        assert json.loads(rest[-2].removeprefix("data: "))["choices"][0]["finish_reason"] in ("length", "stop")
        assert process.wait(60) in (0, -signal.SIGTERM)
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{address}/health")
        log = [json.loads(line) for line in process.stderr.read().splitlines() if line.startswith("{")]
        assert log[-1]["path"] == "/v1/completions"
        assert "the cat" not in json.dumps(log)
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_other_hosts_origins_and_sizes_are_refused(endless: dict[str, Served]) -> None:
    access = Access(hosts=["127.0.0.1"], origins=["https://good.example"])
    with running(endless, Limits(body=10_000, characters=100), access) as address:
        assert httpx.get(f"{address}/health", headers={"Host": "evil.example"}).status_code == 400
        good = httpx.get(f"{address}/health", headers={"Origin": "https://good.example"})
        assert good.headers["access-control-allow-origin"] == "https://good.example"
        evil = httpx.get(f"{address}/health", headers={"Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in evil.headers
        large = {"model": "stories", "prompt": "x" * 20_000}
        for body in ({"json": large}, {"content": iter([json.dumps(large).encode()])}):
            answer = httpx.post(f"{address}/v1/completions", **body, headers={"Content-Type": "application/json"})
            assert answer.status_code == 413
            assert "bytes" in answer.json()["error"]["message"]
        assert httpx.post(f"{address}/v1/completions", json={**large, "prompt": "x" * 200}).status_code == 413


BODIES: list[Any] = [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 5000, b'{"model": "stories", "prompt": "\\ud800"}',
                     b'{"model": "stories", "prompt": "a", "temperature": NaN}', b'{"model": 1e999}']  # fmt: skip


PATHS = ["/v1/completions", "/v1/chat/completions", "/v1/embeddings", "/api/translate", "/api/complete"]


@pytest.mark.parametrize("path", [*PATHS, "/api/classify", "/api/embed", "/translate", "/detect"])
def test_garbage_is_refused_without_a_traceback(server: str, path: str) -> None:
    for body in BODIES:
        answer = httpx.post(f"{server}{path}", content=body, headers={"Content-Type": "application/json"})
        assert 400 <= answer.status_code < 500, body
        assert set(answer.json()) <= {"error", "hint"}
        assert "/src/" not in answer.text
        assert "Traceback" not in answer.text
    for kind in ("text/plain", "image/png", ""):  # a good body, were it of the right type
        answer = httpx.post(f"{server}{path}", content=b'{"model": "stories"}', headers={"Content-Type": kind})
        assert answer.status_code == 415
        assert "application/json" in answer.text or path in ("/translate", "/detect")


def test_our_own_verbs(server: str, models: dict[str, Served]) -> None:
    def ask(verb: str, **body: Any) -> Any:
        answer = httpx.post(f"{server}/api/{verb}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    told = {m["name"]: m for m in httpx.get(f"{server}/api/models").json()}
    assert set(told) == set(models)
    judges = [m for m in told.values() if m["task"] == "classify"]
    assert judges
    assert all((m["input"], m["n_texts"]) == ("text", 1) for m in judges)
    filler, classifier = models["blanks"].face, models["mood"].face
    [filled] = filler.fill(["the ___ sat"], 3)  # type: ignore[union-attr]
    said = ask("fill", texts=["the ___ sat"], top=3)["answers"][0]
    assert said["text"] == filled.text
    assert [g["word"] for g in said["blanks"][0]] == [g.word for g in filled.blanks[0]]
    [answer] = classifier.classify(["the cat"])  # type: ignore[union-attr]
    assert ask("classify", texts=["the cat", "a"])["answers"][0]["label"] == answer.label
    assert len(ask("embed", texts=["a", "b"], model="stories", pooling="mean")["vectors"]) == 2
    completions = ask("complete", prompts=["the"], options={"n": 2, "seed": 1, "max_tokens": 3})["completions"]
    assert len(completions[0]) == 2
    drawn = {"sample": True, "seed": 4, "nbest": 2}
    assert ask("translate", texts=["I am here."], options=drawn) == ask(
        "translate", texts=["I am here."], options=drawn
    )
    no_blank = httpx.post(f"{server}/api/fill", json={"texts": ["no blank"]})
    assert no_blank.status_code == 400
    assert "no blank" in no_blank.json()["error"]


def test_look_gives_the_page_and_no_file_of_the_machine(server: str, models: dict[str, Served]) -> None:
    given = {"model": "stories", "texts": ["the cat"], "max_tokens": 3}
    answer = httpx.post(f"{server}/api/look", json=given, timeout=60)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert "Content-Security-Policy" in answer.text
    assert "the cat" in answer.text
    for wrong in ({"texts": []}, {"texts": ["a"] * 3}, {"texts": ["x " * 900]}, {"path": "/etc/passwd"}):
        assert httpx.post(f"{server}/api/look", json=given | wrong).status_code in (400, 422)
