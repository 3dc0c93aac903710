"""How well a language model knows a text: bits per byte and perplexity, beside the rungs of the ladder.

The window slides by `stride` tokens, so that each token is predicted from at least `context - stride` before it (the
beginning of a document aside). Deliberately not here: how a person sees it.

b batch, n width of the window, r tokens that count
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer.data.documents import DocumentFiles, check_documents, read_documents
from glassformer.data.store import TokenStore
from glassformer.errors import require
from glassformer.ladder.baselines import MOST_BYTES, LanguageRow, language_rungs
from glassformer.model import DecoderOnly
from glassformer.tasks.completer import Completer
from glassformer.tasks.text import encoded
from glassformer.train.loss import PIECE

ROWS, TOKENS = 16, 8192  # windows at a time, and tokens in them: wide ones come alone
MOST_TEST = 1_000_000  # bytes that the rungs are measured on
DEFAULT_CONTEXT = 1024  # where nothing limits a model


@dataclass(frozen=True)
class CompleteReport:
    """All that was measured: plain data, ready for JSON."""

    paths: tuple[str, ...]
    engine: str
    n_documents: int
    n_bytes: int
    n_tokens: int
    context: int
    stride: int
    loss: float  # nats per token
    perplexity: float  # per token
    bits_per_byte: float
    rungs: tuple[LanguageRow, ...]
    rungs_from: str  # what the rungs were fitted on; empty: there was nothing


def evaluate_complete(
    completer: Completer,
    files: DocumentFiles,
    training: DocumentFiles | None = None,
    stride: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005
) -> CompleteReport:
    """Measure the model on all of the files, and the rungs fitted on `training`, or on what the run has left."""
    found = check_documents(files)
    context = completer.context or DEFAULT_CONTEXT
    stride = max(1, context // 2) if stride is None else stride
    require(1 <= stride <= context, f"The stride is {stride}, but the context {context}.", f"Give from 1 to {context}.")
    documents = [np.asarray(ids, dtype=np.int64) for ids in _documents(completer, files)]
    total = sum(len(ids) - 1 for ids in documents)
    log_p, done = 0.0, 0
    for ids in documents:
        for summed, n in _measured(completer.model, ids, context, stride):
            log_p, done = log_p + summed, done + n
            progress(done, total)
    loss = -log_p / total
    learned, where = _training_text(completer, training)
    test = "".join(part.text for part in read_documents(files)).encode()[:MOST_TEST]
    return CompleteReport(
        paths=tuple(map(str, files.paths)),
        engine=completer.engine,
        n_documents=found.n_documents,
        n_bytes=found.n_bytes,
        n_tokens=total,
        context=context,
        stride=stride,
        loss=loss,
        perplexity=math.exp(min(loss, 700.0)),
        bits_per_byte=-log_p / found.n_bytes / math.log(2),
        rungs=tuple(language_rungs(learned, test)) if learned else (),
        rungs_from=where,
    )


def _documents(completer: Completer, files: DocumentFiles) -> Iterator[list[int]]:
    """Each document's tokens; one without a start mark begins with what texts follow on: an end."""
    marks = completer.tokenizer.marks
    before = [] if marks.start is not None else [marks.ends[0]]
    current = list(before)
    for ids, ends in encoded(read_documents(files), completer.tokenizer):
        current += ids
        if ends:
            yield current
            current = list(before)


@torch.inference_mode()
def _measured(model: DecoderOnly, ids: NDArray[np.int64], context: int, stride: int) -> Iterator[tuple[float, int]]:
    """Summed log-probabilities of a document's tokens after its first, a few windows at a time."""
    n = len(ids) - 1  # tokens to predict: ids[1:]
    device = next(model.parameters()).device
    # Begin, end, and the first place that counts; all are as wide as the first, as none but a lone one is narrower.
    windows = [(0, min(context, n), 0)]
    while windows[-1][1] < n:
        seen = windows[-1][1]
        end = min(seen + stride, n)
        windows.append((end - context, end, seen))
    n_rows = max(1, min(ROWS, TOKENS // windows[0][1]))
    for i in range(0, len(windows), n_rows):
        part = windows[i : i + n_rows]
        rows = torch.from_numpy(np.stack([ids[begin : end + 1] for begin, end, _ in part])).to(device)
        states, answers = model.states(rows[:, :-1]), rows[:, 1:]
        counted = [(j, first - begin) for j, (begin, _, first) in enumerate(part)]
        summed = _log_p(
            model,
            torch.cat([states[j, first:] for j, first in counted]),
            torch.cat([answers[j, first:] for j, first in counted]),
        )
        yield summed, sum(end - first for _, end, first in part)


def _log_p(model: DecoderOnly, states: Tensor, answers: Tensor) -> float:
    """The answers' log-probabilities, summed; scores of all of them at once would be too much for the memory."""
    total, step = 0.0, max(1, PIECE // model.settings.source.vocab_size)
    for x, right in zip(torch.split(states, step), torch.split(answers, step), strict=True):
        scores = model.head(x[None])[0].float()  # (r, N)
        log_p = scores.gather(1, right[:, None])[:, 0] - scores.logsumexp(dim=1)
        total += float(log_p.double().sum())
    return total


def _training_text(completer: Completer, training: DocumentFiles | None) -> tuple[bytes, str]:
    """The text that the rungs are fitted on: what is given, or the training tokens that lie in the run's folder."""
    if training is not None:
        text, n = [], 0
        for part in read_documents(training):
            text.append(part.text.encode())
            n += len(text[-1])
            if n >= MOST_BYTES:
                break
        return b"".join(text), ", ".join(map(str, training.paths))
    path = completer.loaded.path / "data" / "train"
    if not path.with_name("train.ids").exists():
        return b"", ""
    ids = TokenStore(path).ids[:MOST_BYTES].tolist()
    return completer.tokenizer.decode(ids).encode()[:MOST_BYTES], "the model's own training text"
