"""Lines into sentences."""

import gzip
from pathlib import Path

import pytest

from glassformer.errors import UserError
from glassformer.learn.sentences import MOST_LETTERS, MOST_SENTENCES, MOST_WORDS, Unfit, parse, read_sentences


def test_a_line_is_a_sentence_and_a_star_counts_it_more_often() -> None:
    sentences = parse(["find my files *3", "", "  find\u00a0photos\t"])
    assert sentences.words == [("find", "my", "files"), ("find", "photos")]
    assert sentences.weights == [3, 1]
    assert sentences.vocabulary == ["files", "find", "my", "photos"]
    assert sentences.counts() == {"find": 4, "my": 3, "files": 3, "photos": 1}
    assert parse(sentences.text().split("\n")) == sentences


@pytest.mark.parametrize(("line", "words"), [("*3", ("*3",)), ("a*3", ("a*3",)), ("a * 3", ("a", "*", "3"))])
def test_a_star_elsewhere_is_a_word(line: str, words: tuple[str, ...]) -> None:
    assert parse([line]).words == [words]


def test_control_characters_do_not_reach_a_terminal() -> None:
    assert parse(["a\x1b[31mred\x07 b"]).words == [("a\ufffd[31mred\ufffd", "b")]


def test_no_weight_is_below_one() -> None:
    assert parse(["a *0"]).weights == [1]


def test_what_is_too_long_for_a_figure_is_cut() -> None:
    sentences = parse(["x " * 100, "y" * 100, *(f"line {i}" for i in range(100))])
    assert len(sentences.all) == MOST_SENTENCES
    assert len(sentences.first) == MOST_WORDS
    assert sentences.words[1] == ("y" * MOST_LETTERS,)


def test_the_commonest_words_are_shown_in_order() -> None:
    sentences = parse([" ".join(f"w{i:02}" for i in range(16)), "w15 w14", "w15 zz"])
    assert sentences.shown() == [*(f"w{i:02}" for i in range(11)), "w14", "w15"]


def test_nothing_is_unfit() -> None:
    with pytest.raises(Unfit, match="There is no word"):
        parse(["", "  \t"])


def test_a_file_says_what_it_leaves_out(tmp_path: Path) -> None:
    short, long = tmp_path / "short.txt", tmp_path / "long.gz"
    short.write_text("find my files\n\nfind photos", encoding="utf-8")
    assert read_sentences(short) == (parse(["find my files", "find photos"]), "")
    long.write_bytes(gzip.compress(("a " * 20 + "b" * 30 + "\n" + "c\n" * 50).encode()))
    sentences, note = read_sentences(long)
    assert len(sentences.all) == MOST_SENTENCES
    assert note == (
        "The lesson uses the first 12 sentences and the first 16 words of a sentence, so that its figures can be read."
    )


def test_bytes_that_are_no_text_do_not_stop_the_lesson(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one two\nthree\nfour\xff five\n")
    assert read_sentences(path)[0].words[2] == ("four\ufffd", "five")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\n \n", "nothing but empty lines"),
        (b"\xff\xfea\0", "UTF-16"),
        ("\ufeff\u2003\n\u00a0".encode(), "nothing but empty lines"),
    ],
)
def test_a_file_without_words_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(UserError, match=said):
        read_sentences(path)
