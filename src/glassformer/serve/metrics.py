"""Counts of what the server did, as Prometheus reads them; hand-made, since a page of text is all that it takes."""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
Labels = tuple[tuple[str, str], ...]

HELP = {
    "requests_total": ("counter", "Requests by path and status."),
    "request_seconds": ("histogram", "From the first byte of a request to the last of its answer."),
    "refused_total": ("counter", "Requests for which the queue had no room."),
    "batches_total": ("counter", "Batches that a model ran."),
    "batch_items_total": ("counter", "Texts, recordings and the like in them."),
    "steps_total": ("counter", "Steps of a running batch of completions."),
    "step_rows_total": ("counter", "Tokens that these steps made, one a row."),
    "tokens_total": ("counter", "Tokens of prompts and of answers, where they are counted."),
    "queue_waiting": ("gauge", "Texts and completions that have not begun."),
    "rows_running": ("gauge", "Completions under way."),
}


class Metrics:
    """Safe to use from any thread."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.counts: defaultdict[str, defaultdict[Labels, float]] = defaultdict(lambda: defaultdict(float))
        self.times: defaultdict[Labels, list[float]] = defaultdict(lambda: [0.0] * (len(BUCKETS) + 2))
        self.gauges: dict[str, Callable[[], float]] = {}

    def add(self, name: str, n: float = 1, **labels: str) -> None:
        with self.lock:
            self.counts[name][tuple(labels.items())] += n

    def request(self, path: str, status: int, seconds: float) -> None:
        self.add("requests_total", path=path, status=str(status))
        with self.lock:
            row = self.times[(("path", path),)]
            for i, bound in enumerate(BUCKETS):
                row[i] += seconds <= bound
            row[-2] += 1
            row[-1] += seconds

    def batch(self, model: str, n: int) -> None:
        self.add("batches_total", model=model)
        self.add("batch_items_total", n, model=model)

    def step(self, model: str, n: int) -> None:
        self.add("steps_total", model=model)
        self.add("step_rows_total", n, model=model)

    def tokens(self, model: str, prompt: int, answer: int) -> None:
        self.add("tokens_total", prompt, model=model, kind="prompt")
        self.add("tokens_total", answer, model=model, kind="answer")

    def refused(self) -> None:
        self.add("refused_total")

    def text(self) -> str:
        gauges = {name: value() for name, value in self.gauges.items()}
        with self.lock:
            return "\n".join(self._lines(gauges)) + "\n"

    def _lines(self, gauges: dict[str, float]) -> Iterator[str]:
        for name, (kind, about) in HELP.items():
            full = f"glassformer_{name}"
            yield f"# HELP {full} {about}"
            yield f"# TYPE {full} {kind}"
            if kind == "gauge":
                yield f"{full} {gauges.get(name, 0):.15g}"
            elif kind == "counter":
                for labels, n in self.counts[name].items():
                    yield f"{full}{_shown(labels)} {n:.15g}"
            else:
                for labels, row in self.times.items():
                    for bound, n in zip((*map(str, BUCKETS), "+Inf"), row[:-1], strict=True):
                        yield f"{full}_bucket{_shown((*labels, ('le', bound)))} {n:.15g}"
                    yield f"{full}_sum{_shown(labels)} {row[-1]:.15g}"
                    yield f"{full}_count{_shown(labels)} {row[-2]:.15g}"


def _shown(labels: Labels) -> str:
    def quote(value: str) -> str:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{name}="{quote(value)}"' for name, value in labels) + "}" if labels else ""
