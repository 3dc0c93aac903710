"""Chromium by its DevTools protocol over two pipes; the standard library is enough."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest

_LAUNCH = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
CHROMIUM = next((p for name in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(name))), None)


def chromium_or_skip() -> str:
    """The browser's path. Without one the test is skipped, unless the environment says that it must be there."""
    if CHROMIUM is None:
        if os.environ.get("GLASSFORMER_BROWSER") == "required":
            pytest.fail("GLASSFORMER_BROWSER=required, but there is no Chromium on the path")
        pytest.skip("there is no Chromium on the path")
    return CHROMIUM


class Browser:
    """One page; keeps all console messages, exceptions and requests."""

    def __init__(self, path: str, profile: Path) -> None:
        to_read, self._to_browser = os.pipe()
        self._from_browser, to_write = os.pipe()
        # The protocol wants them as 3 and 4; a small program puts them there, since a fork among threads is unsafe.
        given = [fcntl.fcntl(pipe, fcntl.F_DUPFD, 10) for pipe in (to_read, to_write)]
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-c", _LAUNCH, *map(str, given)),
                *(path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
                *("--disable-background-networking", "--disable-component-update", "--no-first-run"),
                *("--hide-scrollbars", "--force-color-profile=srgb"),
                *(f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"),
            ],
            pass_fds=given,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for pipe in (to_read, to_write, *given):
            os.close(pipe)
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and wait for its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            block = os.read(self._from_browser, 2**16)
            assert block, "Chromium has gone"
            self._rest += block
        line, self._rest = self._rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        return message

    def open(self, address: str) -> None:
        self.call("Page.navigate", url=address)
        self.wait_until(lambda: self.run("document.readyState") == "complete" and self.run("location.href") == address)

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_until(self, true: Callable[[], bool]) -> None:
        for _ in range(500):
            if true():
                return
            time.sleep(0.02)
        raise AssertionError("The page did not come to what was waited for")

    def type(self, text: str) -> None:
        """Into whatever has the focus, as a keyboard does."""
        self.call("Input.insertText", text=text)

    def press(self, key: str, code: int, text: str = "") -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text)

    def size(self, width: int, height: int, dark: bool = False) -> None:
        phone = width < 600
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def photograph(self, path: Path) -> None:
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self) -> list[str]:
        """Whatever the console was told, and all exceptions."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(e["params"]) for e in self.events if e.get("method") in kinds]

    def requests(self) -> list[str]:
        sent = [e for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [e["params"]["request"]["url"] for e in sent]

    def close(self) -> None:
        try:
            self._session = None
            self.call("Browser.close")
        finally:
            os.close(self._to_browser)
            os.close(self._from_browser)
            self.process.wait(timeout=20)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
