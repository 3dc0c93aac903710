"""A running server on a free port of this machine, with small models in it."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn

from glassformer.api import load
from glassformer.serve.app import Access, create_app
from glassformer.serve.limits import Limits
from glassformer.serve.models import Served
from glassformer.serve.run import make_config, open_socket
from tests.serve.models import chat_completer, classifier, filler, plain_completer


@contextmanager
def running(
    models: dict[str, Served],
    limits: Limits | None = None,
    access: Access | None = None,
    runs: Sequence[Path] = (),
) -> Iterator[str]:
    """The address of a server in a thread."""
    app = create_app(models, limits, access, runs)
    sock = open_socket("127.0.0.1", 0)
    server = uvicorn.Server(make_config(app))
    thread = threading.Thread(target=server.run, args=([sock],))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        sock.close()


def metric(address: str, name: str) -> float:
    """A figure of /metrics, over all its labels."""
    lines = httpx.get(f"{address}/metrics").text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"glassformer_{name}"))


def until(holds: Callable[[], bool]) -> None:
    for _ in range(400):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it never came true")


@pytest.fixture(scope="session")
def models() -> dict[str, Served]:
    path = Path("model")
    faces = {
        "en-de": load("en-de"),
        "stories": plain_completer(path),
        "talker": chat_completer(path),
        "blanks": filler(path),
        "mood": classifier(path),
    }
    return {name: Served(name, face) for name, face in faces.items()}


@pytest.fixture(scope="session")
def server(models: dict[str, Served]) -> Iterator[str]:
    with running(models) as address:
        yield address


@pytest.fixture
def endless() -> dict[str, Served]:
    """A model that never ends, as its end is no token, and has no limit of its own."""
    face = plain_completer(Path("model"), context=100_000)
    face.tokenizer.marks = type(face.tokenizer.marks)(start=1, ends=(10**6,))
    return {"stories": Served("stories", face)}
