"""Training runs over HTTP: listed by name, shown as `look --training` shows them, and nothing else of the machine."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from glassformer.errors import UserError
from glassformer.look.subject import LookOptions
from glassformer.look.training import make_training_page
from glassformer.serve.app import Access
from glassformer.serve.models import Served
from glassformer.serve.runs import check_folders, find_runs
from tests.serve.conftest import running
from tests.serve.models import plain_completer


def write_run(folder: Path, n: int = 3) -> Path:
    folder.mkdir(parents=True)
    entries = [{"step": 10 * i, "loss": 3.0 / (i + 1), "lr": 0.001} for i in range(n)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_run(tmp_path / "runs" / "first")
    write_run(tmp_path / "runs" / "stories")
    (tmp_path / "runs" / "empty").mkdir()
    (tmp_path / "secret").mkdir()
    return tmp_path


@pytest.fixture
def models(folder: Path) -> dict[str, Served]:
    return {"stories": Served("stories", plain_completer(write_run(folder / "model")))}


@pytest.fixture
def address(models: dict[str, Served], folder: Path) -> Iterator[str]:
    with running(models, access=Access(keys=["k"]), runs=[folder / "runs", folder / "model"]) as found:
        yield found


def test_runs_are_found_by_name(models: dict[str, Served], folder: Path) -> None:
    found = find_runs(models, [folder / "runs", folder / "model", folder / "runs" / "first", folder / "gone"])
    assert found == {
        "stories": folder / "model",
        "first": folder / "runs" / "first",
        "runs/stories": folder / "runs" / "stories",  # the name is taken
    }
    with pytest.raises(UserError, match="no folder with training runs"):
        check_folders([folder / "nowhere"])


def test_a_run_is_shown_as_look_shows_it(address: str, folder: Path) -> None:
    with httpx.Client(base_url=address, headers={"Authorization": "Bearer k"}) as client:
        listed = client.get("/api/runs").json()
        assert {run["name"]: run["served"] for run in listed} == {
            "stories": True,
            "first": False,
            "runs/stories": False,
        }
        page = client.get("/api/training", params={"run": "runs/stories"})
        shown = make_training_page(folder / "runs" / "stories", None, LookOptions(), name="runs/stories")
        assert page.text == shown
        assert "<h1>The training of runs/stories</h1>" in shown
        for name in ("secret", "empty", "../secret", str(folder / "runs" / "first"), "first/", ".", ""):
            answer = client.get("/api/training", params={"run": name})
            assert answer.status_code == 404
            assert name == str(folder / "runs" / "first") or str(folder) not in answer.text
        write_run(folder / "runs" / "newest", n=1)  # begins while the server runs
        assert client.get("/api/runs").json()[0]["name"] == "newest"
        (folder / "runs" / "newest" / "metrics.jsonl").write_text("")
        broken = client.get("/api/training", params={"run": "newest"})
        assert broken.status_code == 400
        assert broken.json()["error"] == "The run 'newest' holds no metrics.jsonl with entries."
    assert httpx.get(f"{address}/api/runs").status_code == 401
    assert httpx.get(f"{address}/api/training?run=first").status_code == 401
