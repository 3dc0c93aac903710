"""The socket of the server."""

import asyncio
import socket

import pytest

from glassformer.errors import UserError
from glassformer.serve.run import address, is_loopback, names_of, open_socket, run


def test_small_answers_are_sent_at_once() -> None:
    """asyncio's own loop, whatever else is installed."""
    seen: list[int] = []

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sock = writer.get_extra_info("socket")
        seen.append(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    async def ask() -> None:
        sock = open_socket("127.0.0.1", 0)
        async with await asyncio.start_server(accept, sock=sock):
            reader, writer = await asyncio.open_connection(*sock.getsockname())
            await reader.read()
            writer.close()
            await writer.wait_closed()

    asyncio.run(ask())
    assert seen
    assert all(seen)


async def nothing(*_: object) -> None:
    """An application that nobody comes to."""


def test_a_port_that_is_taken_is_said() -> None:
    with open_socket("127.0.0.1", 0) as taken:
        taken.listen()
        assert address(taken) == f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UserError, match="cannot be used"):
            open_socket("127.0.0.1", taken.getsockname()[1])
    with open_socket("127.0.0.1", 0) as first, open_socket("127.0.0.1", first.getsockname()[1]) as second:
        first.listen()  # while the second was reading its models
        with pytest.raises(UserError, match="cannot be used"):
            run(nothing, second, 1, lambda: None, quiet=True)
    with pytest.raises(UserError, match="port is 70000"):
        open_socket("127.0.0.1", 70000)


def test_loopback() -> None:
    assert is_loopback("localhost")
    assert is_loopback("127.0.0.2")
    assert is_loopback("::1")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("example.org")


@pytest.mark.parametrize("host", ["127.0.0.2", "::1", "localhost", "127.0.0.1"])
def test_the_address_that_is_told_is_one_that_is_answered(host: str) -> None:
    with open_socket(host, 0) as sock:
        name = address(sock).removeprefix("http://").rpartition(":")[0]
    assert name in names_of(host)
    assert "*" not in names_of(host)
    assert names_of("0.0.0.0") == ["*"]
