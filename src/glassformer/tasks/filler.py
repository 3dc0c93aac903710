"""A model that fills blanks in use: texts with ___ in, the best words and their probabilities out.

A blank is one token. Where the vocabulary has words and pieces of words, only those are offered that can stand alone;
where it has single characters, each underscore is one of them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import models

from glassformer.data.batch import pad
from glassformer.errors import UserError, require
from glassformer.model import EncoderOnly
from glassformer.model.positions import LearnedPositions
from glassformer.model.settings import TokenHeadSettings
from glassformer.tasks.model_dir import LoadedModel

BLANK = re.compile(r"_{2,}|\[MASK\]|<mask>")
ROWS = 32  # texts at once


@dataclass(frozen=True)
class Guess:
    word: str
    p: float


@dataclass(frozen=True)
class Filled:
    """A text with the best word in each blank, and for each blank the best words."""

    text: str
    blanks: tuple[tuple[Guess, ...], ...]


@dataclass(frozen=True)
class BlankRow:
    """A text in tokens."""

    ids: NDArray[np.int64]
    blanks: tuple[int, ...]  # the places of the masks
    spaced: tuple[bool, ...]  # whether a space stands before


class Filler:
    """Holds a loaded model and its tokenizer."""

    def __init__(self, loaded: LoadedModel) -> None:
        model = loaded.model
        fits = isinstance(model, EncoderOnly) and isinstance(model.settings.head, TokenHeadSettings)
        require(
            loaded.task == "fill" and fits and loaded.tokenizer.marks.mask is not None,
            f"{loaded.path} is a model for {loaded.task}, not for filling blanks.",
            f"Use `glassformer {loaded.task}`.",
        )
        assert isinstance(model, EncoderOnly)
        self.loaded, self.model, self.tokenizer = loaded, model, loaded.tokenizer
        self.in_pieces = isinstance(self.tokenizer.core.model, models.WordPiece)
        n = self.tokenizer.vocab_size
        shown = ["" if i in self.tokenizer.special else self.tokenizer.tokens([i])[0] for i in range(n)]
        goes_on = [self.tokenizer.piece(i).startswith("##") for i in range(n)]
        whole = torch.tensor([bool(text.strip()) and "\N{REPLACEMENT CHARACTER}" not in text for text in shown])
        spaced = torch.tensor([text.startswith(" ") and len(text) > 1 for text in shown])
        self.by_characters = not self.in_pieces and not bool(spaced.any())
        # By whether a space stands before the blank: which tokens may fill it.
        alone = whole & ~torch.tensor(goes_on) if self.in_pieces else whole & ~spaced
        self.fitting = {True: alone if self.in_pieces or self.by_characters else whole & spaced, False: alone}

    @property
    def context(self) -> int | None:
        """The most tokens that the model can read at once; None where nothing limits it."""
        positions = getattr(self.model.source, "positions", None)
        return int(positions.table.shape[0]) if isinstance(positions, LearnedPositions) else None

    def fill(self, texts: Sequence[str], top: int = 5) -> list[Filled]:
        """The `top` best words for each blank of each text."""
        require(not isinstance(texts, str), "fill got one string.", "Give a list of texts.")
        require(top >= 1, f"top is {top}, but at least one word is offered.", "Give 1 or more.")
        rows = [self.encode(text) for text in texts]
        order = sorted(range(len(rows)), key=lambda i: len(rows[i].ids))
        answers: dict[int, Filled] = {}
        for begin in range(0, len(rows), ROWS):
            part = order[begin : begin + ROWS]
            for i, found in zip(part, self._guess([rows[j] for j in part], top), strict=True):
                answers[i] = Filled(self._join(texts[i], found), found)
        return [answers[i] for i in range(len(rows))]

    def encode(self, text: str) -> BlankRow:
        """The text as the model reads it, and where its blanks are."""
        if not isinstance(text, str):
            raise UserError(f"fill got {str(text)[:60]!r}, which is no text.", "Give strings.")
        marks, places, spaced = self.tokenizer.marks, list[int](), list[bool]()
        assert marks.mask is not None
        ids = [] if marks.start is None else [marks.start]
        parts, blanks = BLANK.split(text), BLANK.findall(text)
        require(bool(blanks), f"There is no blank in {text[:60]!r}.", "Write ___ where a word is missing.")
        for part, blank in zip(parts, [*blanks, None], strict=True):
            has_space = part.endswith(" ") and not self.by_characters
            # The space belongs to the word that follows it, if the vocabulary has it so.
            ids += self.tokenizer.encode(part[:-1] if has_space and blank and not self.in_pieces else part)
            if blank is not None:
                n = len(blank) if self.by_characters and blank.startswith("_") else 1
                places += range(len(ids), len(ids) + n)
                ids += [marks.mask] * n
                spaced += [has_space] * n
        ids.append(marks.ends[0])
        if self.context is not None and len(ids) > self.context:
            raise UserError(
                f"The text that begins {text[:40]!r} has {len(ids):,} tokens, but the model reads {self.context:,}.",
                "Give a shorter part of it.",
            )
        return BlankRow(np.array(ids, dtype=np.int64), tuple(places), tuple(spaced))

    @torch.inference_mode()
    def _guess(self, rows: list[BlankRow], top: int) -> list[tuple[tuple[Guess, ...], ...]]:
        ids, keep = pad([row.ids for row in rows])
        device = next(self.model.parameters()).device
        states = self.model.states(ids.to(device), None if bool(keep.all()) else keep.to(device)).x
        found = []
        for row, x in zip(rows, states, strict=True):
            guesses = []
            scores = self.model.head(x[None, list(row.blanks)])[0].float().cpu()
            for blank, spaced in zip(scores, row.spaced, strict=True):
                p = blank.softmax(dim=-1)[: self.tokenizer.vocab_size]
                fits = self.fitting[spaced]
                best = p.masked_fill(~fits, -1.0).topk(min(top, int(fits.sum())))
                words = self.tokenizer.tokens(best.indices.tolist())
                named = zip(words, best.values.tolist(), strict=True)
                guesses.append(tuple(Guess(w if self.by_characters else w.strip(), p) for w, p in named))
            found.append(tuple(guesses))
        return found

    def _join(self, text: str, found: tuple[tuple[Guess, ...], ...]) -> str:
        """The text with the best words in its blanks."""
        words = iter(guesses[0].word for guesses in found)

        def fill(blank: re.Match[str]) -> str:
            n = len(blank[0]) if self.by_characters and blank[0].startswith("_") else 1
            return "".join(next(words) for _ in range(n))

        return BLANK.sub(fill, text)
