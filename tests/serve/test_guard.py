"""Keys and names of the machine, before a body is read; and failures of the server, in the client's dialect."""

import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from glassformer.serve.app import Access
from glassformer.serve.models import Served
from glassformer.tasks.embedder import Embedder
from tests.serve.conftest import running, until

OPEN = {"/health", "/languages", "/frontend/settings"}
IN_BODY = {"/translate", "/detect"}  # where the key may be in the body
ORIGIN = "https://good.example"


@pytest.fixture(scope="module")
def address(models: dict[str, Served]) -> Iterator[str]:
    access = Access(keys=["secret"], hosts=["127.0.0.1", "[::1]", "*.good.example"], origins=[ORIGIN])
    with running({name: models[name] for name in ("en-de", "stories")}, access=access) as found:
        yield found


def test_every_path_is_guarded_that_is_not_meant_to_be_open(address: str) -> None:
    paths = httpx.get(f"{address}/openapi.json").json()["paths"]
    assert {"/v1/completions", "/api/look", "/api/runs", "/metrics"} <= paths.keys()
    for path, operations in paths.items():
        for method in operations:
            status = httpx.request(method, address + path.replace("{name}", "stories")).status_code
            assert (status in (401, 403)) is (path not in OPEN), (path, status)


def test_without_a_key_no_body_is_waited_for(address: str) -> None:
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as client:
        head = f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        client.sendall(f"{head}Content-Length: 9000\r\n\r\n".encode())
        assert client.recv(4096).startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize(
    ("headers", "known"),
    [
        ({"Authorization": "Bearer secret"}, True),
        ({"Authorization": "bearer  secret"}, True),
        ({"X-API-Key": "secret"}, True),
        ({"Authorization": "Bearer secre"}, False),
        ({"Authorization": "Basic secret"}, False),
        ({"X-API-Key": "other"}, False),
        ({}, False),
    ],
)
def test_a_key_in_a_header_is_read_alike_everywhere(address: str, headers: dict[str, str], known: bool) -> None:
    assert httpx.get(f"{address}/v1/models", headers=headers).status_code == (200 if known else 401)
    given = {"q": "Yes.", "source": "en", "target": "de"}
    for path in sorted(IN_BODY):
        answer = httpx.post(address + path, json=given, headers=headers)
        assert answer.status_code == (200 if known else 403)


def test_a_page_of_another_origin_may_ask_whether_it_may_ask(address: str) -> None:
    asked = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST"}
    assert httpx.options(f"{address}/v1/completions", headers=asked).status_code == 200
    refused = httpx.get(f"{address}/v1/models", headers={"Origin": ORIGIN})
    assert refused.status_code == 401
    assert refused.headers["access-control-allow-origin"] == ORIGIN


@pytest.mark.parametrize(
    ("host", "known"),
    [("127.0.0.1:99", True), ("[::1]:99", True), ("a.Good.example", True), ("evil.example", False), ("[::2]", False)],
)
def test_another_name_is_refused_in_the_dialect(address: str, host: str, known: bool) -> None:
    headers = {"Host": host, "X-API-Key": "secret"}
    assert httpx.get(f"{address}/health", headers=headers).status_code == (200 if known else 400)
    answer = httpx.get(f"{address}/v1/models", headers=headers).json()
    assert known or "name" in answer["error"]["message"]


def test_monitors_ask_for_the_head_alone(address: str) -> None:
    headers = {"X-API-Key": "secret"}
    for path in ("/health", "/", "/page/style.css", "/v1/models"):
        answer = httpx.head(f"{address}{path}", headers=headers)
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer.headers["content-length"] == str(len(httpx.get(f"{address}{path}", headers=headers).content))
    assert httpx.head(f"{address}/translate").status_code == 405


def test_nobody_is_led_elsewhere(address: str) -> None:
    answer = httpx.get(f"{address}/learn/")
    assert answer.status_code == 404
    assert "location" not in answer.headers


def test_a_failure_is_told_in_the_dialect_and_logged_once(
    server: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(*_: Any) -> None:
        raise RuntimeError("/secret/path")

    def n_failed() -> int:
        return sum(record.message == "failed" for record in caplog.records)

    monkeypatch.setattr(Embedder, "embed_ids", breaks)  # in the lane
    monkeypatch.setattr("glassformer.serve.libretranslate._texts", breaks)  # in the server's own thread
    asked: dict[str, Any] = {
        "/v1/embeddings": {"model": "mood", "input": "a"},
        "/api/embed": {"model": "mood", "texts": ["a"]},
        "/detect": {"q": "a"},
    }
    for path, body in asked.items():
        answer = httpx.post(server + path, json=body)
        assert answer.status_code == 500
        error = answer.json()["error"]
        assert "went wrong" in (error["message"] if path.startswith("/v1") else error)
        assert "secret" not in answer.text
    until(lambda: n_failed() >= len(asked))  # the answer comes before the line in the log
    assert httpx.post(f"{server}/v1/completions", json={"model": "stories", "prompt": "a"}).status_code == 200
    assert n_failed() == len(asked)
