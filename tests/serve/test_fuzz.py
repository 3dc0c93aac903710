"""Our OpenAPI, fuzzed: whatever fits it, and whatever does not, there is no failure of the server."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from glassformer.serve.models import Served
from tests.serve.conftest import running
from tests.serve.models import picture_classifier

N_TRIED = 15  # of each kind for each path


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_nothing_that_fits_the_description_or_does_not_breaks_the_server(
    models: dict[str, Served], tmp_path: Path
) -> None:
    pictures = Served("pictures", picture_classifier(tmp_path))
    with running({**models, "pictures": pictures}) as server:
        schema = schemathesis.openapi.from_dict(httpx.get(f"{server}/openapi.json").json())
        tried: dict[str, set[int]] = {}
        for operation in (result.ok() for result in schema.get_all_operations()):
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                try_out(operation, mode, server, tried)
        metrics = httpx.get(f"{server}/metrics").text
    assert {"/v1/completions", "/api/look", "/translate", "/health"} <= tried.keys()
    assert {200, 400, 404} <= set.union(*tried.values())
    assert 'status="5' not in metrics


def try_out(operation: Any, mode: GenerationMode, server: str, tried: dict[str, set[int]]) -> None:
    @settings(max_examples=N_TRIED, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: schemathesis.Case) -> None:
        answer = case.call(base_url=server, timeout=60)
        tried.setdefault(operation.path, set()).add(answer.status_code)
        assert answer.status_code < 500, (case.operation.path, answer.text[:200])
        assert not any(secret in answer.text for secret in ("Traceback", "site-packages", "/src/"))

    with suppress(Unsatisfiable):  # of what takes nothing there is nothing wrong to be asked
        ask()
