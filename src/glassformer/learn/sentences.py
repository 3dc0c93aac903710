"""The lesson's text: a few sentences of words, each counting once or, with `*3` at its end, three times."""

import functools
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from glassformer.data.lines import check_text, read_lines
from glassformer.errors import UserError

# Figures must stay readable, so a lesson uses a few sentences of some words.
MOST_SENTENCES = 12
MOST_WORDS = 16
MOST_LETTERS = 24
SHOWN = 13  # words of a vocabulary that a figure shows

# What Python or browsers hold for white space, so that both cut alike.
_SPACE = re.compile(r"[\s\x1c-\x1f\x85\ufeff]+")
# They would move the cursor of a terminal.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_TIMES = re.compile(r"(.*\S) \*([0-9]{1,4})", re.DOTALL)


@dataclass(frozen=True)
class Sentence:
    words: tuple[str, ...]
    weight: float = 1.0

    def __str__(self) -> str:
        return " ".join(self.words)


@dataclass(frozen=True)
class Sentences:
    """At least one sentence with a word in it."""

    all: tuple[Sentence, ...]

    @property
    def words(self) -> list[tuple[str, ...]]:
        return [s.words for s in self.all]

    @property
    def weights(self) -> list[float]:
        return [s.weight for s in self.all]

    @property
    def first(self) -> tuple[str, ...]:
        return self.all[0].words

    @functools.cached_property
    def vocabulary(self) -> list[str]:
        return sorted({word for s in self.all for word in s.words})

    def counts(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for s in self.all:
            for word in s.words:
                found[word] += s.weight  # type: ignore[assignment]
        return found

    def shown(self) -> list[str]:
        """The vocabulary, or its commonest words if it is too large for a figure; sorted."""
        counts = self.counts()
        return sorted(sorted(self.vocabulary, key=lambda word: (-counts[word], word))[:SHOWN])

    def which(self) -> str:
        """What the shown words are."""
        n = len(self.vocabulary)
        return "the vocabulary" if n <= SHOWN else f"the {SHOWN} commonest of {n} words"

    def text(self) -> str:
        """As a reader would type it."""
        return "\n".join(str(s) if s.weight == 1 else f"{s} *{s.weight:.0f}" for s in self.all)


class Unfit(Exception):  # noqa: N818 (a verdict on the text, no error)
    """A step cannot run on this text; the message says what it needs."""


def parse(lines: Iterable[str]) -> Sentences:
    """Lines into sentences: empty lines do not count, and what is too long for a figure is cut."""
    found = []
    for line in lines:
        times = _TIMES.fullmatch(" ".join(_split(line)))
        words = _split(times[1] if times else line)[:MOST_WORDS]
        weight = max(1, int(times[2])) if times else 1
        if words:
            clean = tuple(_CONTROL.sub("\ufffd", word[:MOST_LETTERS]) for word in words)
            found.append(Sentence(clean, float(weight)))
        if len(found) == MOST_SENTENCES:
            break
    if not found:
        raise Unfit("There is no word in the text.")
    return Sentences(tuple(found))


def _split(line: str) -> list[str]:
    return [word for word in _SPACE.split(line) if word]


def read_sentences(path: Path) -> tuple[Sentences, str]:
    """The sentences of a text file, and one line on what was left out, if anything."""
    check_text(path)
    lines = [raw.decode("utf-8", errors="replace") for raw in _first_lines(path)]
    try:
        sentences = parse(lines)
    except Unfit:
        raise UserError(f"{path} holds no words.", "Write one sentence a line.") from None
    filled = [words for line in lines if (words := _split(line))]
    left_out = []
    if len(filled) > MOST_SENTENCES:
        left_out.append(f"the first {MOST_SENTENCES} sentences")
    if any(len(words) > MOST_WORDS for words in filled[:MOST_SENTENCES]):
        left_out.append(f"the first {MOST_WORDS} words of a sentence")
    if any(len(word) > MOST_LETTERS for words in filled[:MOST_SENTENCES] for word in words[:MOST_WORDS]):
        left_out.append(f"the first {MOST_LETTERS} letters of a word")
    note = f"The lesson uses {' and '.join(left_out)}, so that its figures can be read." if left_out else ""
    return sentences, note


def _first_lines(path: Path) -> list[bytes]:
    """Enough lines to fill the lesson, and one more to know that there were more."""
    found: list[bytes] = []
    for line in read_lines(path):
        found += [line] if line.strip() else []
        if len(found) > MOST_SENTENCES:
            break
    return found
