"""How a person sees the evaluation of a language model."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from glassformer.tasks.evaluate_complete import CompleteReport

WIDTH = 40  # characters of the longest bar


def explain_complete(model: str, report: "CompleteReport") -> Iterator[str]:
    """The report line by line: a bar a rung, so that one sees what each rung buys."""
    documents = f"{report.n_documents:,} document{'' if report.n_documents == 1 else 's'}"
    yield f"{model} on {', '.join(report.paths)}: {documents}, {report.n_bytes:,} bytes, {report.n_tokens:,} tokens."
    yield f"Context {report.context:,} tokens, sliding by {report.stride:,}."
    yield ""
    yield f"loss {report.loss:.4f} nats per token, perplexity {report.perplexity:.2f}"
    yield ""
    rows = [(row.name, row.bits_per_byte) for row in report.rungs] + [("this model", report.bits_per_byte)]
    longest = max(bits for _, bits in rows)
    yield f"{'bits per byte':<16}"
    for name, bits in rows:
        yield f"  {name:<14}{bits:>7.3f}  {'█' * max(1, round(WIDTH * bits / longest))}"
    if report.rungs:
        yield ""
        yield f"The rungs were fitted on {report.rungs_from} ({report.rungs[0].n_train_bytes:,} bytes)."
        best = min(report.rungs, key=lambda row: row.bits_per_byte)
        if best.bits_per_byte <= report.bits_per_byte:
            yield f"The model is no better than counting: {best.name}."
    else:
        yield "With --memory TRAIN_TEXT the rungs of the ladder stand beside it."
