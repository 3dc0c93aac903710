"""A trained translator in use: texts in, texts out, in order and number the same."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from glassformer import config
from glassformer.data.split import ORDINALS, Piece, join_translated, split_long, split_sentences
from glassformer.decode.options import DecodeOptions, Hypothesis
from glassformer.decode.phrases import Phrase
from glassformer.errors import UserError, require
from glassformer.model import EncoderDecoder
from glassformer.tasks.alignment import align
from glassformer.tasks.backend import Backend, Request, room
from glassformer.tasks.model_dir import LoadedModel

# Tokens; a longer line is cut at sentence ends and put together again, since attention is quadratic.
LONGEST = 200
# So many sentences are translated before the next ones are looked at, and it is told how far it is.
TOGETHER = 512
PARTS_APART = 2**20  # between the numbers of a text's parts; those of the texts lie between

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
        languages = loaded.about.get("languages")
        source = languages[0] if isinstance(languages, list) and languages else None
        self.has_ordinals = source is None or source in ORDINALS
        self.longest = min(LONGEST, (room(self.model.source) or LONGEST + 1) - 1)  # with the end of a source

    def translate(self, texts: Sequence[str], **options: object) -> list[str]:
        """The best translation of each text; options as in DecodeOptions."""
        checked: DecodeOptions = config.parse(DecodeOptions, options, "What translate got")
        return [best[0].text for best in self.translate_all(texts, checked)]

    def translate_all(
        self,
        texts: Sequence[str],
        options: DecodeOptions | None = None,
        prefix: str = "",
        phrases: Sequence[str] = (),
        details: bool = False,
        progress: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005
        number: int = 0,
    ) -> list[list[Translation]]:
        """The `nbest` translations of each text with scores; `details` adds tokens and alignment.

        Each translation starts with `prefix` and contains all `phrases`, word for word; where a text was cut, each is
        in the part that it costs the least. Where there is much to do, `progress` is told. What is drawn follows from
        the seed and a text's number, the first one's being `number`.
        """
        options = options or DecodeOptions()
        if isinstance(texts, str):
            raise UserError("translate got one string.", "Give a list of texts.")
        for text in texts:
            require(isinstance(text, str), f"translate got {text!r}, which is no text.", "Give a list of strings.")
        pieces = [self.cut(text.strip()) for text in texts]
        requests = self._requests(pieces, prefix.strip(), number)
        words = [phrase.strip() for phrase in phrases if phrase.strip()]
        contained = tuple(tuple(ids) for ids in self.loaded.tokenizer.encode_batch(words))
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
            self._answers(parts, [next(answered) if piece.text else nothing for piece in parts], details)
            for parts in pieces
        ]

    def engine_name(self, options: DecodeOptions, with_phrases: bool = False) -> str:
        """The engine that these options would run on."""
        return self.choose(options, with_phrases).name

    def cut(self, text: str) -> list[Piece]:
        """The parts of a text that are translated one by one."""
        parts = [Piece(text, "")]
        if self.most_sentences is not None:
            parts = split_sentences(text, self.most_sentences, self.has_ordinals)
        return [short for part in parts for short in self._shortened(part)]

    def _shortened(self, part: Piece) -> list[Piece]:
        if len(part.text.encode("utf-8", errors="replace")) <= self.longest:  # no token is shorter than a byte
            return [part]
        *first, last = split_long(part.text, self.longest, self._n_tokens)
        return [*first, Piece(last.text, last.gap + part.gap)]

    def _requests(self, pieces: list[list[Piece]], prefix: str, number: int) -> list[Request]:
        """What is asked of the engine: a request for each part that has text; the first of a text has the prefix."""
        start = tuple(self.loaded.tokenizer.encode(prefix)) if prefix else ()
        parts = [[piece.text for piece in parts if piece.text] for parts in pieces]
        ids = self.loaded.source_tokenizer.encode_batch([text for texts in parts for text in texts])
        places = ((i, j) for i, texts in enumerate(parts, number) for j in range(len(texts)))
        return [
            Request(source, () if j else start, number=i + PARTS_APART * j)
            for source, (i, j) in zip(ids, places, strict=True)
        ]

    def _n_tokens(self, text: str) -> int:
        return len(self.loaded.source_tokenizer.encode(text))

    def _answers(
        self, parts: list[Piece], answered: list[tuple[Request, list[Hypothesis]]], details: bool
    ) -> list[Translation]:
        """The i-th best of a text is the i-th best of each of its parts."""
        return join_best(parts, [[self._answer(request, h, details) for h in found] for request, found in answered])

    def _answer(self, request: Request, chosen: Hypothesis, details: bool) -> Translation:
        """The translation of one part."""
        text = self.loaded.tokenizer.decode(chosen.ids)
        if not details:
            return Translation(text, chosen.score)
        source_tokens = self.loaded.source_tokenizer.tokens(request.source)
        tokens = self.loaded.tokenizer.tokens(chosen.ids)
        return Translation(text, chosen.score, source_tokens, tokens, align(self.model, request.source, chosen.ids))


def join_best(pieces: list[Piece], found: list[list[Translation]]) -> list[Translation]:
    """Translations of a text from those of its pieces, best first."""
    if not pieces:
        return [Translation("", 0.0)]
    return [_joined(pieces, [best[i] for best in found]) for i in range(min(map(len, found)))]


def _joined(pieces: list[Piece], parts: list[Translation]) -> Translation:
    text = join_translated(pieces, [part.text for part in parts])
    joined = Translation(text, sum(part.score for part in parts) / len(parts))
    for part in parts:
        joined.alignment.extend(i + len(joined.source_tokens) for i in part.alignment)
        joined.source_tokens.extend(part.source_tokens)
        joined.tokens.extend(part.tokens)
    return joined


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
