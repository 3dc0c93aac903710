"""Translators that run in C++ with 8-bit weights, from the ids of a source to the ids of its answers."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref

import numpy as np
import torch
from torch import Tensor

from glassformer.data.tokenizer import END, START
from glassformer.decode.options import DecodeOptions, Hypothesis
from glassformer.errors import UserError, require
from glassformer.fast import native
from glassformer.fast.cores import n_cores
from glassformer.fast.native_pack import PackedLinear, PackedStack
from glassformer.model import EncoderDecoder
from glassformer.model.inputs import Tokens
from glassformer.model.positions import LearnedPositions
from glassformer.model.settings import TokensSettings
from glassformer.tasks.backend import Request, fit_options, together

# Of a call. Enough hypotheses for weights to be read once for many, few enough to stay in the cache; and no more of
# anything than fits into memory, however long sources and answers are.
ROWS, SOURCE_TOKENS, STEPS = 64, 2048, 512


def cannot_translate(model: EncoderDecoder) -> str | None:
    """Why the C++ cannot run such a model, or None if it can."""
    settings, weight = model.settings, next(model.parameters())
    if (reason := native.why_no_native()) is not None:
        return reason
    if weight.device.type != "cpu" or weight.dtype != torch.float32:
        return f"it reads float32 on a CPU, and the weights are {weight.dtype} on {weight.device.type}"
    if not isinstance(settings.source, TokensSettings):
        return f"it reads tokens, and the source is {settings.source.kind}"
    if settings.source.n_types or settings.target.n_types:
        return "it knows no token types, and the model has some"
    if settings.encoder.attention.rotary or settings.decoder.attention.rotary:
        return "it adds positions, and the model has rotary ones"
    if settings.head.transform is not None:
        return "its output is one projection, and the head has a transform"
    return None


class NativeBackend:
    """Each core takes a few texts at a time, and the next ones when it is done: none waits for another.

    With `others` of the same vocabulary the model answers together with them, as one.
    """

    is_shareable = True

    def __init__(self, model: EncoderDecoder, others: Sequence[EncoderDecoder] = ()) -> None:
        self.packed = [_Packed(each) for each in (model, *others)]
        sizes = sorted({packed.target.table.shape[0] for packed in self.packed})
        told = " and ".join(map(str, sizes))
        require(len(sizes) == 1, f"The models have vocabularies of {told} tokens.", "Models of one answer together.")
        self.name = together("C++ int8", len(self.packed))
        self.pool = ThreadPoolExecutor(n_cores(), "translate")

    @staticmethod
    def supports(options: DecodeOptions) -> bool:
        return not options.sample

    def generate(self, requests: list[Request], options: DecodeOptions) -> list[list[Hypothesis]]:
        """For each request its answers, best first, in the order of the requests."""
        if not self.supports(options):
            raise UserError("The C++ engine cannot draw.", "Use the torch engine, or do not sample.")
        if any(r.phrases for r in requests):
            raise UserError("The C++ engine cannot make an answer contain phrases.", "Use the torch engine.")
        answers: list[list[Hypothesis]] = [[] for _ in requests]
        groups = _groups(requests, options, n_cores())
        batches = [[requests[i] for i in rows] for rows in groups]
        run = map if len(groups) < 2 else self.pool.map
        for rows, found in zip(groups, run(lambda batch: self._run(batch, options), batches), strict=True):
            for row, hypotheses in zip(rows, found, strict=True):
                answers[row] = hypotheses
        return answers

    def _run(self, batch: list[Request], options: DecodeOptions) -> list[list[Hypothesis]]:
        n, n_prefix = len(batch), len(batch[0].prefix)
        for packed in self.packed:
            options = fit_options(packed.model, n_prefix, options)
        sources = [[*r.source, END] for r in batch]
        longest = n_prefix + options.max_len
        positions = []  # held here: what is given to C++ are addresses
        for packed in self.packed:
            packed.check(sources, [(START, *r.prefix) for r in batch])
            positions.append((packed.source.positions(max(map(len, sources))), packed.target.positions(longest)))
        flat = np.array([i for ids in sources for i in ids], dtype=np.int32)
        begins = np.cumsum([0, *map(len, sources)], dtype=np.int64)
        prefixes = np.array([r.prefix for r in batch], dtype=np.int32)
        ids = np.empty((n, options.nbest, longest), dtype=np.int32)
        lengths, scores = np.empty((n, options.nbest), np.int32), np.empty((n, options.nbest), np.float32)
        structs = [packed.struct(*each) for packed, each in zip(self.packed, positions, strict=True)]
        translators = (native.Translator * len(structs))(*structs)
        asked = native.Texts(
            *(a.ctypes.data for a in (flat, begins, prefixes)),
            n, n_prefix, options.beam, options.nbest, options.max_len, options.no_repeat, options.length_penalty,
            *(a.ctypes.data for a in (ids, lengths, scores)),
        )  # fmt: skip
        if native.library().glassformer_translate(translators, len(structs), byref(asked)):
            raise MemoryError
        return [
            [Hypothesis(ids[i, j, : lengths[i, j]].tolist(), float(scores[i, j])) for j in np.flatnonzero(row >= 0)]
            for i, row in enumerate(lengths)
        ]


class _Packed:
    """One model as C++ reads it."""

    def __init__(self, model: EncoderDecoder) -> None:
        reason = cannot_translate(model)
        require(reason is None, f"The C++ engine cannot run this model: {reason}.", "Use another engine.")
        self.model, settings = model, model.settings
        self.encoder = PackedStack(model.encoder, settings.encoder)
        self.decoder = PackedStack(model.decoder, settings.decoder)
        self.head = PackedLinear(model.head.w)
        self.source, self.target = _Words(model.source), _Words(model.target)

    def struct(self, source: Tensor, target: Tensor) -> native.Translator:
        """With these positions."""
        return native.Translator(
            self.encoder.struct, self.decoder.struct, self.source.struct(source), self.target.struct(target),
            self.head.struct, START, END,
        )  # fmt: skip

    def check(self, sources: list[list[int]], prefixes: list[tuple[int, ...]]) -> None:
        """C++ looks up what it is told: an id that there is not would be read from anywhere."""
        for rows, words in ((sources, self.source), (prefixes, self.target)):
            size = words.table.shape[0]
            require(
                all(0 <= i < size for ids in rows for i in ids),
                f"There is an id that is none of the {size:,} of the vocabulary.",
                "Encode texts with the tokenizer of the model.",
            )


class _Words:
    """A table of words as they enter, and one of positions, as many as were needed so far."""

    def __init__(self, side: torch.nn.Module) -> None:
        assert isinstance(side, Tokens)
        self.side = side
        self.table = (side.embedding.weight.detach() * side.scale).contiguous()
        self.norm, self.owned = native.norm_of(side.norm)
        self.known, self.growing = torch.zeros(0, self.table.shape[1]), threading.Lock()

    @torch.no_grad()
    def positions(self, n: int) -> Tensor:
        """At least n of them. Who takes their address must hold them: another thread may ask for more."""
        with self.growing:
            if n > self.known.shape[0]:
                positions, d = self.side.positions, self.table.shape[1]
                wanted = torch.arange(n if isinstance(positions, LearnedPositions) else 2 * n)
                known = torch.zeros(len(wanted), d) if positions is None else positions(wanted)
                self.known = known.float().contiguous()
            return self.known

    def struct(self, positions: Tensor) -> native.Words:
        return native.Words(self.table.data_ptr(), positions.data_ptr(), self.norm)


def _groups(requests: list[Request], options: DecodeOptions, n_parts: int) -> list[list[int]]:
    """Rows of requests that run together: prefixes of one length, sources of similar lengths, the longest first."""
    most = min(ROWS, ROWS * STEPS // options.max_len) // options.beam
    most = max(1, min(most, -(-len(requests) // n_parts)))
    order = sorted(range(len(requests)), key=lambda i: (-len(requests[i].prefix), -len(requests[i].source)))
    groups: list[list[int]] = []
    for i in order:
        first = requests[groups[-1][0]] if groups else None
        if (
            first is not None
            and len(groups[-1]) < min(most, SOURCE_TOKENS // (len(first.source) + 1))
            and len(first.prefix) == len(requests[i].prefix)
        ):
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups
