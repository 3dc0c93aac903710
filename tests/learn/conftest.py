"""One site and one browser for all tests of a process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from glassformer.learn.site import write_site
from tests.learn.browser import Browser, chromium_or_skip


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="session")
def started_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(chromium_or_skip(), tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def browser(started_browser: Browser) -> Browser:
    started_browser.size(1280, 900)
    started_browser.open("about:blank")
    started_browser.events.clear()
    return started_browser
