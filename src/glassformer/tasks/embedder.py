"""A model that makes one vector of a text: any encoder of text, and the texts side of a decoder or a translator.

Texts go through in batches of nearly equal length, so that hardly anything is spent on padding, and come back in their
order. Deliberately not here: how a batch runs (`fast/packed.py` is the quick way), and comparing vectors.

b texts, n length, t positions of all texts together, d width
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from glassformer.data.framing import Framing
from glassformer.errors import UserError, require
from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly
from glassformer.model.settings import EmbeddingHeadSettings, Pooling, TokensSettings
from glassformer.tasks.model_dir import LoadedModel

BATCH = 1024  # tokens at once: enough to keep a core busy, few enough to stay near its cache
LONGEST = 512  # tokens of a text, where nothing says how many the model can read
CHUNK = 10_000  # texts that are held as tokens at once

Rows = Sequence[Sequence[int]]
States = Callable[[Rows], Tensor]  # rows of ids, equal lengths side by side -> their last states one after the other
Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class VectorOptions:
    """How a text's states become one vector; None is what the model says."""

    pooling: Pooling | None = None
    normalise: bool | None = None

    def __post_init__(self) -> None:
        known = ("mean", "first", "last")
        require(self.pooling in (None, *known), f"There is no pooling {self.pooling!r}.", f"Choose {', '.join(known)}.")


class Embedder:
    """Holds a loaded model and the way that its batches run."""

    def __init__(self, loaded: LoadedModel, states: States | None = None, workers: int = 1) -> None:
        """With several `workers`, `states` must bear being called from several threads."""
        self.loaded, self.workers = loaded, workers
        source = loaded.model.settings.source
        require(
            isinstance(source, TokensSettings),
            f"{loaded.path} reads {source.kind}, not text: it makes no vector of a text.",
            "Use an encoder of text, such as an imported MiniLM.",
        )
        self.states = states or plain_states(loaded.model)
        self.n_cut = 0  # texts of the last call that were too long

    @property
    def max_tokens(self) -> int:
        """Of a text with its marks."""
        return longest_text(self.loaded)

    @property
    def options(self) -> VectorOptions:
        """What the model says: an embedding head its own way, a decoder the last state, the others the mean."""
        head = getattr(self.loaded.model.settings, "head", None)
        if isinstance(head, EmbeddingHeadSettings) and head.transform is None:
            return VectorOptions(head.pooling, head.normalise)
        return VectorOptions("last" if isinstance(self.loaded.model, DecoderOnly) else "mean", False)

    def embed(self, texts: Sequence[str], pooling: Pooling | None = None, normalise: bool | None = None) -> Vectors:
        """One vector a text, in a float32 array of (texts, width)."""
        check_texts(texts)
        encode = self.loaded.source_tokenizer.encode_batch
        chunks = (encode(list(texts[i : i + CHUNK])) for i in range(0, len(texts), CHUNK))
        return self._embed(chunks, VectorOptions(pooling, normalise))

    def embed_ids(self, texts: Rows, pooling: Pooling | None = None, normalise: bool | None = None) -> Vectors:
        """The same for texts in tokens, without marks."""
        return self._embed([texts], VectorOptions(pooling, normalise))

    def _embed(self, chunks: Iterable[Rows], options: VectorOptions) -> Vectors:
        said = self.options
        pooling = options.pooling or said.pooling or "mean"
        normalise = said.normalise if options.normalise is None else options.normalise
        self.n_cut = 0
        parts = [self._embed_chunk(self._rows(chunk), pooling) for chunk in chunks]
        found = torch.cat(parts) if parts else torch.empty(0, self._width)
        vectors: Vectors = (F.normalize(found, dim=-1) if normalise else found).numpy()
        return vectors

    def _embed_chunk(self, rows: Rows, pooling: Pooling) -> Tensor:
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        batches = list(_batches(order, rows, self.workers))
        found = torch.empty(len(rows), self._width)

        def run(batch: list[int]) -> None:
            found[batch] = self._pool([rows[i] for i in batch], pooling)

        if self.workers == 1 or len(batches) == 1:
            for batch in batches:
                run(batch)
        else:
            self._run_all(run, batches[::-1])  # the longest first: the short ones fill the end
        return found

    def _run_all(self, run: Callable[[list[int]], None], batches: list[list[int]]) -> None:
        """Some batches at once, each on one core: better than many cores on one small product."""
        threads = torch.get_num_threads()
        with ThreadPoolExecutor(self.workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            list(pool.map(run, batches))
        torch.set_num_threads(threads)

    @torch.inference_mode()
    def _pool(self, rows: Rows, pooling: Pooling) -> Tensor:
        states = self.states(rows)  # (t, d)
        lengths = torch.tensor([len(row) for row in rows])
        ends = lengths.cumsum(0)
        if pooling != "mean":
            return states[ends - 1 if pooling == "last" else ends - lengths]
        texts = torch.arange(len(rows)).repeat_interleave(lengths)
        sums = torch.zeros(len(rows), states.shape[1]).index_add_(0, texts, states)
        return sums / lengths[:, None]  # (b, d)

    def _rows(self, texts: Rows) -> list[list[int]]:
        """Ids with the model's marks, cut where they are too many."""
        framing = Framing(self.loaded.source_tokenizer.marks, self.max_tokens)
        rows = []
        for ids in texts:
            self.n_cut += len(ids) + framing.n_marks(1) > self.max_tokens
            rows.append(framing.frame([np.array(ids, dtype=np.int64)])[0].tolist())
        return rows

    @property
    def _width(self) -> int:
        settings: Any = self.loaded.model.settings
        return int((settings.decoder if isinstance(self.loaded.model, DecoderOnly) else settings.encoder).d_model)


def longest_text(loaded: LoadedModel) -> int:
    """The tokens that a model can read, or was trained to read, marks included."""
    positions, about = getattr(loaded.model.settings.source, "positions", None), loaded.about
    given = [about.get("context"), about.get("max_tokens"), getattr(positions, "max_len", None)]
    return min((n for n in given if isinstance(n, int) and n > 0), default=LONGEST)


def check_texts(texts: Any) -> None:
    require(not isinstance(texts, str), "embed got one string.", "Give a list of texts.")
    for text in texts:
        if not isinstance(text, str):
            raise UserError(f"embed got {str(text)[:60]!r}, which is no text.", "Give a list of strings.")


def plain_states(model: EncoderOnly | DecoderOnly | EncoderDecoder) -> States:
    """The model as it is, texts of equal length at a time, so that there is no padding."""

    def run(ids: Tensor) -> Tensor:
        if isinstance(model, DecoderOnly):
            return model.states(ids)
        return (model.encode(ids) if isinstance(model, EncoderDecoder) else model.states(ids)).x

    def states(rows: Rows) -> Tensor:
        return torch.cat([run(torch.tensor(list(same))).flatten(0, 1) for _, same in groupby(rows, key=len)])

    return states


def _batches(order: Sequence[int], rows: Rows, workers: int) -> Iterator[list[int]]:
    """Neighbours in length, of BATCH tokens at most or one text, and so many that all workers get alike."""
    total = sum(map(len, rows))
    room = -(-total // (workers * -(-total // (workers * BATCH)))) if total else BATCH
    batch: list[int] = []
    size = 0
    for i in order:
        if batch and size + len(rows[i]) > room:
            yield batch
            batch, size = [], 0
        batch.append(i)
        size += len(rows[i])
    if batch:
        yield batch
