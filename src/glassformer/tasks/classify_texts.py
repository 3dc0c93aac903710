"""Labelled texts, and pairs of texts, made ready for training: tokens on disk, labels beside them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from glassformer.data.counted import counted
from glassformer.data.files import write_text
from glassformer.data.framing import Framing
from glassformer.data.labelled import Example, LabelledFiles, LabelledTexts, read_labelled
from glassformer.data.labelled_batch import TextExamples
from glassformer.data.store import TokenStore, write_store
from glassformer.data.tokenizer import Tokenizer, TokenizerKind, automatic_size, load_tokenizer, train_tokenizer
from glassformer.errors import require
from glassformer.model.settings import LearnedSettings, TokensSettings
from glassformer.tasks.classify import ClassifyRecipe
from glassformer.tasks.classify_data import DividedSubject, Prepared, divide
from glassformer.tasks.model_dir import LoadedModel
from glassformer.tasks.run import Run
from glassformer.tasks.text import KINDS

CHUNK = 10_000  # texts encoded at a time
MAX_TOKENS = 256  # of a row, if nothing else is said


@dataclass(frozen=True)
class TextSubject(DividedSubject[LabelledTexts]):
    """All labelled texts of a run; made by `read_texts`."""

    def describe(self) -> list[str]:
        others = [] if self.valid is None else self.valid.skipped(named=True)
        return [*self.train.describe(), *others, *self.describe_division()]

    def prepare(self, recipe: ClassifyRecipe, run: Run, identity: str, start: LoadedModel | None) -> Prepared:
        """Tokens on disk; what an earlier start of the same run made is used again."""
        examples = self.train.examples
        parts = {"train": [examples[i] for i in self.division.train], "valid": self._valid()}
        path, made = run.out / "tokenizer.json", run.is_prepared(identity, recipe)
        tokenizer = start.tokenizer if start is not None else None  # says so where a model reads no text
        if tokenizer is None:
            tokenizer = load_tokenizer(path) if made else make_tokenizer(parts["train"], recipe)
        if not made:
            write_text(path, tokenizer.to_json())
            for part, chosen in parts.items():
                write_store(run.data / part, encoded(chosen, tokenizer), tokenizer.vocab_size)
            run.prepared(identity)
        n_texts = self.train.n_texts
        n_types = _n_types(start) if start is not None else 2 * (n_texts == 2)
        max_tokens = min(recipe.max_tokens or MAX_TOKENS, _longest(start))
        framing = Framing(tokenizer.marks, max_tokens)
        made_ready = [
            TextExamples(
                [TokenStore(run.data / part).every(n_texts, side) for side in range(n_texts)],
                framing,
                with_types=n_types >= n_texts > 1,
                targets=targets,
                decode=tokenizer.decode,
            )
            for part, targets in (("train", self.train_targets), ("valid", self.valid_targets))
        ]
        n_cut = sum(int((framing.whole(ready.side_lengths) > max_tokens).sum()) for ready in made_ready)
        if n_cut:
            run.report.say(
                f"Not read to the end: {counted(n_cut, 'example')} of over {max_tokens} tokens (max_tokens)."
            )
        front_end = {"kind": "tokens", "vocab_size": tokenizer.vocab_size, "n_types": n_types}
        about = {"input": "text", "n_texts": n_texts, "max_tokens": max_tokens}
        return Prepared(made_ready[0], made_ready[1], front_end, tokenizer, about)

    def _valid(self) -> list[Example]:
        if self.valid is not None:
            return self.valid.examples
        return [self.train.examples[i] for i in self.division.valid]


def read_texts(train: LabelledFiles, valid: LabelledFiles | None, recipe: ClassifyRecipe) -> TextSubject:
    """Read and check everything, before anything is written."""
    many = recipe.labels == "classes" or (recipe.labels is None and bool(recipe.separator))
    texts, others = read_labelled(train, many), None if valid is None else read_labelled(valid, many)
    require(
        others is None or others.n_texts == texts.n_texts,
        "Training and validation files do not have the same number of texts a line.",
        "Name the columns: --text, --text2.",
    )
    return TextSubject(texts, others, divide(texts, others, recipe, texts.describe()))


def make_tokenizer(examples: Sequence[Example], recipe: ClassifyRecipe) -> Tokenizer:
    settings = recipe.tokenizer
    if settings.kind not in KINDS:
        return load_tokenizer(Path(settings.kind))
    kind: TokenizerKind = settings.kind  # type: ignore[assignment]

    def texts() -> Iterator[str]:
        return (text for example in examples for text in example.texts)

    size = settings.size or automatic_size(sum(map(len, texts())), kind)
    return train_tokenizer(texts(), kind, size)


def encoded(examples: Sequence[Example], tokenizer: Tokenizer) -> Iterator[list[int]]:
    """The texts in tokens; of a pair the first, then the second."""
    stream = (text for example in examples for text in example.texts)
    while chunk := list(islice(stream, CHUNK)):
        yield from tokenizer.encode_batch(chunk)


def _n_types(start: LoadedModel) -> int:
    source = getattr(start.model.settings, "source", None)
    return source.n_types if isinstance(source, TokensSettings) else 0


def _longest(start: LoadedModel | None) -> int:
    """Tokens that a trained model has positions for."""
    source = None if start is None else getattr(start.model.settings, "source", None)
    positions = source.positions if isinstance(source, TokensSettings) else None
    return positions.max_len if isinstance(positions, LearnedSettings) else 1 << 30
