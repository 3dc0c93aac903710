"""A trained translator in use: texts in, texts out, in order and number the same."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from glassformer.data.split import Piece, join_pieces, split_long, split_sentences
from glassformer.decode.options import DecodeOptions, Hypothesis
from glassformer.decode.phrases import Phrase
from glassformer.errors import UserError, require
from glassformer.model import EncoderDecoder
from glassformer.tasks.alignment import align
from glassformer.tasks.backend import Backend, Request
from glassformer.tasks.model_dir import LoadedModel

# Tokens; a longer line is cut at sentence ends and put together again, since attention is quadratic.
LONGEST = 200
# So many sentences are translated before the next ones are looked at, and it is told how far it is.
TOGETHER = 512

Generate = Callable[[list[Request]], list[list[Hypothesis]]]


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
        sentences = loaded.about.get("sentences")
        # More at once than a line of the training data has: of what follows, such a model says nothing.
        self.most_sentences = sentences if isinstance(sentences, int) and sentences > 0 else None

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

        Each translation starts with `prefix` and contains all `phrases`, word for word; where a text was cut, each is
        in the part that it costs the least. Where there is much to do, `progress` is told.
        """
        options = options or DecodeOptions()
        if isinstance(texts, str):
            raise UserError("translate got one string.", "Give a list of texts.")
        for text in texts:
            require(isinstance(text, str), f"translate got {text!r}, which is no text.", "Give a list of strings.")
        pieces = [self.cut(text.strip()) for text in texts]
        requests = self._requests(pieces, prefix)
        contained = tuple(tuple(ids) for ids in self.loaded.tokenizer.encode_batch(list(phrases)))
        backend = self.choose(options, bool(contained))

        def generate(asked: list[Request]) -> list[list[Hypothesis]]:
            found: list[list[Hypothesis]] = []
            for i in range(0, len(asked), TOGETHER):
                found += backend.generate(asked[i : i + TOGETHER], options)
                if len(asked) > TOGETHER:
                    progress(len(found), len(asked))
            return found

        if contained:
            requests = _place_phrases(pieces, requests, contained, generate)
        found = generate(requests)
        answered = zip(requests, found, strict=True)
        nothing = (Request([]), [Hypothesis([], 0.0)] * options.nbest)
        return [
            self._join(parts, [next(answered) if piece.text else nothing for piece in parts], details)
            for parts in pieces
        ]

    def engine_name(self, options: DecodeOptions, with_phrases: bool = False) -> str:
        """The engine that these options would run on."""
        return self.choose(options, with_phrases).name

    def cut(self, text: str) -> list[Piece]:
        """The parts of a text that are translated one by one."""
        parts = [Piece(text, "")] if self.most_sentences is None else split_sentences(text, self.most_sentences)
        return [short for part in parts for short in self._shortened(part)]

    def _shortened(self, part: Piece) -> list[Piece]:
        if len(part.text.encode("utf-8", errors="replace")) < LONGEST:  # no token is shorter than a byte
            return [part]
        *first, last = split_long(part.text, LONGEST, self._n_tokens)
        return [*first, Piece(last.text, last.gap + part.gap)]

    def _requests(self, pieces: list[list[Piece]], prefix: str) -> list[Request]:
        """What is asked of the engine: a request for each part that has text; the first of a text has the prefix."""
        start = tuple(self.loaded.tokenizer.encode(prefix)) if prefix else ()
        parts = [[piece.text for piece in parts if piece.text] for parts in pieces]
        ids = self.loaded.source_tokenizer.encode_batch([text for texts in parts for text in texts])
        starts = [start if i == 0 else () for texts in parts for i in range(len(texts))]
        return [Request(source, prefix=begin) for source, begin in zip(ids, starts, strict=True)]

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


def _place_phrases(
    pieces: list[list[Piece]], requests: list[Request], phrases: tuple[Phrase, ...], generate: Generate
) -> list[Request]:
    """Requests that must contain the phrases: of a text that was cut, each in the part where it costs the least."""
    if all(len(parts) == 1 for parts in pieces):
        return [replace(request, phrases=phrases) for request in requests]
    free = [best[0].score for best in generate(requests)]
    forced = [
        [best[0].score for best in generate([replace(r, phrases=(phrase,)) for r in requests])] for phrase in phrases
    ]
    placed, begin = list(requests), 0
    for parts in pieces:
        end = begin + sum(bool(piece.text) for piece in parts)
        for phrase, scores in zip(phrases, forced, strict=True):
            if begin < end:
                best = max(range(begin, end), key=lambda i: scores[i] - free[i])
                placed[best] = replace(placed[best], phrases=(*placed[best].phrases, phrase))
        begin = end
    return placed
