"""The check names what is wrong, by line, and refuses what cannot be learned from."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from glassformer.data.check import PairReport, check_pairs, explain
from glassformer.data.pairs import open_pairs
from glassformer.data.scripts import dominant_script, is_japanese, spaceless_script
from glassformer.errors import UserError

GOOD = [(f"the house number {i} is here", f"das Haus Nummer {i} steht hier") for i in range(50)]


def save(folder: Path, rows: list[tuple[str, str]], name: str = "p.tsv") -> Path:
    path = folder / name
    path.write_text("".join(f"{source}\t{target}\n" for source, target in rows), encoding="utf-8", newline="")
    return path


def check(folder: Path, rows: list[tuple[str, str]], valid: list[tuple[str, str]] | None = None) -> PairReport:
    held = None if valid is None else open_pairs([save(folder, valid, "v.tsv")])
    return check_pairs(open_pairs([save(folder, rows)]), held)


def suspicious(folder: Path, rows: list[tuple[str, str]]) -> dict[str, tuple[int, ...]]:
    return {finding.reason: finding.lines for finding in check(folder, rows).suspicious}


def test_counts_and_lengths(tmp_path: Path) -> None:
    report = check(tmp_path, [("a b", "x"), ("a b c d", "xyz y"), ("A  b", "X"), ("e", "z z z z z")])
    assert (report.n_pairs, report.n_bad, report.n_duplicates) == (4, 0, 1)
    words = report.source.words
    assert (words.total, words.mean, words.median, words.p95, words.longest) == (9, 2.25, 2, 4, 4)
    assert report.target.characters.longest == 9
    assert (report.source.n_distinct, report.target.n_distinct) == (3, 3)
    assert report.same_target == 0.5


def test_side_of_many_lines_is_suspicious(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    rows = [*GOOD, ("the house\n" * 11 + "is", "das Haus\n" * 11 + "ist"), ("the\nhouse", "das\nHaus")]
    path.write_text("".join(json.dumps({"source": s, "target": t}) + "\n" for s, t in rows))
    [found] = check_pairs(open_pairs([path])).suspicious
    assert str(found) == "1 line that has over 10 line breaks on a side, as where a quote closes too late (51)"


def test_good_pairs_raise_no_suspicion(tmp_path: Path) -> None:
    report = check(tmp_path, GOOD)
    assert report.bad == report.suspicious == ()
    assert (report.source.script, report.target.script) == ("Latin", "Latin")


def test_suspicious_lines_by_number(tmp_path: Path) -> None:
    rows = [*GOOD, ("the same sentence", "the same sentence"), ("a bell \x07 rings", "eine Glocke läutet")]
    rows += [
        ("a rather long sentence about a house", "Haus"),
        ("the mÃ¼ller", "der Müller"),
        ("broken \ufffd", "kaputt"),
    ]
    assert suspicious(tmp_path, rows) == {
        "has the same text on both sides": (51,),
        "has control characters": (52,),
        "has a length ratio over 3 times off the usual one": (53,),
        "has garbled characters, as from a wrong encoding": (54, 55),
    }


def test_usual_length_ratio_is_the_files_own(tmp_path: Path) -> None:
    short = [(f"{word} " * 12 + str(i), f"{i} 字") for i, (word, _) in enumerate(GOOD)]
    assert suspicious(tmp_path, short) == {}


def test_usual_length_ratio_is_told_by_short_pairs_too(tmp_path: Path) -> None:
    short = [(f"good day no {i:03d}", f"guten Tag {i:04d}") for i in range(100)]
    odd = ("Hello my dear friend", "sehr lang " * 40)
    assert suspicious(tmp_path, [*short, odd]) == {"has a length ratio over 3 times off the usual one": (101,)}
    assert suspicious(tmp_path, [*short, ("a", "kurz und gut")]) == {}


def test_scripts_mixed_up(tmp_path: Path) -> None:
    rows = [(f"the house {i}", f"дом номер {i}") for i in range(30)]
    rows += [
        ("дом", "the house"),
        ("дом", "тот дом"),
        ("the house", "the other house"),
        ("12:30", "12:30 Uhr"),
        ("7", "7."),
    ]
    assert suspicious(tmp_path, rows) == {
        "seems to have its sides swapped": (31,),
        "has a source that is not in Latin script, as most are": (32,),
        "has a target that is not in Cyrillic script, as most are": (33, 34),
    }


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Hello", "Latin"),
        ("größer", "Latin"),
        ("ＡＢＣ", "Latin"),
        ("Привет, Tom", "Cyrillic"),
        ("東京タワーへ行きます", "Han"),
        ("안녕하세요 Tom", "Hangul"),
        ("ﾃｽﾄ", "Han"),
        ("สวัสดี", "Thai"),
        ("12 + 3 = ½ ª µ", ""),
        ("", ""),
    ],
)
def test_dominant_script(text: str, script: str) -> None:
    assert dominant_script(text) == script


@pytest.mark.parametrize(
    ("texts", "script"),
    [
        (["你好吗？", "我用 Python 写 程序，今天天气很好。"], "Han"),
        (["สวัสดีครับ", "ขอบคุณมาก"], "Thai"),
        (["ខ្ញុំស្រឡាញ់អ្នក"], "Khmer"),
        (["今天 天气 很 好 。"], ""),  # its words are parted already
        (["안녕하세요"], ""),
        (["Donaudampfschifffahrt"], ""),
        (["", "12:30"], ""),
        ([], ""),
    ],
)
def test_scripts_without_spaces(texts: list[str], script: str) -> None:
    assert spaceless_script(texts) == script


def test_japanese_is_told_by_its_kana() -> None:
    assert is_japanese(["東京タワーへ行きます", "駅"])
    assert not is_japanese(["我喜欢这个优の良品的商店，你呢？"])
    assert not is_japanese([])


def test_bad_lines_are_counted_with_first_numbers(tmp_path: Path) -> None:
    report = check(tmp_path, [*GOOD, *[("", "empty")] * 7, ("a\tb", "c")])
    assert report.n_bad == 8
    assert [(f.reason, f.n, f.lines) for f in report.bad] == [
        ("has an empty source side", 7, (51, 52, 53, 54, 55)),
        ("has 3 columns, not 2", 1, (58,)),
    ]


def test_overlap_with_validation(tmp_path: Path) -> None:
    valid = [
        ("The house number 3 is here", "das Haus Nummer 3  steht hier"),
        (GOOD[4][0], "anders"),
        ("new", "neu"),
        ("", "x"),
    ]
    overlap = check(tmp_path, GOOD, valid).valid
    assert overlap is not None
    assert (overlap.n_pairs, overlap.n_bad, overlap.n_same_pairs, overlap.n_same_sources) == (3, 1, 1, 2)
    # the same words with the sides swapped are another pair
    swapped = check(tmp_path, GOOD, [(target, source) for source, target in GOOD]).valid
    assert swapped is not None
    assert swapped.n_same_pairs == 0


def test_report_is_plain_data(tmp_path: Path) -> None:
    report = check(tmp_path, [*GOOD, ("", "x")], GOOD[:2])
    assert json.loads(json.dumps(asdict(report)))["n_pairs"] == 50


def test_explanation_says_all_in_sentences(tmp_path: Path) -> None:
    rows = [*GOOD, ("", "x"), ("same", "same"), *[("good day", "guten Tag")] * 30]
    text = explain(check(tmp_path, rows, [*GOOD[:2], ("new", "neu")]))
    assert f"{tmp_path / 'p.tsv'}: 81 pairs." in text
    assert "29 pairs repeat another one." in text
    assert "1 line that has an empty source side (51)" in text
    assert "1 line that has the same text on both sides (52)" in text
    assert "Also in training: 2 of the pairs, 2 of the sources." in text
    assert "Warning: 37% of the pairs have one and the same target." in text
    assert "Warning: 36% of the pairs repeat others." in text
    assert "Warning: 67% of the validation sources are in training too" in text


def test_many_faults_are_shortened(tmp_path: Path) -> None:
    rows = [*GOOD, *[("a" + "\tb" * n, "c") for n in range(1, 12)], *[("", "x")] * 20]
    text = explain(check(tmp_path, rows))
    assert "20 lines that have an empty source side (62, 63, 64, 65, 66, …)" in text
    assert "4 lines with other faults" in text
    assert "Warning: 38% of the lines cannot be used." in text


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", "same"), ("b", "same"), ("c", "Same ")], "The target is the same in all 3 pairs"),
        ([("", "a"), ("", "b")], r"holds no usable pair \(line 1 has an empty source side\)"),
        ([("a", "b"), ("", "c")], "holds only one usable pair"),
    ],
)
def test_nothing_to_learn(tmp_path: Path, rows: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(UserError, match=message):
        check(tmp_path, rows)


def test_useless_validation(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"v\.tsv holds no usable pair"):
        check(tmp_path, GOOD, [("", "a")])


def test_many_identical_sides_are_warned_of(tmp_path: Path) -> None:
    same = [(f"the same {i}", f"the same {i}") for i in range(25)]
    warning = "of the pairs have the same text on both sides."
    assert f"Warning: 33% {warning}" in explain(check(tmp_path, [*GOOD, *same]))
    assert warning not in explain(check(tmp_path, [*GOOD, *same[:5]]))
    assert warning not in explain(check(tmp_path, [*GOOD[:2], *same[:2]]))


def test_few_different_targets_are_no_reason_to_warn(tmp_path: Path) -> None:
    warning = "one and the same target"
    assert warning not in explain(check(tmp_path, GOOD[:3]))
    assert warning not in explain(check(tmp_path, [*GOOD[:3], ("again it is", GOOD[0][1])]))
    same = [(f"it is {i}", "es ist so") for i in range(3)]
    assert f"50% of the pairs have {warning}" in explain(check(tmp_path, [*GOOD[:3], *same]))
