"""The server as a process: SIGTERM or Ctrl-C lets it finish what is under way; nothing new is taken."""

import ipaddress
import socket
from collections.abc import Callable

import uvicorn

from glassformer.errors import UserError, require
from glassformer.serve.edge import App
from glassformer.serve.log import log_to_stderr
from glassformer.serve.protocol import CarefulProtocol

BACKLOG = 2048  # connections that wait to be taken


def open_socket(host: str, port: int) -> socket.socket:
    """Port 0 takes a free one."""
    require(0 <= port < 1 << 16, f"The port is {port}.", "Give a number up to 65535.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once (TCP_NODELAY) only where the protocol is named; else each waits 40 ms.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        raise _taken(host, port, error) from None
    return found


def _taken(host: str, port: int, error: OSError) -> UserError:
    why = error.strerror or error
    return UserError(f"{host} port {port} cannot be used: {why}.", "Give another --host or --port.")


def address(sock: socket.socket) -> str:
    host, port = sock.getsockname()[:2]
    return f"http://{_in_address(host)}:{port}"


def names_of(host: str) -> list[str]:
    """The names by which a server at this address is asked; one that others reach may have any."""
    return ["localhost", "127.0.0.1", "[::1]", _in_address(host)] if is_loopback(host) else ["*"]


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()


def make_config(app: App, seconds: float = 600.0) -> uvicorn.Config:
    """How uvicorn serves it; what is under way when a signal comes has so many seconds."""
    return uvicorn.Config(
        app,
        http=CarefulProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nothing here depends on who asks
        timeout_graceful_shutdown=int(seconds),
    )


def run(app: App, sock: socket.socket, seconds: float, ready: Callable[[], None], quiet: bool = False) -> None:
    """Until a signal comes."""
    try:
        sock.listen(BACKLOG)  # another may have taken the port while the models were read
    except OSError as error:
        host, port = sock.getsockname()[:2]
        sock.close()
        raise _taken(host, port, error) from None
    if not quiet:
        log_to_stderr()
    _Server(make_config(app, seconds), ready).run([sock])
