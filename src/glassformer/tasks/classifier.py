"""A classifier in use: texts, pairs of texts, series of vectors or pictures in, labels and probabilities out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer import config
from glassformer.data.framing import Framing
from glassformer.data.labelled_batch import Readable, SeriesExamples, TextExamples
from glassformer.data.labels import Labels
from glassformer.data.picture_batch import PictureExamples
from glassformer.data.pictures import picture_of
from glassformer.data.series import as_vectors
from glassformer.errors import UserError, require
from glassformer.model import EncoderDecoder, EncoderOnly
from glassformer.model.picture_size import at_size
from glassformer.model.settings import TokensSettings
from glassformer.tasks.classify_answers import as_probabilities, score_rows
from glassformer.tasks.embedder import longest_text
from glassformer.tasks.model_dir import LoadedModel
from glassformer.tasks.picture_settings import use_of

Text = str | Sequence[str]  # a text, or a pair of them


@dataclass(frozen=True)
class Answer:
    """What a classifier says to one example: a class, all classes that fit, or a number."""

    label: str | tuple[str, ...] | float
    probabilities: Mapping[str, float]  # the likeliest first; empty for a number

    @property
    def probability(self) -> float | None:
        """Of the label, where it is one class."""
        return self.probabilities[self.label] if isinstance(self.label, str) else None


class Classifier:
    """Holds a loaded model, what its labels mean and how its input is read."""

    def __init__(self, loaded: LoadedModel) -> None:
        require(
            loaded.task == "classify" and not isinstance(loaded.model, EncoderDecoder),
            f"{loaded.path} is a model for {loaded.task}, not for classification.",
            f"Use `glassformer {loaded.task}`.",
        )
        assert not isinstance(loaded.model, EncoderDecoder)
        self.loaded, self.model = loaded, loaded.model
        about = loaded.about
        sound = isinstance(about.get("labels"), dict)
        require(sound, f"{loaded.path / 'settings.json'} does not say what the labels are.", "Train the model again.")
        self.labels: Labels = config.parse(Labels, about["labels"], f"{loaded.path / 'settings.json'}")
        head = self.model.settings.head
        n_out = getattr(head, "n_classes", getattr(head, "n_values", 0))
        require(
            n_out == self.labels.n_out,
            f"{loaded.path / 'settings.json'} names {self.labels.n_out} labels, but the model scores {n_out}.",
            "Both must come from the same training.",
        )

    @property
    def input(self) -> str:
        """What it reads: text, vectors or pictures."""
        return str(self.loaded.about.get("input", "text"))

    @property
    def n_texts(self) -> int | None:
        """1, or 2 where it judges pairs; None where nobody said: it takes what it is given."""
        n = self.loaded.about.get("n_texts", 1)
        return None if n is None else int(n)

    def classify(self, inputs: Sequence[Any]) -> list[Answer]:
        """One answer to each: a text, a pair (two texts), an array of vectors, or a picture by its path or as array."""
        return [self.name(scores) for scores in self.scores(inputs)]

    def answer(self, data: Readable) -> list[Answer]:
        """The same to what is made ready already."""
        return [self.name(scores) for scores in self.score_data(data, len(data.lengths))]

    def scores(self, inputs: Sequence[Any]) -> NDArray[np.float32]:
        """Probabilities (n, classes), or numbers (n,)."""
        require(not isinstance(inputs, str), "classify got one string.", "Give a list of texts.")
        if len(inputs) == 0:
            return np.zeros((0, self.labels.n_out), dtype=np.float32)
        if self.input == "text":
            return self._score_texts([self._checked(text) for text in inputs])
        return self.score_data(self.readable(inputs), len(inputs))

    def _score_texts(self, rows: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """Single texts and pairs, each with their like."""
        sizes = np.array([len(row) for row in rows])
        places = [np.flatnonzero(sizes == n) for n in np.unique(sizes)]
        scores = [self.score_data(self.texts([rows[i] for i in part.tolist()]), len(part)) for part in places]
        return np.concatenate(scores)[np.argsort(np.concatenate(places))]

    def score_data(self, data: Readable, n: int) -> NDArray[np.float32]:
        return as_probabilities(score_rows(self.model, data, np.arange(n)), self.labels.kind)

    def readable(self, inputs: Sequence[Any]) -> Readable:
        """The inputs as the model reads them."""
        if self.input == "vectors":
            return self.series([as_vectors(given, f"Series {i + 1}") for i, given in enumerate(inputs)])
        if self.input == "pictures":
            source, use = use_of(self.loaded)
            return self.pictures(np.stack([picture_of(given, use.frame(source), use.span) for given in inputs]))
        require(self.input == "text", f"{self.loaded.path} reads {self.input}, not text.", f"Give it {self.input}.")
        return self.texts([self._checked(text) for text in inputs])

    def series(self, values: Sequence[NDArray[np.float32]]) -> SeriesExamples:
        wanted = int(self.loaded.about.get("n_features", 1))
        for i, series in enumerate(values):
            require(
                series.shape[1] == wanted,
                f"Series {i + 1} has {series.shape[1]} numbers a step, but the model reads {wanted}.",
                "Give it the features that it was trained on.",
            )
        longest = int(self.loaded.about.get("max_tokens", 4096))
        return SeriesExamples(values, longest, np.zeros(len(values), dtype=np.int64))

    def pictures(self, pixels: NDArray[np.uint8]) -> PictureExamples:
        """Pictures as bytes (n, h, w, c), in the size that the model reads."""
        source, use = use_of(self.loaded)
        n, places = source.n_patches + source.class_token, [f"Picture {i + 1}" for i in range(len(pixels))]
        return PictureExamples(pixels, use.mean, use.std, n, np.zeros(len(pixels), dtype=np.int64), places)

    def at_size(self, height: int, width: int) -> "Classifier":
        """The same for pictures of another size: learned positions are interpolated."""
        use_of(self.loaded)  # refuses a model for anything else
        assert isinstance(self.model, EncoderOnly)
        return Classifier(replace(self.loaded, model=at_size(self.model, height, width).eval()))

    def texts(self, rows: Sequence[Sequence[str]]) -> TextExamples:
        """Texts in tokens, equally many a row."""
        tokenizer, source = self.loaded.tokenizer, self.model.settings.source
        n_texts = len(rows[0]) if rows else self.n_texts or 1
        sides = [_Encoded(tokenizer.encode_batch([row[side] for row in rows])) for side in range(n_texts)]
        n_types = source.n_types if isinstance(source, TokensSettings) else 0
        return TextExamples(
            sides,
            Framing(tokenizer.marks, longest_text(self.loaded)),
            with_types=n_types >= n_texts > 1,
            targets=np.zeros(len(rows), dtype=np.int64),
            decode=tokenizer.decode,
        )

    def _checked(self, text: Text) -> Sequence[str]:
        row = [text] if isinstance(text, str) else list(text) if isinstance(text, Sequence) else [text]
        if not all(isinstance(part, str) for part in row):
            raise UserError(f"classify got {str(text)[:60]!r}, which is no text.", "Give strings.")
        if len(row) not in ((1, 2) if self.n_texts is None else (self.n_texts,)):
            wanted = {None: "one text or two", 1: "single texts"}.get(self.n_texts, "pairs of texts")
            raise UserError(
                f"The model reads {wanted}, but {' ‖ '.join(row)[:60]!r} has {len(row)}.",
                "On the command line a tab parts the texts of a pair.",
            )
        return row

    def name(self, scores: Any) -> Answer:
        """One row of scores as an answer."""
        if self.labels.kind == "number":
            return Answer(float(scores), {})
        order = np.argsort(-scores, kind="stable")
        found = {self.labels.names[i]: float(scores[i]) for i in order}
        if self.labels.kind == "classes":
            return Answer(tuple(name for name, p in found.items() if p >= 0.5), found)
        return Answer(self.labels.names[order[0]], found)


class _Encoded:
    """Texts in tokens, in memory."""

    def __init__(self, rows: list[list[int]]) -> None:
        self.rows = rows
        self.lengths = np.array([len(row) for row in rows], dtype=np.int64)

    def __getitem__(self, i: int) -> NDArray[np.int64]:
        return np.array(self.rows[i], dtype=np.int64)
