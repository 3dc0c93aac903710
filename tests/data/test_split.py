"""What is held out is unknown to training; what is cut can be joined again."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.data.pairs import Pair, PairFiles, open_pairs
from glassformer.data.split import (
    HeldOut,
    default_number,
    hold_out,
    join_pieces,
    join_translated,
    split_long,
    split_sentences,
    usual_sentences,
)
from glassformer.errors import UserError


def save(folder: Path, rows: list[tuple[str, str]]) -> PairFiles:
    path = folder / "p.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in rows), encoding="utf-8")
    return open_pairs([path])


def parts(held: HeldOut) -> tuple[list[Pair], list[Pair]]:
    return [item for item in held.train() if isinstance(item, Pair)], list(held.valid())


def rows_with_repeats(n: int) -> list[tuple[str, str]]:
    return [(f"Source  {i % (n * 3 // 4)}", f"target {i % (n * 4 // 5)}") for i in range(n)]


def test_no_source_and_no_target_on_both_sides(tmp_path: Path) -> None:
    files = save(tmp_path, [*rows_with_repeats(1000), ("source 1", "TARGET  1"), ("", "bad")])
    train, valid = parts(hold_out(files, 50))
    assert 40 <= len(valid) <= 50
    assert len(train) + len(valid) == 1001  # nothing is lost
    for side in ("source", "target"):
        known, held = ({" ".join(getattr(p, side).lower().split()) for p in part} for part in (train, valid))
        assert not known & held


def test_same_seed_same_split_other_seed_another(tmp_path: Path) -> None:
    files = save(tmp_path, [(f"s {i}", f"t {i}") for i in range(500)])
    assert hold_out(files, 20).lines == hold_out(files, 20).lines
    assert len(hold_out(files, 20).lines) == 20
    assert hold_out(files, 20, seed=1).lines != hold_out(files, 20, seed=2).lines


def test_order_of_lines_does_not_matter(tmp_path: Path) -> None:
    rows = rows_with_repeats(400)
    one = {(p.source, p.target) for p in hold_out(save(tmp_path, rows), 30).valid()}
    two = {(p.source, p.target) for p in hold_out(save(tmp_path, rows[::-1]), 30).valid()}
    assert one == two


def test_a_source_with_too_many_pairs_stays_in_training(tmp_path: Path) -> None:
    files = save(tmp_path, [("often", f"t {i}") for i in range(50)] + [(f"s {i}", f"u {i}") for i in range(50)])
    assert {pair.source for pair in hold_out(files, 10).valid()}.isdisjoint({"often"})


def test_bad_lines_stay_visible_in_training(tmp_path: Path) -> None:
    held = hold_out(save(tmp_path, [("", "bad"), *((f"s {i}", f"t {i}") for i in range(20))]), 2)
    assert [item.line for item in held.train() if not isinstance(item, Pair)] == [1]


def test_default_number() -> None:
    assert [default_number(n) for n in (2, 10, 500, 5000, 29_000, 10**6)] == [1, 1, 50, 100, 580, 2000]


@pytest.mark.parametrize(
    ("rows", "number", "message"),
    [
        ([(f"s {i}", "yes" if i % 2 else "no") for i in range(100)], 10, "Only 0 of 10 pairs can be held out"),
        ([("s", "t"), ("u", "v")], 2, "2 pairs are to be held out, but .* holds 2"),
        ([("s", "t"), ("u", "v")], 0, "0 pairs are to be held out"),
    ],
)
def test_what_cannot_be_held_out(tmp_path: Path, rows: list[tuple[str, str]], number: int, message: str) -> None:
    with pytest.raises(UserError, match=message):
        hold_out(save(tmp_path, rows), number)


def texts(text: str, limit: int, count: Callable[[str], int] = len) -> list[str]:
    return [piece.text for piece in split_long(text, limit, count)]


def test_cut_at_sentences_else_spaces_else_anywhere() -> None:
    assert texts("One two. Three four! Five six?", 20) == ["One two. Three four!", "Five six?"]
    assert texts('He said "Stop." Then he left.', 18) == ['He said "Stop."', "Then he left."]
    assert texts("one two three four", 9) == ["one two", "three", "four"]
    assert texts("abcdefgh", 3) == ["abc", "def", "gh"]
    assert texts("你好。再见。谢谢。", 6) == ["你好。再见。", "谢谢。"]
    assert texts("short", 10) == ["short"]
    assert texts("", 10) == [""]


def test_limit_by_any_count() -> None:
    assert texts("a b c d e", 2, lambda text: len(text.split())) == ["a b", "c d", "e"]


def test_white_space_stays_between_pieces() -> None:
    pieces = split_long("  One two.\u2028\tThree  four.  ", 10)
    assert [(piece.text, piece.gap) for piece in pieces] == [
        ("", "  "),
        ("One two.", "\u2028\t"),
        ("Three", "  "),
        ("four.", "  "),
    ]


@given(st.text(alphabet=st.sampled_from('ab .!?。\n\u2028")') | st.characters()), st.integers(1, 12))
def test_pieces_fit_and_join_to_the_text(text: str, limit: int) -> None:
    pieces = split_long(text, limit)
    assert join_pieces(pieces) == text
    assert all(len(piece.text) <= limit for piece in pieces)
    assert all(piece.gap.strip() == "" for piece in pieces)


@given(st.text(alphabet=st.sampled_from("aé 字."), max_size=60), st.integers(1, 9))
def test_pieces_fit_by_bytes_where_a_character_does(text: str, limit: int) -> None:
    pieces = split_long(text, limit, lambda part: len(part.encode()))
    assert join_pieces(pieces) == text
    assert all(len(piece.text.encode()) <= limit or len(piece.text) == 1 for piece in pieces)


@pytest.mark.parametrize("text", ["word " * 200_000, "x" * 1_000_000, "A sentence. " * 80_000])
def test_a_megabyte_is_cut_quickly(text: str) -> None:
    pieces = split_long(text, 300)
    assert join_pieces(pieces) == text
    assert max(len(piece.text) for piece in pieces) <= 300


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("I like tea. Where is the station? It is cold!", ["I like tea.", "Where is the station?", "It is cold!"]),
        ("Mr. Smith met J. K. Rowling at 3.5 p.m. today. He left.", 2),
        ("He said: “Hello!” She left... Then", ["He said: “Hello!”", "She left...", "Then"]),
        ("She said: “Stop!” and left.", 1),  # a small letter goes on
        ("今日は。元気？「行く。」と言った。", ["今日は。", "元気？", "「行く。」と言った。"]),
        ("One line \n\n two lines\nthree", ["One line", "two lines", "three"]),
        ("a man . he runs .", ["a man .", "he runs ."]),  # who writes no capitals begins no sentence with one
        ("hello. how are you? i am fine.", ["hello.", "how are you?", "i am fine."]),
        ("she said “stop!” and left. he too", ["she said “stop!” and left.", "he too"]),
        ("It costs approx. five. Really? yes", ["It costs approx. five.", "Really?", "yes"]),
        ("My wife and I. We live here.", ["My wife and I.", "We live here."]),
        ("Henry I. Miller and vitamin C. elegans", 1),
        ("No. 5 is alive", 1),
        ("It was 1999. Then came 5. Mai.", ["It was 1999.", "Then came 5. Mai."]),
        ("1. Open it. 2. Close it.", ["1. Open it.", "2. Close it."]),
        ("", [""]),
    ],
)
def test_sentences(text: str, sentences: list[str] | int) -> None:
    found = [piece.text for piece in split_sentences(text)]
    assert (len(found) if isinstance(sentences, int) else found) == sentences


def test_where_no_ordinals_are_written_with_a_point_a_number_may_end_a_sentence() -> None:
    text = "The dog is 5. The cat is 3. Both are black."
    assert len(split_sentences(text)) == 1
    assert len(split_sentences(text, ordinals=False)) == 3


@pytest.mark.parametrize(
    ("source", "texts", "joined"),
    [
        ("今日は。元気？", ["Hello.", "How are you?"], "Hello. How are you?"),
        ("Hello. How are you?", ["今日は。", "元気？"], "今日は。元気？"),
        ("今日は。元気？", ["你好。", "你好吗？"], "你好。你好吗？"),
        ("One.\nTwo.", ["一。", "二。"], "一。\n二。"),
        ("One.  Two.", ["Eins.", "Zwei."], "Eins.  Zwei."),
    ],
)
def test_translated_sentences_have_the_spaces_of_their_script(source: str, texts: list[str], joined: str) -> None:
    assert join_translated(split_sentences(source), texts) == joined


@given(st.text(alphabet=st.sampled_from('aB .!?。\n")1') | st.characters()), st.integers(1, 3))
def test_sentences_join_to_the_text(text: str, most: int) -> None:
    pieces = split_sentences(text, most)
    assert join_pieces(pieces) == text
    assert all(piece.gap.strip() == "" for piece in pieces)
    assert len(pieces) == -(-len(split_sentences(text)) // most)


@pytest.mark.parametrize(
    "text", ["a. " * 300_000, " " * 1_000_000 + "x", "A b. " * 200_000, "\n " * 400_000, '."' * 300_000]
)
def test_sentences_of_a_megabyte_are_found_quickly(text: str) -> None:
    assert join_pieces(split_sentences(text)) == text


def test_usual_is_what_nearly_all_texts_have() -> None:
    assert usual_sentences(["One."] * 97 + ["One. Two. Three."] * 3) == 1
    assert usual_sentences(["One."] * 50 + ["One. Two."] * 50) == 2
    assert usual_sentences([]) == 1
