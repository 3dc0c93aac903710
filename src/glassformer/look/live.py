"""The page served on this machine: what the reader types is computed anew. Only this machine can ask."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from urllib.parse import parse_qs, urlsplit

from glassformer.errors import UserError, require
from glassformer.look.page import POLICY, make_page
from glassformer.look.scene import look_at
from glassformer.look.subject import LookOptions
from glassformer.tasks.model_dir import LoadedModel

HERE = "127.0.0.1"
PATIENCE = 60.0  # seconds that a connection may be silent
LIVE_POLICY = POLICY.replace("form-action 'none'", "form-action 'self'")


def answer_query(
    loaded: LoadedModel, name: str, options: LookOptions, ablate: bool | None, texts: list[str], example: str
) -> tuple[int, str]:
    """Status and page for what was typed: one text, two to compare, or what is wrong with them."""
    given = [text for text in texts if text.strip()] or [example]
    try:
        scenes = [look_at(loaded, text, options) for text in given[:2]]
    except UserError as error:
        return 400, _wrong(error, given)
    return 200, make_page(name, loaded.task, scenes, ablate, form(given), LIVE_POLICY)


def form(texts: list[str]) -> str:
    first, second = ([*texts, "", ""])[:2]
    return f"""<form class="live" method="get" action="/" aria-label="Another input">
<label>input <input name="text" value="{escape(first, quote=True)}" required></label>
<label>to compare with <input name="text" value="{escape(second, quote=True)}"></label>
<button>Look</button>
</form>"""


def _wrong(error: UserError, texts: list[str]) -> str:
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{LIVE_POLICY}">
<title>Not understood · Glassformer</title><p role="alert">{escape(str(error))}</p>{form(texts)}</html>"""


def make_server(port: int, answer: Callable[[list[str]], tuple[int, str]]) -> ThreadingHTTPServer:
    """The model answers one request at a time, and nobody waits for a connection that asks nothing; port 0 takes a
    free one.
    """
    lock = Lock()

    def answer_alone(texts: list[str]) -> tuple[int, str]:
        with lock:
            return answer(texts)

    require(0 <= port < 1 << 16, f"The port is {port}.", "Give a number up to 65535.")
    try:
        return ThreadingHTTPServer((HERE, port), partial(_Handler, answer_alone))
    except OSError as error:
        raise UserError(f"Port {port} cannot be used: {error.strerror or error}.", "Give another --port.") from None


class _Handler(BaseHTTPRequestHandler):
    timeout = PATIENCE

    def __init__(self, answer: Callable[[list[str]], tuple[int, str]], *given: object) -> None:
        self.answer = answer
        super().__init__(*given)  # type: ignore[arg-type]

    def handle(self) -> None:
        with suppress(ConnectionError):  # the reader went on before the page was there
            super().handle()

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        host = (self.headers.get("Host") or "").rsplit(":", 1)[0]
        if host not in (HERE, "localhost") or asked.path != "/":  # another name may be another site's trick
            self.send_error(404)
            return
        status, page = self.answer(parse_qs(asked.query).get("text", []))
        body = page.encode("utf-8")
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: what is asked is the reader's own."""
