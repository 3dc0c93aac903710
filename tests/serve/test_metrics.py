"""Figures as Prometheus reads them."""

from glassformer.serve.metrics import Metrics


def figures(metrics: Metrics) -> dict[str, float]:
    lines = (line for line in metrics.text().splitlines() if not line.startswith("#"))
    return {name: float(n) for name, _, n in (line.rpartition(" ") for line in lines)}


def test_a_counter_goes_on_past_a_million() -> None:
    metrics = Metrics()
    for n in (12_345_678, 1):
        metrics.tokens("m", n, 0)
    metrics.request("/health", 200, 1_234_567.25)
    found = figures(metrics)
    assert found['glassformer_tokens_total{model="m",kind="prompt"}'] == 12_345_679
    assert found['glassformer_request_seconds_sum{path="/health"}'] == 1_234_567.25
