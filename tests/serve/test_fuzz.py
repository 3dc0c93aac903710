"""Our OpenAPI, fuzzed: whatever fits it, and whatever does not, there is no failure of the server."""

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

# What is asked for stays small; how much is tried is the profile's.
PATHS = ("/api/", "/v1/")


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_nothing_that_fits_the_description_breaks_the_server(server: str) -> None:
    described = httpx.get(f"{server}/openapi.json").json()
    schema = schemathesis.openapi.from_dict(described)
    n_tried = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        if not operation.path.startswith(PATHS):
            continue

        @settings(max_examples=25, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy())
        def try_out(case: schemathesis.Case) -> None:
            nonlocal n_tried
            n_tried += 1
            answer = case.call(base_url=server, timeout=60)
            assert answer.status_code < 500, (case.operation.path, answer.text[:200])
            assert "Traceback" not in answer.text

        try_out()
    assert n_tried > 150
