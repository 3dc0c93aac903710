"""Training runs that the page shows: those of the served models, and of folders that the server was given.

A run is asked for by its name in a list; no path of a request reaches the file system.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from glassformer.errors import UserError, require
from glassformer.look.subject import LookOptions
from glassformer.look.training import make_training_page
from glassformer.serve.errors import ApiError
from glassformer.serve.hub import Hub
from glassformer.serve.models import Served

METRICS = "metrics.jsonl"


def routes(hub: Hub, folders: Sequence[Path]) -> APIRouter:
    router = APIRouter(prefix="/api", tags=["Glassformer"])

    @router.get("/runs")
    def runs() -> list[dict[str, Any]]:
        """Names of training runs, the newest first."""
        found = find_runs(hub.models, folders)
        changed = {name: (folder / METRICS).stat().st_mtime for name, folder in found.items()}
        names = sorted(found, key=lambda name: -changed[name])
        return [{"name": name, "served": name in hub.models, "changed": int(changed[name])} for name in names]

    @router.get("/training", response_class=HTMLResponse)
    def training(run: str) -> HTMLResponse:
        """One offline HTML file with the curves of a run, as `glassformer look --training` writes it."""
        folder = find_runs(hub.models, folders).get(run)
        if folder is None:
            raise ApiError(404, f"There is no training run {run[:80]!r}.", "See /api/runs.")
        try:
            page = make_training_page(folder, None, LookOptions(), name=run)
        except UserError as error:
            raise ApiError(400, error.message.replace(str(folder), f"The run {run!r}")) from None
        return HTMLResponse(page, headers={"X-Content-Type-Options": "nosniff"})

    return router


def check_folders(folders: Sequence[Path]) -> None:
    for folder in folders:
        require(folder.is_dir(), f"{folder} is no folder with training runs.", "Name one that trainings write into.")


def find_runs(models: Mapping[str, Served], folders: Sequence[Path]) -> dict[str, Path]:
    """Looked for each time, since trainings begin and end while the server runs."""
    found = {name: served.loaded.path for name, served in models.items() if (served.loaded.path / METRICS).is_file()}
    known = {path.resolve() for path in found.values()}
    for folder in folders:
        for run in sorted([folder, *folder.iterdir()] if folder.is_dir() else []):
            if (run / METRICS).is_file() and run.resolve() not in known:
                known.add(run.resolve())
                name = run.resolve().name
                found[name if name not in found else f"{run.resolve().parent.name}/{name}"] = run
    return found
