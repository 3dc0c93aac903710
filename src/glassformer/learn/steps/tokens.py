"""Text into tokens: words, letters or bytes, and the pieces in between."""

from collections import Counter
from itertools import pairwise

from glassformer.ladder.bpe import WORD, Bpe, train
from glassformer.learn.figures import Bars, Figure, Pieces
from glassformer.learn.question import Question
from glassformer.learn.sentences import Sentences, Unfit
from glassformer.learn.step import Shown

LETTERS = 24  # of the text that is shown
MERGES = 10


def make_tokenizing(sentences: Sentences) -> Shown:
    text = " ".join(sentences.first)
    letters = list(text[:LETTERS])
    data = "".join(letters).encode("utf-8")
    known = {letter for words in sentences.words for letter in " ".join(words)}
    figures: list[Figure] = [
        Pieces(
            rows=["words", "letters", "bytes"],
            tokens=[
                "".join(letters).split(),
                [show_spaces(letter) for letter in letters],
                [f"{byte:02x}" for byte in data],
            ],
            caption="The same text, cut in three ways.",
        ),
        Bars(
            labels=["words", "letters", "bytes"],
            values=[float(len(sentences.vocabulary)), float(len(known)), 256.0],
            caption="How many tokens a vocabulary needs: the words and letters seen so far, or all bytes there are.",
        ),
    ]
    question = Question(
        text="How many bytes are shown?",
        answers=[float(len(data))],
        hint="Most letters are one byte; letters with marks, and those of other scripts, are two or more.",
    )
    return Shown(figures, question)


def show_spaces(token: str) -> str:
    return token.replace(" ", "␣")


def learn_merges(sentences: Sentences) -> Bpe:
    """The first merges that the text teaches."""
    texts = [str(s) for s in sentences.all for _ in range(int(s.weight))]
    n_single = 256 + len({letter for text in texts for letter in text})
    return train(texts, n_single + MERGES, unit="characters")


def count_merges(bpe: Bpe, sentences: Sentences) -> list[float]:
    """How often each pair came when it was joined."""
    words: Counter[str] = Counter()
    for sentence in sentences.all:
        for word in WORD.findall(str(sentence)):
            words[word] += int(sentence.weight)
    alphabet = {letter for word in words for letter in word}
    times = []
    for k, pair in enumerate(bpe.merges):
        before = Bpe("characters", alphabet, bpe.merges[:k])
        found = ((list(pairwise(before.tokens(word))), n) for word, n in words.items())
        times.append(float(sum(pairs.count(pair) * n for pairs, n in found)))
    return times


def make_bpe(sentences: Sentences) -> Shown:
    bpe = learn_merges(sentences)
    merges = bpe.merges
    if not merges:
        raise Unfit("This step needs letters that come together more than once.")
    alphabet = {letter for s in sentences.all for letter in str(s)}
    text = str(sentences.all[0])[:LETTERS]
    stages = sorted({0, len(merges) // 2, len(merges)})
    cut = [[show_spaces(t) for t in Bpe("characters", alphabet, merges[:k]).tokens(text)] for k in stages]
    written = [(show_spaces(left), show_spaces(right)) for left, right in merges]
    figures: list[Figure] = [
        Bars(
            labels=[f"{left} + {right} → {left}{right}" for left, right in written],
            values=count_merges(bpe, sentences),
            caption="The pairs that are joined, one after the other, and how often each came just then.",
        ),
        Pieces(
            rows=[f"merges: {k}" for k in stages],
            tokens=cut,
            caption="The same text after no, some and all merges (␣ is a space).",
        ),
    ]
    question = Question(
        text=f"How many pieces is the text cut into after {len(merges)} merges?",
        answers=[float(len(cut[-1]))],
        hint="Count the pieces in the last row.",
    )
    return Shown(figures, question)
