"""A trained translator in use: texts in, texts out, in order and number the same."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from glassformer.data.split import Piece, join_pieces, split_long
from glassformer.decode.options import DecodeOptions, Hypothesis
from glassformer.errors import UserError, require
from glassformer.model import EncoderDecoder
from glassformer.tasks.alignment import align
from glassformer.tasks.backend import Backend, Request
from glassformer.tasks.model_dir import LoadedModel

# A longer line is cut at sentence ends and put together again: attention is quadratic, and training saw sentences.
LONGEST = 200
# So many sentences are translated before the next ones are looked at, and it is told how far it is.
TOGETHER = 512


@dataclass(frozen=True)
class Translation:
    """One answer to one text; a text that was cut has the tokens of all its parts one after the other."""

    text: str
    score: float
    source_tokens: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    # For each token of the answer, the source token that it looked at most.
    alignment: list[int] = field(default_factory=list)


class Translator:
    """Holds a loaded model and the engine that runs it."""

    def __init__(self, loaded: LoadedModel, choose: Callable[[DecodeOptions, bool], Backend]) -> None:
        """`choose` gives the engine for some options, with or without phrases: not every engine can do everything."""
        require(
            loaded.task == "translate" and isinstance(loaded.model, EncoderDecoder),
            f"{loaded.path} is a model for {loaded.task}, not for translation.",
            f"Use `glassformer {loaded.task}`.",
        )
        assert isinstance(loaded.model, EncoderDecoder)
        self.loaded, self.model = loaded, loaded.model
        self.choose = choose

    def translate(self, texts: Sequence[str], **options: object) -> list[str]:
        """The best translation of each text; options as in DecodeOptions."""
        return [best[0].text for best in self.translate_all(texts, DecodeOptions(**options))]  # type: ignore[arg-type]

    def translate_all(
        self,
        texts: Sequence[str],
        options: DecodeOptions | None = None,
        prefix: str = "",
        phrases: Sequence[str] = (),
        details: bool = False,
        progress: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005
    ) -> list[list[Translation]]:
        """The `nbest` translations of each text with scores; `details` adds tokens and alignment.

        Each translation starts with `prefix` and contains all `phrases`, word for word. Where there is much to do,
        `progress` is told.
        """
        options = options or DecodeOptions()
        if isinstance(texts, str):
            raise UserError("translate got one string.", "Give a list of texts.")
        for text in texts:
            require(isinstance(text, str), f"translate got {text!r}, which is no text.", "Give a list of strings.")
        start = tuple(self.loaded.tokenizer.encode(prefix)) if prefix else ()
        pieces = [self._split(text.strip()) for text in texts]
        flat = [piece.text for parts in pieces for piece in parts if piece.text]
        contained = tuple(tuple(ids) for ids in self.loaded.tokenizer.encode_batch(list(phrases)))
        requests = [Request(ids, start, contained) for ids in self.loaded.source_tokenizer.encode_batch(flat)]
        backend = self.choose(options, bool(contained))
        found: list[list[Hypothesis]] = []
        for i in range(0, len(requests), TOGETHER):
            found += backend.generate(requests[i : i + TOGETHER], options)
            if len(requests) > TOGETHER:
                progress(len(found), len(requests))
        answered = zip(requests, found, strict=True)
        nothing = (Request([]), [Hypothesis([], 0.0)] * options.nbest)
        return [
            self._join(parts, [next(answered) if piece.text else nothing for piece in parts], details)
            for parts in pieces
        ]

    def engine_name(self, options: DecodeOptions, with_phrases: bool = False) -> str:
        """The engine that these options would run on."""
        return self.choose(options, with_phrases).name

    def _split(self, text: str) -> list[Piece]:
        if len(text.encode("utf-8", errors="replace")) < LONGEST:  # no token is shorter than a byte
            return [Piece(text, "")]
        return split_long(text, LONGEST, self._n_tokens)

    def _n_tokens(self, text: str) -> int:
        return len(self.loaded.source_tokenizer.encode(text))

    def _join(
        self, parts: list[Piece], answered: list[tuple[Request, list[Hypothesis]]], details: bool
    ) -> list[Translation]:
        """The parts of one text together: the i-th best of it is the i-th best of each part."""
        if not parts:
            return [Translation("", 0.0)]
        requests = [request for request, _ in answered]
        n_best = min(len(found) for _, found in answered)
        return [self._translation(parts, requests, [found[i] for _, found in answered], details) for i in range(n_best)]

    def _translation(
        self, parts: list[Piece], requests: list[Request], chosen: list[Hypothesis], details: bool
    ) -> Translation:
        texts = [self.loaded.tokenizer.decode(h.ids) for h in chosen]
        text = join_pieces([Piece(t, piece.gap) for t, piece in zip(texts, parts, strict=True)])
        score = sum(h.score for h in chosen) / len(chosen)
        if not details:
            return Translation(text, score)
        source_tokens: list[str] = []
        tokens: list[str] = []
        alignment: list[int] = []
        for request, hypothesis in zip(requests, chosen, strict=True):
            looked = align(self.model, request.source, hypothesis.ids)
            alignment += [i + len(source_tokens) for i in looked]
            source_tokens += self.loaded.source_tokenizer.tokens(request.source)
            tokens += self.loaded.tokenizer.tokens(hypothesis.ids)
        return Translation(text, score, source_tokens, tokens, alignment)
