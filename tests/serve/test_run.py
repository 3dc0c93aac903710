"""The socket of the server."""

import asyncio
import socket

import pytest

from glassformer.errors import UserError
from glassformer.serve.run import address, is_loopback, open_socket


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


def test_a_port_that_is_taken_is_said() -> None:
    with open_socket("127.0.0.1", 0) as taken:
        taken.listen()
        assert address(taken) == f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UserError, match="cannot be used"):
            open_socket("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(UserError, match="port is 70000"):
        open_socket("127.0.0.1", 70000)


def test_loopback() -> None:
    assert is_loopback("localhost")
    assert is_loopback("127.0.0.2")
    assert is_loopback("::1")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("example.org")
