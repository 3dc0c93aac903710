"""One site for all tests of a process."""

from pathlib import Path

import pytest

from glassformer.learn.site import write_site


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_site(tmp_path_factory.mktemp("site"))
