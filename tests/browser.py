"""Chromium for all tests of a process, driven by Playwright: one browser, and tabs.

Playwright has a loop of its own in a thread, so that tests may use asyncio as they like. What would leave this machine
is refused and remembered.
"""

import asyncio
import os
import re
import shutil
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
from playwright.async_api import Error, Page, Route, ViewportSize, async_playwright

CHROMIUM = next((p for name in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(name))), None)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
FOREIGN = re.compile(r"^(?!file:|data:|blob:|about:|http://(127\.0\.0\.1|localhost)[:/])")
SIZE = (1280, 900)
PATIENCE = 60  # seconds: the machine may be busy with other things

# WCAG's ratio of light between a text and what is under it, the least on the page.
CONTRAST = """(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const known = new Map(); // few pairs of colours, found often
  const light = (colour, under) => {
    const key = `${colour} ${under}`;
    if (known.has(key)) return known.get(key);
    for (const style of [under, colour]) { canvas.fillStyle = style; canvas.fillRect(0, 0, 1, 1); }
    const rgb = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((v) => v / 255);
    const found = rgb.map((v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
      .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
    return known.set(key, found), found;
  };
  const background = (node) => {
    const own = getComputedStyle(node).backgroundColor;
    return own === "rgba(0, 0, 0, 0)" && node.parentElement ? background(node.parentElement) : own;
  };
  const read = [...document.querySelectorAll("td, th, p, label, button, a, li span, .cell")]
    .filter((node) => node.offsetParent && node.innerText);
  return Math.min(...read.map((node) => {
    const back = background(node), pair = [light(getComputedStyle(node).color, back), light(back, back)];
    return (Math.max(...pair) + .05) / (Math.min(...pair) + .05);
  }));
})()"""

T = TypeVar("T")


def chromium_or_skip() -> str:
    """The browser's path. Without one the test is skipped, unless the environment says that it must be there."""
    if CHROMIUM is None:
        if os.environ.get("GLASSFORMER_BROWSER") == "required":
            pytest.fail("GLASSFORMER_BROWSER=required, but there is no Chromium on the path")
        pytest.skip("there is no Chromium on the path")
    return CHROMIUM


class Chromium:
    def __init__(self, *flags: str) -> None:
        path, self.loop = chromium_or_skip(), asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.playwright = self.wait(async_playwright().start())
        launched = self.playwright.chromium.launch(executable_path=path, args=[*FLAGS, *flags])
        self.browser = self.wait(launched)

    def wait(self, asked: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(asked, self.loop).result(2 * PATIENCE)

    @contextmanager
    def tab(self, **options: Any) -> Iterator["Tab"]:
        """A page that shares nothing with others; options are those of Playwright's new_context."""
        tab = self.wait(self._open_tab(options))
        try:
            yield tab
        finally:
            self.wait(tab.page.context.close())

    async def _open_tab(self, options: dict[str, Any]) -> "Tab":
        context = await self.browser.new_context(viewport=_viewport(*SIZE), **options)
        context.set_default_timeout(PATIENCE * 1000)
        tab = Tab(self, await context.new_page())
        await context.route(FOREIGN, tab.refuse)
        return tab

    def close(self) -> None:
        self.wait(self.browser.close())
        self.wait(self.playwright.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class Tab:
    """What a person does on a page, and what the page did: its complaints, its requests, and those refused."""

    def __init__(self, chromium: Chromium, page: Page) -> None:
        self.page, self.wait = page, chromium.wait
        self.shown = (*SIZE, False)  # which is what a new page has
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.refused: list[str] = []  # since they would have left this machine
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def forget(self) -> None:
        for seen in (self.complaints, self.requests, self.refused):
            seen.clear()
        self.size(*SIZE)

    async def refuse(self, route: Route) -> None:
        self.refused.append(route.request.url)
        await route.abort()

    def open(self, address: str) -> None:
        """From the beginning, also where only the part after # differs."""
        same = self.page.url.split("#")[0] == address.split("#")[0]
        self.wait(self.page.goto(address))
        if same:
            self.wait(self.page.reload())

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        return self.wait(self.page.evaluate(script))

    def until(self, script: str) -> None:
        """Asked again and again from here: Playwright's own way is one that a page's policy may forbid."""
        deadline = time.monotonic() + PATIENCE
        while not self._is_so(script):
            assert time.monotonic() < deadline, f"never {script}: {self.text('body')}"
            time.sleep(0.05)

    def _is_so(self, script: str) -> bool:
        try:
            return bool(self.run(script))
        except Error as error:
            if "context was destroyed" in error.message:  # the page is about to be another one
                return False
            raise

    def text(self, selector: str) -> str:
        """What is to be read there; nothing where there is no such place."""
        found = self.wait(self.page.query_selector_all(selector))
        return self.wait(found[0].inner_text()) if found else ""

    def texts(self, selector: str) -> list[str]:
        return self.wait(self.page.locator(selector).all_inner_texts())

    def click(self, selector: str, n: int = 0) -> None:
        """By script: where it lies on the screen is no matter."""
        self.wait(self.page.locator(selector).nth(n).dispatch_event("click"))

    def type(self, text: str, into: str | None = None) -> None:
        """As a keyboard does; into whatever has the focus if nothing is named."""
        if into is not None:
            self.wait(self.page.focus(into))
        self.wait(self.page.keyboard.insert_text(text))

    def press(self, key: str) -> None:
        self.wait(self.page.keyboard.press(key))

    def least_contrast(self) -> float:
        found: float = self.run(CONTRAST)
        return found

    def size(self, width: int, height: int, dark: bool = False) -> None:
        if self.shown[:2] != (width, height):  # to set it again takes its time
            self.wait(self.page.set_viewport_size(_viewport(width, height)))
        if self.shown[2] != dark:
            self.wait(self.page.emulate_media(color_scheme="dark" if dark else "light"))
        self.shown = (width, height, dark)


def _viewport(width: int, height: int) -> ViewportSize:
    return {"width": width, "height": height}


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    started = Chromium()
    yield started
    started.close()


@pytest.fixture(scope="session")
def _kept_tab(chromium: Chromium) -> Iterator[Tab]:
    with chromium.tab() as tab:
        yield tab


@pytest.fixture
def tab(_kept_tab: Tab) -> Iterator[Tab]:
    """One for all tests, since a new one takes longer than most of them: leave nothing in its storage."""
    _kept_tab.forget()
    yield _kept_tab
    assert _kept_tab.refused == []
