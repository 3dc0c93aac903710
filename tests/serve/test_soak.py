"""Half a minute of mixed load (`python -m benchmarks.serve --soak` is the long form): nothing grows, all is closed."""

import asyncio
from pathlib import Path

import pytest

from benchmarks.serve import QUIET, running
from benchmarks.serve_soak import soak
from glassformer.tasks.model_dir import save_model
from tests.serve.models import plain_completer

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="processes are watched through /proc")


@pytest.mark.slow
def test_memory_stays_flat_and_files_are_closed(tmp_path: Path) -> None:
    loaded = plain_completer(tmp_path).loaded
    save_model(tmp_path / "lm", "complete", loaded.model, loaded.tokenizer, about=loaded.about)
    with running(["glassformer.cli.main", "serve", "en-de", "digits", str(tmp_path / "lm"), *QUIET]) as (port, pid):
        found = asyncio.run(soak(pid, port, minutes=0.5))
    assert found["wrong"] == 0
    assert sum(found["done"].values()) > 100
    assert found["after"]["files"] <= found["before"]["files"]
    assert found["threads"]["last quarter"] <= found["threads"]["second quarter"] + 2  # asyncio's own helpers
    assert found["memory_mb"]["last quarter"] < found["memory_mb"]["second quarter"] + 40
