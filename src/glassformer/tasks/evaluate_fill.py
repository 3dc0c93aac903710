"""How well a model fills blanks, beside guesses by counting: the commonest token, and the neighbours' favourites.

15 % of the tokens are hidden, all by the mask. The counting guesses see both true neighbours, even where those are
hidden from the model. Deliberately not here: how a person sees it.

r blanks, N vocabulary
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from glassformer.data.documents import DocumentFiles, check_documents, read_documents
from glassformer.data.masking import make_masking
from glassformer.data.store import TokenStore
from glassformer.errors import require
from glassformer.tasks.fill import framed
from glassformer.tasks.filler import Filler
from glassformer.tasks.text import encoded

Ids = NDArray[np.int64]
Shares = NDArray[np.float64]
SHARE, TOP = 0.15, 5
WIDTH = 128  # where the model does not say what it was trained on
ROWS = 16
MOST_TEST, MOST_TRAIN = 200_000, 20_000_000  # tokens
TRUST = 0.9  # in what was seen after a token, against what is common anywhere


@dataclass(frozen=True)
class Guessing:
    """How well the hidden tokens were guessed."""

    name: str
    accuracy: float
    in_top: float  # the truth is among the five best
    perplexity: float


@dataclass(frozen=True)
class FillReport:
    """All that was measured: plain data, ready for JSON."""

    paths: tuple[str, ...]
    n_tokens: int
    n_blanks: int
    guessers: tuple[Guessing, ...]  # the model comes last
    counted_on: str  # what the others were counted on; empty: there was nothing


def evaluate_fill(
    filler: Filler,
    files: DocumentFiles,
    training: DocumentFiles | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005
) -> FillReport:
    """Hide tokens of the text and let the model and the counts guess them."""
    check_documents(files)
    tokenizer = filler.tokenizer
    stream = _stream(files, filler, MOST_TEST)
    width = min(int(filler.loaded.about.get("context", WIDTH)), filler.context or WIDTH) - 2
    n = len(stream) // width if len(stream) >= width else 1
    ids = framed(stream[: n * width].reshape(n, -1), tokenizer.marks)
    chosen = make_masking(tokenizer, SHARE).choose(ids, np.random.default_rng(0))
    answers = ids[chosen]
    ranks, log_p = np.zeros(0, dtype=np.int64), np.zeros(0)
    for i in range(0, n, ROWS):
        found = _model_guesses(filler, ids[i : i + ROWS], chosen[i : i + ROWS])
        ranks, log_p = np.append(ranks, found[0]), np.append(log_p, found[1])
        progress(min(i + ROWS, n), n)
    guessers = [_guessing("this model", ranks, log_p)]
    learned, where = _training(filler, training)
    if len(learned):
        counts = Neighbours(learned, len(filler.fitting[True]))
        left, right = np.roll(ids, 1, axis=1)[chosen], np.roll(ids, -1, axis=1)[chosen]
        guessers = [*counts.guess(left, answers, right), *guessers]
    return FillReport(tuple(map(str, files.paths)), int(stream.size), len(answers), tuple(guessers), where)


class Neighbours:
    """Counts of tokens and of pairs of tokens, and what they would guess."""

    def __init__(self, stream: Ids, n_words: int) -> None:
        self.common = (np.bincount(stream, minlength=n_words) + 1) / (len(stream) + n_words)
        keys, counts = np.unique(stream[:-1] * n_words + stream[1:], return_counts=True)
        first, second = keys // n_words, keys % n_words
        self.after = _Table(first, second, counts, n_words)
        by_second = np.argsort(second, kind="stable")
        self.before = _Table(second[by_second], first[by_second], counts[by_second], n_words)
        self.n_first = np.bincount(stream[:-1], minlength=n_words)

    def guess(self, left: Ids, answers: Ids, right: Ids) -> list[Guessing]:
        """The commonest token, the commonest after the left neighbour, the likeliest between both."""
        rows: dict[str, list[tuple[int, float]]] = {"unigram": [], "bigram": [], "both neighbours": []}
        for before, answer, after in zip(left.tolist(), answers.tolist(), right.tolist(), strict=True):
            then = self._after(before)
            between = then * self._leads_to(after)
            for name, p in zip(rows, (self.common, then, between / between.sum()), strict=True):
                ahead = int((p > p[answer]).sum()) + int((p[:answer] == p[answer]).sum())  # of equals, the first
                rows[name].append((ahead, float(np.log(p[answer]))))
        return [_guessing(name, *map(np.array, zip(*found, strict=True))) for name, found in rows.items()]

    def _after(self, before: int) -> Shares:
        """p(word | the one before)."""
        seen, counts = self.after[before]
        p = (1 - TRUST) * self.common
        if len(seen):
            p[seen] += TRUST * counts / counts.sum()
        else:
            p = self.common.copy()
        return p

    def _leads_to(self, after: int) -> Shares:
        """p(the one after | word), for each word."""
        seen, counts = self.before[after]
        p = np.full(len(self.common), (1 - TRUST) * self.common[after])
        p[seen] += TRUST * counts / self.n_first[seen]
        return p


class _Table:
    """Partners and counts by token, from sorted columns."""

    def __init__(self, keys: Ids, partners: Ids, counts: Ids, n_words: int) -> None:
        self.partners, self.counts = partners, counts
        self.begins = np.searchsorted(keys, np.arange(n_words + 1))

    def __getitem__(self, token: int) -> tuple[Ids, Ids]:
        part = slice(self.begins[token], self.begins[token + 1])
        return self.partners[part], self.counts[part]


@torch.inference_mode()
def _model_guesses(filler: Filler, ids: Ids, chosen: NDArray[np.bool_]) -> tuple[Ids, Shares]:
    """The rank of each hidden token, 0 for the best, and its log-probability."""
    device, mark = next(filler.model.parameters()).device, filler.tokenizer.marks.mask
    assert mark is not None
    seen = torch.from_numpy(np.where(chosen, mark, ids)).to(device)
    head, states = filler.model.head, filler.model.states(seen).x[torch.from_numpy(chosen).to(device)]
    log_p = head(states).float().log_softmax(dim=-1).cpu()
    right = log_p.gather(1, torch.from_numpy(ids[chosen])[:, None])
    return (log_p > right).sum(dim=1).numpy(), right[:, 0].double().numpy()


def _guessing(name: str, ranks: Ids, log_p: Shares) -> Guessing:
    return Guessing(
        name,
        accuracy=float((ranks == 0).mean()),
        in_top=float((ranks < TOP).mean()),
        perplexity=math.exp(min(-float(log_p.mean()), 700.0)),
    )


def _stream(files: DocumentFiles, filler: Filler, most: int) -> Ids:
    """The first tokens of the files."""
    parts: list[Ids] = []
    n = 0
    for ids, _ in encoded(read_documents(files), filler.tokenizer):
        parts.append(np.asarray(ids, dtype=np.int64))
        n += len(ids)
        if n >= most:
            break
    stream = np.concatenate(parts)[:most]
    require(len(stream) > 2, "There is hardly any text to measure on.", "Give more text.")
    return stream


def _training(filler: Filler, training: DocumentFiles | None) -> tuple[Ids, str]:
    """What is counted: the given text, or the training tokens that lie in the run's folder."""
    if training is not None:
        return _stream(training, filler, MOST_TRAIN), ", ".join(map(str, training.paths))
    path = filler.loaded.path / "data" / "train"
    if not path.with_name("train.ids").exists():
        return np.zeros(0, dtype=np.int64), ""
    return np.asarray(TokenStore(path).ids[:MOST_TRAIN], dtype=np.int64), "the model's own training text"
