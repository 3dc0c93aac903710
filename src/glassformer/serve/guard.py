"""Who may ask: keys and the names of this machine, looked at before anything of a body is read."""

from collections.abc import Sequence

from starlette.datastructures import Headers

from glassformer.serve.edge import App, Message, Receive, Send
from glassformer.serve.errors import ApiError, respond
from glassformer.serve.hub import Hub

# LibreTranslate's clients send the key in the body: its own paths look for it there.
GUARDED = ("/v1/", "/api/", "/metrics")


class Guard:
    """An ASGI application around another; inside CORS, as a browser asks without a key whether it may ask."""

    def __init__(self, app: App, hub: Hub, hosts: Sequence[str] = ("*",)) -> None:
        self.app, self.hub = app, hub
        self.hosts = [host.lower() for host in hosts]

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        error = self._wrong_with(scope) if scope["type"] == "http" else None
        if error is not None:
            await respond(scope["path"], error)(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _wrong_with(self, scope: Message) -> ApiError | None:
        headers = Headers(scope=scope)
        # Another site's name that leads to this machine is a trick to read what it may not.
        if "*" not in self.hosts and not self._is_ours(headers.get("host", "")):
            return ApiError(400, "The server is not asked by this name.", "Its --allow-host adds a name.")
        if scope["path"].startswith(GUARDED) and not self.hub.knows_key(key_in(headers)):
            return ApiError(
                401,
                "The API key is missing or wrong.",
                "Send it as Authorization: Bearer KEY.",
                code="invalid_api_key",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return None

    def _is_ours(self, host: str) -> bool:
        """With or without a port; `*.example.org` stands for all names that end so."""
        begin, bracket, _ = host.lower().partition("]")  # [::1]:8000
        name = begin + bracket if bracket else begin.partition(":")[0]
        return any(name == ours or (ours.startswith("*.") and name.endswith(ours[1:])) for ours in self.hosts)


def key_in(headers: Headers) -> str | None:
    """As X-API-Key, or as Authorization: Bearer."""
    scheme, _, key = headers.get("authorization", "").strip().partition(" ")
    return headers.get("x-api-key") or (key.strip() if scheme.lower() == "bearer" else None)
