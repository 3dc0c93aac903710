"""Completions of all clients as the rows of one running batch: new ones join between two steps, ended ones leave.

Rows stand right-aligned in the cache, so that row i fills its last `len` slots; `keep` hides what is before them, and
positions count real slots only. Each row is as if alone. New prompts are read in a batch of their own, a chunk between
two steps, so that a long one does not hold up those who already read their answers.

r rows, m slots
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from glassformer.decode.choose import SEEDS_APART, Chosen, Said, choose_next
from glassformer.decode.complete_options import CompleteOptions
from glassformer.errors import require
from glassformer.model.cache import Cache
from glassformer.serve.metrics import Metrics
from glassformer.serve.queue import settle
from glassformer.tasks.completer import Completer, Completion, TextWriter
from glassformer.tasks.generator import CHUNK

SPARE = 256  # slots that a new cache has more than it needs now


@dataclass(frozen=True)
class Piece:
    """What one step added to one answer; `finish` comes with the last."""

    row: int
    text: str
    tokens: list[str]
    log_p: list[float]
    alternatives: list[list[tuple[str, float]]]
    finish: str | None = None


@dataclass(eq=False)
class CompleteJob:
    """Prompts in tokens, each answered `options.n` times; `tell` hears of every piece, in the lane's thread."""

    prompts: list[list[int]]
    options: CompleteOptions
    tell: Callable[[Piece], None] | None = None
    future: "Future[list[Completion]]" = field(default_factory=Future)


class Row:
    """One answer on its way."""

    def __init__(self, job: CompleteJob, index: int, completer: Completer, first_seed: int) -> None:
        options, prompt = job.options, job.prompts[index // job.options.n]
        self.job, self.index = job, index
        self.said = Said(list(prompt), len(prompt))
        self.generator = torch.Generator().manual_seed(
            first_seed + SEEDS_APART * (index if options.seed is None else index % options.n)
        )
        self.writer = TextWriter(completer.tokenizer, prompt, options.stop)
        self.answer = Completion()
        # Only what choosing depends on, so that rows of many requests are chosen together.
        self.choosing = replace(options, max_tokens=1, stop=(), seed=None, n=1)
        context = completer.context
        self.n_most = options.max_tokens if context is None else min(options.max_tokens, context - len(prompt) + 1)
        self.ended = False

    def take(self, chosen: Chosen, completer: Completer) -> None:
        """One token more, and perhaps the last."""
        self.said.ids.append(chosen.id)
        answer, n_before = self.answer, len(self.answer.tokens)
        text = completer._take(chosen, answer, self.writer)
        n_made = len(self.said.ids) - self.said.n_prompt
        if chosen.id in completer.tokenizer.marks.ends or self.writer.stopped or n_made >= self.n_most:
            self.ended = True
            rest = self.writer.rest()
            answer.text += rest
            text += rest
            answer.finish = "stop" if self.writer.stopped else answer.finish
        if self.job.tell is not None:
            new = slice(n_before, None)
            finish = answer.finish if self.ended else None
            self.job.tell(
                Piece(self.index, text, answer.tokens[new], answer.log_p[new], answer.alternatives[new], finish)
            )


class Reading:
    """Prompts that are being read, to join the others when they are."""

    def __init__(self, rows: list[Row], completer: Completer) -> None:
        self.rows, self.model, self.begin = rows, completer.model, 0
        texts = [row.said.ids for row in rows]
        self.width = max(map(len, texts))
        self.ids = torch.tensor([[0] * (self.width - len(t)) + t for t in texts])
        keep = torch.tensor([[False] * (self.width - len(t)) + [True] * len(t) for t in texts])
        self.keep = None if bool(keep.all()) else keep
        self.cache = self.model.new_cache(len(rows), self.width)

    def read_chunk(self) -> Tensor | None:
        """The scores (r, N) of what follows, once everything is read."""
        part = slice(self.begin, self.begin + CHUNK)
        keep = None if self.keep is None else self.keep[:, part]
        states = self.model.states(self.ids[:, part], keep, self.cache)
        self.begin += CHUNK
        return self.model.head(states[:, -1]) if self.begin >= self.width else None


class Rows:
    """All completions of one model."""

    def __init__(self, completer: Completer, n_most: int, metrics: Metrics, name: str) -> None:
        self.completer, self.n_most, self.metrics, self.name = completer, n_most, metrics, name
        self.lock = threading.Lock()
        self.waiting: list[list[Row]] = []  # by request
        self.left: dict[CompleteJob, list[Row]] = {}  # all rows of a request that is not done
        self.reading: Reading | None = None
        self.going: list[Row] = []
        self.cache: Cache | None = None

    def check(self, prompts: list[list[int]], n_new: int) -> None:
        """The model can read them, and go on where anything new is asked for."""
        context = self.completer.context
        for prompt in prompts:
            require(bool(prompt), "A prompt is empty.", "Give at least one token.")
            require(
                context is None or len(prompt) + min(1, n_new) <= context,
                f"The prompt has {len(prompt):,} tokens, but the model sees only {context} at once, with the answer.",
                "Shorten it.",
            )

    def put(self, job: CompleteJob) -> None:
        """Checks the prompts and lets them wait."""
        self.check(job.prompts, job.options.max_tokens)
        seed = job.options.seed
        first = int(torch.randint(2**31, ())) if seed is None else seed
        rows = [Row(job, i, self.completer, first) for i in range(len(job.prompts) * job.options.n)]
        if not rows:
            job.future.set_result([])
            return
        with self.lock:
            self.waiting.append(list(rows))
            self.left[job] = rows

    def n_waiting(self) -> int:
        with self.lock:
            return sum(map(len, self.waiting))

    def n_running(self) -> int:
        return len(self.going) + (len(self.reading.rows) if self.reading is not None else 0)

    @torch.inference_mode()
    def step(self) -> None:
        """One token for each row that is going; before it, one chunk of the prompts that are to join them."""
        self._drop_given_up()
        if self.reading is None and (newcomers := self._next_rows()):
            self.reading = Reading(newcomers, self.completer)
        if self.reading is not None and (scores := self.reading.read_chunk()) is not None:
            newcomers, cache, self.reading = self.reading.rows, self.reading.cache, None
            self._choose(newcomers, scores)
            self._join(newcomers, cache)
        if not self.going:
            return
        assert self.cache is not None
        if self.cache.length >= self.cache.capacity:
            self.cache = self._merged([(self.cache, self.going)])
        ids = torch.tensor([row.said.ids[-1:] for row in self.going])
        states = self.completer.model.states(ids, None, self.cache)
        self._choose(self.going, self.completer.model.head(states[:, -1]))
        self._keep_rows([i for i, row in enumerate(self.going) if not row.ended])

    def fail(self, error: Exception) -> None:
        """Something broke: nobody waits for ever."""
        with self.lock:
            jobs = list(self.left)
            self.waiting, self.left = [], {}
        self.reading, self.going, self.cache = None, [], None
        for job in jobs:
            settle(job.future, error=error)

    def _next_rows(self) -> list[Row]:
        """Rows that wait, one of each request in turn, of lengths that go together."""
        found: list[Row] = []
        with self.lock:
            while self.waiting and len(found) + len(self.going) < self.n_most:
                lengths = [len(row.said.ids) for row in (*found, self.waiting[0][0])]
                if found and max(lengths) * len(lengths) > 2 * sum(lengths) + CHUNK:
                    break
                rows = self.waiting.pop(0)
                found.append(rows.pop(0))
                if rows:
                    self.waiting.append(rows)
        return found

    def _choose(self, rows: list[Row], scores: Tensor) -> None:
        self.metrics.step(self.name, len(rows))
        groups: dict[CompleteOptions, list[int]] = {}
        for i, row in enumerate(rows):
            groups.setdefault(row.choosing, []).append(i)
        for options, places in groups.items():
            mine = scores if len(places) == len(rows) else scores[places]
            said, generators = [rows[i].said for i in places], [rows[i].generator for i in places]
            found = choose_next(mine, said, options, generators, totals=self.completer.model.log_totals)
            for i, chosen in zip(places, found, strict=True):
                rows[i].take(chosen, self.completer)
        self._finish({row.job for row in rows if row.ended})

    def _finish(self, jobs: set[CompleteJob]) -> None:
        for job in jobs:
            rows = self.left.get(job)
            if rows is not None and all(row.ended for row in rows):
                with self.lock:
                    del self.left[job]
                settle(job.future, [row.answer for row in rows])

    def _join(self, newcomers: list[Row], cache: Cache) -> None:
        parts = [] if self.cache is None or not self.going else [(self.cache, self.going)]
        self.cache = self._merged([*parts, (cache, newcomers)])
        self.going = [*self.going, *newcomers]
        self._keep_rows([i for i, row in enumerate(self.going) if not row.ended])

    def _merged(self, parts: list[tuple[Cache, list[Row]]]) -> Cache:
        """One cache of several, as short as its longest row allows, with room for more."""
        lengths = [[_filled(row, cache) for row in rows] for cache, rows in parts]
        m = max(max(part) for part in lengths)
        n_rows = sum(map(len, lengths))
        merged = self.completer.model.new_cache(n_rows, m + SPARE)
        begin = 0
        for cache, rows in parts:
            n, at = min(m, cache.length), slice(begin, begin + len(rows))
            old = slice(cache.length - n, cache.length)
            for new, layer in zip(merged.layers, cache.layers, strict=True):
                new.k[at, :, :m].zero_()  # what nothing looks at is still multiplied, by zero
                new.v[at, :, :m].zero_()
                new.k[at, :, m - n : m], new.v[at, :, m - n : m] = layer.k[:, :, old], layer.v[:, :, old]
            begin += len(rows)
        flat = torch.tensor([n for part in lengths for n in part])
        keep = torch.arange(m) >= m - flat[:, None]
        merged.length, merged.keep = m, None if bool(keep.all()) else keep
        return merged

    def _keep_rows(self, places: list[int]) -> None:
        if len(places) == len(self.going):
            return
        self.going = [self.going[i] for i in places]
        if not self.going:
            self.cache = None
        elif self.cache is not None:
            self.cache.select(torch.tensor(places))

    def _drop_given_up(self) -> None:
        """Clients that went away leave their places to others."""
        gone = {job for job in list(self.left) if job.future.cancelled()}
        if not gone:
            return
        with self.lock:
            self.waiting = [rows for rows in self.waiting if rows[0].job not in gone]
            self.left = {job: rows for job, rows in self.left.items() if job not in gone}
        if self.reading is not None and all(row.job in gone for row in self.reading.rows):
            self.reading = None
        elif self.reading is not None:
            for row in self.reading.rows:
                row.ended = row.ended or row.job in gone  # leaves as soon as the others are read
        self._keep_rows([i for i, row in enumerate(self.going) if row.job not in gone])


def _filled(row: Row, cache: Cache) -> int:
    """Slots of a row: all its tokens but the newest, which is still to be read."""
    return min(len(row.said.ids) - 1, cache.length)
