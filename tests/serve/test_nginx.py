"""Two servers behind a real nginx, with the configuration that docs/nginx.conf gives to users."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from glassformer.serve.models import Served
from glassformer.tasks.model_dir import save_model
from tests.serve.conftest import metric, until

GIVEN = Path(__file__).parents[2] / "docs" / "nginx.conf"
ASK = {"model": "stories", "prompt": "the cat", "max_tokens": 5, "temperature": 0}

pytestmark = pytest.mark.skipif(
    shutil.which("nginx") is None, reason="nginx is not installed (apt install nginx-light)"
)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nginx")
    folder.chmod(0o755)  # nginx gives up root's rights
    return folder


@pytest.fixture
def servers(folder: Path, endless: dict[str, Served]) -> Iterator[dict[int, "subprocess.Popen[str]"]]:
    """By port."""
    loaded = endless["stories"].loaded
    save_model(folder / "stories", "complete", loaded.model, loaded.tokenizer, about=loaded.about)
    command = [sys.executable, "-m", "glassformer.cli.main", "serve", str(folder / "stories"), "--quiet", "--rows", "1"]
    with ExitStack() as stack:
        started = []
        for _ in range(2):
            process = subprocess.Popen(
                [*command, "--queue", "1", "--port", "0"],
                stderr=subprocess.PIPE,
                text=True,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            started.append(process)
        found = {}
        for process in started:
            assert process.stderr is not None
            ready = next(line for line in process.stderr if line.startswith("Ready at "))
            found[int(ready.rpartition(":")[2])] = process
        yield found


@pytest.fixture
def proxy(folder: Path, servers: dict[int, "subprocess.Popen[str]"]) -> Iterator[str]:
    ports = {"8000": free_port(), **dict(zip(("8001", "8002"), servers, strict=True))}
    told = re.sub(r"(?<=listen )8000|(?<=127\.0\.0\.1:)800[12]", lambda found: str(ports[found[0]]), GIVEN.read_text())
    assert not re.search(r"^[^#]*\b800[012]\b", told, re.MULTILINE), "the ports of the file stand elsewhere too"
    (folder / "glassformer.conf").write_text(told)
    temporary = "".join(
        f"{kind}_temp_path {folder};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"pid {folder}/nginx.pid; daemon off; error_log {folder}/error.log;\nevents {{}}\n"
        f"http {{\n{temporary}include {folder}/glassformer.conf;\n}}\n"
    )
    process = subprocess.Popen(["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")], stderr=subprocess.PIPE)
    address = f"http://127.0.0.1:{ports['8000']}"
    try:
        until(lambda: _answers(address) or process.poll() is not None)
        assert process.poll() is None, process.stderr.read()  # type: ignore[union-attr]
        yield address
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()  # type: ignore[union-attr]


def _answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/health").status_code == 200
    except httpx.TransportError:
        return False


def test_streams_go_through_queues_hand_over_and_a_killed_server_is_replaced(
    proxy: str, servers: dict[int, "subprocess.Popen[str]"]
) -> None:
    own = [f"http://127.0.0.1:{port}" for port in servers]
    long = {**ASK, "max_tokens": 7000, "stream": True}
    with httpx.Client(base_url=proxy, timeout=60) as client:
        alone = client.post("/v1/completions", json=ASK).json()["choices"][0]["text"]
        assert client.get("/metrics").status_code == 404
        with ExitStack() as stack:
            # Each server has one row and one place to wait: four streams fill both, the fifth client is told to wait.
            streams = []
            for n in range(4):
                streams.append(stack.enter_context(client.stream("POST", "/v1/completions", json=long)))
                until(lambda n=n: sum(metric(a, "rows_running") + metric(a, "queue_waiting") for a in own) == n + 1)
            assert [metric(address, "rows_running") for address in own] == [1, 1]
            pieces = streams[0].iter_lines()  # they come while the answer is far from done
            assert [
                json.loads(line[6:])["choices"][0]["finish_reason"] for line in (next(pieces), next(pieces)) if line
            ]
            assert metric(own[0], "rows_running") + metric(own[1], "rows_running") == 2
            assert client.post("/v1/completions", json=ASK).status_code == 429
        until(lambda: not any(metric(a, "rows_running") + metric(a, "queue_waiting") for a in own))  # all went away
        for _ in range(6):
            assert client.post("/v1/completions", json=ASK).json()["choices"][0]["text"] == alone
        assert all(metric(address, "steps_total") for address in own)  # both had something to do
        first = next(iter(servers.values()))
        first.kill()
        first.wait()
        began = time.monotonic()
        for _ in range(20):
            answer = client.post("/v1/completions", json=ASK)
            assert answer.status_code == 200
            assert answer.json()["choices"][0]["text"] == alone
        assert time.monotonic() - began < 30
