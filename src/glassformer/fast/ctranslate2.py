"""CTranslate2 as an engine, and as a folder that it loads without us.

Deliberately not here: how our weights look there (`ctranslate2_spec`), and drawing, as it takes neither a seed for
each request nor min_p.
"""

import tempfile
import threading
from pathlib import Path
from typing import Any, Literal

import ctranslate2
import torch

from glassformer.data.tokenizer import END, Tokenizer
from glassformer.decode.options import DecodeOptions, Hypothesis
from glassformer.errors import UserError
from glassformer.fast.cores import n_cores
from glassformer.fast.ctranslate2_spec import N_POSITIONS, cannot_run, to_spec
from glassformer.model import EncoderDecoder
from glassformer.model.inputs import Tokens
from glassformer.model.positions import LearnedPositions
from glassformer.tasks.backend import Request, fit_options

__all__ = ["CTranslate2Backend", "cannot_run", "to_spec", "write_ctranslate2"]

Precision = Literal["float32", "int8"]

# Source tokens a batch, padding included: enough to keep a core busy, few enough to stay in its cache.
BATCH_TOKENS = 192

# A source that is nothing but its end would be taken for empty, and not be asked at all, if the end had its own name.
SOURCE_END = "end"


def write_ctranslate2(
    model: EncoderDecoder,
    tokenizer: Tokenizer,
    folder: Path,
    precision: Precision = "int8",
    source_tokenizer: Tokenizer | None = None,
) -> None:
    """A folder that plain `ctranslate2.Translator` loads, with the tokenizers' own tokens as its vocabulary.

    Read there, an empty source gives an empty answer without asking the model.
    """
    spec = to_spec(model, _tokens(tokenizer), _tokens(source_tokenizer or tokenizer))
    write_spec(spec, folder, precision)


def _tokens(tokenizer: Tokenizer) -> list[str]:
    return [str(tokenizer.core.id_to_token(i)) for i in range(tokenizer.vocab_size)]


def write_spec(spec: Any, folder: Path, precision: Precision) -> None:
    """What `to_spec` gives, as the files that CTranslate2 loads."""
    folder.mkdir(parents=True, exist_ok=True)
    spec.validate()
    spec.optimize(quantization=precision)
    spec.save(str(folder))


class CTranslate2Backend:
    """The model run by CTranslate2, each batch on one core: two would wait for each other more than they work."""

    is_shareable = True

    def __init__(self, model: EncoderDecoder, precision: Precision = "int8", n_threads: int | None = None) -> None:
        self.model, self.precision = model, precision
        self.n_threads = n_threads or n_cores()
        self.name = f"CTranslate2 {'int8' if precision == 'int8' else 'fp32'}"
        self.n_positions, self.translator = N_POSITIONS, self._load(N_POSITIONS)
        self.growing = threading.Lock()

    @staticmethod
    def supports(options: DecodeOptions) -> bool:
        """Searching is the same as ours; drawing cannot be."""
        return not options.sample

    def generate(self, requests: list[Request], options: DecodeOptions) -> list[list[Hypothesis]]:
        """For each request its answers, best first, in the order of the requests."""
        if not self.supports(options):
            raise UserError("CTranslate2 cannot draw with a seed.", "Use the torch engine, or do not sample.")
        if any(r.phrases for r in requests):
            raise UserError("CTranslate2 cannot make an answer contain phrases.", "Use the torch engine.")
        answers: list[list[Hypothesis]] = [[] for _ in requests]
        for n_prefix in sorted({len(r.prefix) for r in requests}):  # the greatest length counts the prefix
            rows = [i for i, r in enumerate(requests) if len(r.prefix) == n_prefix]
            for row, found in zip(rows, self._generate([requests[i] for i in rows], n_prefix, options), strict=True):
                answers[row] = found
        return answers

    def _generate(self, batch: list[Request], n_prefix: int, options: DecodeOptions) -> list[list[Hypothesis]]:
        options = fit_options(self.model, n_prefix, options)
        longest = max(len(r.source) for r in batch) + 1
        share = -(-longest * len(batch) // self.n_threads)  # so that every core gets one
        results = self._with_room(longest, n_prefix + options.max_len).translate_batch(
            [[*map(str, r.source), SOURCE_END] for r in batch],
            [[*map(str, r.prefix)] for r in batch] if n_prefix else None,
            max_batch_size=max(longest, min(share, BATCH_TOKENS)),
            batch_type="tokens",
            beam_size=options.beam,
            num_hypotheses=options.nbest,
            length_penalty=options.length_penalty,
            no_repeat_ngram_size=options.no_repeat,
            max_decoding_length=n_prefix + options.max_len,
            min_decoding_length=0,
            max_input_length=0,
            return_scores=True,
            return_end_token=True,  # so that the end counts in the length, as it does with us
        )
        return [_hypotheses(result, options) for result in results]

    def _with_room(self, n_source: int, n_target: int) -> Any:
        """The translator, after making its tables of waves longer if these lengths need it."""
        source = self.model.source
        assert isinstance(source, Tokens)
        if isinstance(source.positions, LearnedPositions):
            source.positions(torch.tensor([n_source - 1]))  # it says by itself that a source is too long
        with self.growing:
            if (longest := max(n_source, n_target)) > self.n_positions:
                self.translator = self._load(2 * longest)
                self.n_positions = 2 * longest
            return self.translator

    def _load(self, n_positions: int) -> Any:
        assert isinstance(self.model.source, Tokens)
        assert isinstance(self.model.target, Tokens)
        size = max(self.model.source.embedding.num_embeddings, self.model.target.embedding.num_embeddings)
        tokens = [str(i) for i in range(size)]  # here an id's name is the id
        source_tokens = [*tokens[:END], SOURCE_END, *tokens[END + 1 :]]
        spec = to_spec(self.model, tokens, source_tokens, end_source=False, n_positions=n_positions)
        with tempfile.TemporaryDirectory() as folder:
            write_spec(spec, Path(folder), self.precision)
            return ctranslate2.Translator(
                folder, compute_type=self.precision, inter_threads=self.n_threads, intra_threads=1
            )


def _hypotheses(result: Any, options: DecodeOptions) -> list[Hypothesis]:
    found = []
    for tokens, score in zip(result.hypotheses, result.scores, strict=True):
        # What it ruled out has a total of -1e10 or less, and still comes out where nothing else is left.
        if score * len(tokens) ** options.length_penalty > -1e9:
            ids = [int(token) for token in tokens]
            found.append(Hypothesis(ids[:-1] if ids[-1] == END else ids, score))
    return found
