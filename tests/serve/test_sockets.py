"""Raw bytes on the sockets: whatever comes, there is an answer or an end in bounded time, and the server goes on."""

import json
import random
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from glassformer.serve.limits import Limits
from glassformer.serve.models import Served
from glassformer.serve.protocol import CarefulProtocol
from tests.serve.conftest import running

PATIENCE = 20.0  # seconds until a connection counts as hanging; the server's own limits below are far shorter
ASK = {"model": "stories", "prompt": "the cat", "max_tokens": 3}
BODY = json.dumps(ASK).encode()
HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def sized(n: object, body: bytes = BODY, more: bytes = b"") -> bytes:
    return HEAD + more + f"Content-Length: {n}\r\n\r\n".encode() + body


@pytest.fixture(scope="module")
def address(models: dict[str, Served]) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        for what in ("head", "body", "idle"):
            patch.setattr(CarefulProtocol, f"{what}_seconds", 0.5)
        with running({"stories": models["stories"]}, Limits(body=100_000)) as found:
            yield found


def connect(address: str) -> socket.socket:
    host, port = address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


def tell(address: str, *parts: bytes, pause: float = 0.0, hang_up: bool = False) -> bytes:
    """All that the server says until it closes; a server that neither answers nor closes fails by its time."""
    said = b""
    with connect(address) as client:
        try:
            for part in parts:
                client.sendall(part)
                time.sleep(pause)
            if hang_up:
                return b""
            while got := client.recv(65536):
                said += got
        except (ConnectionResetError, BrokenPipeError):
            pass  # closing while we still send is an answer too
    return said


def check(said: bytes) -> None:
    """Nothing, or answers that blame the client and tell nothing of the machine."""
    for line in said.split(b"\r\n"):
        if line.startswith(b"HTTP/1.1 "):
            assert 200 <= int(line.split()[1]) < 500, said
    assert not any(secret in said for secret in (b"Traceback", b".py", b"/src/", b"site-packages", b"/tmp"))


def still_serves(address: str) -> None:
    answer = httpx.post(f"{address}/v1/completions", json=ASK, timeout=PATIENCE)
    assert answer.status_code == 200
    assert answer.json()["usage"]["total_tokens"] > 0


def test_random_bytes(address: str) -> None:
    draw = random.Random(5)
    starts = [b"", b"GET ", b"POST /v1/completions HTTP/1.1\r\n", HEAD, sized(len(BODY), b""), b"\x16\x03\x01\x02"]
    noise = [start + draw.randbytes(draw.choice((1, 40, 3000))) for start in starts for _ in range(5)]
    broken = []
    for _ in range(30):  # a good request with a few bytes changed
        request = bytearray(sized(len(BODY), more=b"Connection: close\r\n"))
        for _ in range(draw.randint(1, 4)):
            request[draw.randrange(len(request))] = draw.randrange(256)
        broken.append(bytes(request))
    with ThreadPoolExecutor(16) as pool:
        for said in pool.map(lambda given: tell(address, given), noise + broken):
            check(said)
    still_serves(address)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"G", b"408"),  # half a request, and then nothing
        (b"POST /v1/comple", b"408"),
        (HEAD, b"408"),
        (sized(len(BODY), BODY[:-1]), b"408"),
        (sized(10**15), b"413"),
        (sized(200_000, b""), b"413"),
        (sized(-5), b"400"),
        (sized("5e3"), b"400"),
        (sized("99999999999999999999999"), b"400"),
        (sized(5, more=b"Content-Length: 6\r\n"), b"400"),
        (sized(5, more=b"Transfer-Encoding: chunked\r\n"), b"400"),
        (sized(3), b"400"),  # cut in the middle; the rest is read as the next request
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1869f\r\n" + b"a" * 99_999 + b"\r\n5\r\naaaaa\r\n", b"413"),
        (b"GET / HTTP/1.1\r\nA: " + b"a" * 3_000_000, b"431"),
        (b"GET /" + b"a" * 3_000_000, b"431"),
        (b"GET / HTTP/1.1\r\n" + b"A: a\r\n" * 500_000, b"431"),
        (b"GET / HTTP/9.9\r\n\r\n", b"400"),
        (b"GET /%00%ff%2e%2e%2f HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"404"),
        (b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"),
        (b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"404"),
        (b"CONNECT x:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400"),
    ],
    ids=lambda given: given[:60].decode("latin-1") if len(given) > 3 else given.decode(),
)
def test_what_is_no_request_is_refused(address: str, request_: bytes, status: bytes) -> None:
    said = tell(address, request_)
    check(said)
    assert said.startswith(b"HTTP/1.1 " + status) or (not said and len(request_) > 10**6), said
    still_serves(address)


def test_a_slow_sender_is_not_waited_for(address: str) -> None:
    """Each byte comes before a silence would end, but the whole never comes."""
    began = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        request = sized(len(BODY))
        slow = [[request[i : i + 1] for i in range(len(request))], [sized(9000, b""), *([b" "] * 100)]] * 4
        for said in pool.map(lambda parts: tell(address, *parts, pause=0.1), slow):
            check(said)
    assert time.monotonic() - began < PATIENCE


def test_who_hangs_up_in_mid_body_leaves_nothing_behind(
    address: str, caplog: pytest.LogCaptureFixture, models: dict[str, Served]
) -> None:
    with caplog.at_level("ERROR"):
        for given in (sized(9000), HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab", sized(len(BODY)), HEAD):
            for _ in range(5):
                tell(address, given, hang_up=True)
        still_serves(address)
    assert not caplog.records
    metrics = httpx.get(f"{address}/metrics").text
    assert 'status="5' not in metrics


def test_requests_one_after_the_other_on_one_connection(address: str) -> None:
    """Two at once, then half of a third while the first are answered."""
    two = sized(len(BODY)) * 2
    said = tell(address, two + HEAD[:20])
    assert said.count(b"HTTP/1.1 200") == 2
    check(said)
    with connect(address) as client:  # an upgrade that nobody offers is an ordinary request
        client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        assert client.recv(4096).startswith(b"HTTP/1.1 200")
