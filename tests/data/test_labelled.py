"""Labelled texts are found in tables and JSON lines as people write them, and what cannot be used is named."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from glassformer.data.labelled import Example, hold_out_examples, open_labelled, read_labelled
from glassformer.data.labelled_layout import Columns, holds_labels
from glassformer.errors import UserError

SST = "sentence\tlabel\nhide new secretions \t0\ncontains no wit , only labored gags \t0\ngood\t1\nfine film\t1\n"
COLA = (
    "gj04\t1\t\tOne more \"pseudo generalization and I'm giving up.\n"
    "gj04\t0\t*\tThe more he reads, more he understands.\n"
    "ks08\t1\t\tThe bird sang.\nks08\t0\t??\tThe sang bird.\nks08\t1\t\tFine.\n"
)
RTE = (
    "index\tsentence1\tsentence2\tlabel\n"
    '0\t"No weapons found.\tWeapons were found.\tnot_entailment\n'
    "1\tA place of sorrow.\tThere is sorrow.\tentailment\n"
)


def write(folder: Path, text: str | bytes, name: str = "data.tsv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def rows(path: Path, **columns: str) -> list[tuple[int, tuple[str, ...], object]]:
    found = read_labelled(open_labelled([path], Columns(**columns)))
    return [(e.line, e.texts, e.label) for e in found.examples]


def test_sst(tmp_path: Path) -> None:
    assert rows(write(tmp_path, SST))[:2] == [
        (2, ("hide new secretions",), "0"),
        (3, ("contains no wit , only labored gags",), "0"),
    ]


def test_cola_has_no_header_and_a_bare_quote(tmp_path: Path) -> None:
    found = rows(write(tmp_path, COLA))
    assert [label for _, _, label in found] == ["1", "0", "1", "0", "1"]
    assert found[0] == (1, ("One more \"pseudo generalization and I'm giving up.",), "1")


def test_rte_pairs_and_a_quote_that_never_closes(tmp_path: Path) -> None:
    assert rows(write(tmp_path, RTE)) == [
        (2, ('"No weapons found.', "Weapons were found."), "not_entailment"),
        (3, ("A place of sorrow.", "There is sorrow."), "entailment"),
    ]


@pytest.mark.parametrize("change", ["plain", "bom", "crlf", "gz", "no last newline"])
def test_the_same_in_every_dress(tmp_path: Path, change: str) -> None:
    data = SST.encode()
    data = {
        "plain": data,
        "bom": b"\xef\xbb\xbf" + data,
        "crlf": data.replace(b"\n", b"\r\n"),
        "gz": gzip.compress(data),
        "no last newline": data[:-1],
    }[change]
    assert rows(write(tmp_path, data, "a.tsv.gz" if change == "gz" else "a.tsv")) == rows(write(tmp_path, SST))


def test_csv_with_quotes_and_unknown_names(tmp_path: Path) -> None:
    text = 'id,words,mood\n1,"good, really",up\n2,"bad ""thing""",down\n3,so bad,down\n4,so good,up\n'
    assert rows(write(tmp_path, text, "a.csv"), text="words", label="mood")[:2] == [
        (2, ("good, really",), "up"),
        (3, ('bad "thing"',), "down"),
    ]


@pytest.mark.parametrize("order", ["text first", "label first"])
def test_two_columns_without_names(tmp_path: Path, order: str) -> None:
    pairs = [("a rather long text", "x"), ("another long text here", "y"), ("a third of them", "x"), ("four", "y")] * 2
    lines = [f"{t}\t{y}" if order == "text first" else f"{y}\t{t}" for t, y in pairs]
    assert [(t[0], y) for _, t, y in rows(write(tmp_path, "\n".join(lines)))] == pairs


def test_numbers_of_rows_that_the_header_does_not_name(tmp_path: Path) -> None:
    path = write(tmp_path, "text\tlabel\n" + "".join(f"{i}\tfilm number {i}\t{i % 3}\n" for i in range(9)))
    assert rows(path)[:2] == [(2, ("film number 0",), "0"), (3, ("film number 1",), "1")]
    assert rows(path, text="text", label="label") == rows(path)
    assert "the first column is taken for row numbers" in open_labelled([path]).notes[1]
    with pytest.raises(UserError, match=r"data.tsv has 3 columns, but its lines have 2"):
        rows(write(tmp_path, "text\tid\tlabel\ngood\tyes\nbad\tno\n"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (",\n,\n", "holds nothing that can be read"),
        ("a" * 2**20 + "\n", "holds nothing that can be read"),
        ("\u3000\n", "nothing but empty lines"),
    ],
)
def test_tables_without_a_row(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        rows(write(tmp_path, text, "a.csv"))


def test_columns_by_number(tmp_path: Path) -> None:
    text = "7\tgood it is\tnot so\tA\n8\tbad it is\toh well\tB\n"
    assert rows(write(tmp_path, text), text="2", text2="3", label="4")[1] == (2, ("bad it is", "oh well"), "B")


def test_json_lines(tmp_path: Path) -> None:
    records = [
        {"premise": "a", "hypothesis": "b", "label": 1},
        {"premise": "c", "hypothesis": "d", "label": True},
        {"premise": "e", "hypothesis": "f", "label": ["x", "y"]},
        {"premise": "g", "hypothesis": "h", "label": None},
    ]
    path = write(tmp_path, "\n".join(map(json.dumps, records)), "a.jsonl")
    found = read_labelled(open_labelled([path]))
    assert [(e.texts, e.label) for e in found.examples] == [
        (("a", "b"), "1"),
        (("c", "d"), "true"),
        (("e", "f"), ("x", "y")),
    ]
    assert (found.bad[0][1].line, found.bad[0][1].reason) == (4, "has no label in the field label")


def test_other_names_of_glue(tmp_path: Path) -> None:
    mrpc = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tone thing\tanother thing\n0\t9\t9\tit is\tis it\n"
    assert rows(write(tmp_path, mrpc, "m.tsv"))[0] == (2, ("one thing", "another thing"), "1")
    qnli = "index\tquestion\tsentence\tlabel\n0\tWhen?\tIn May.\tentailment\n"
    assert rows(write(tmp_path, qnli, "q.tsv"))[0] == (2, ("When?", "In May."), "entailment")
    sts = "index\tgenre\tsentence1\tsentence2\tscore\n0\tmain\tA plane.\tAn air plane.\t4.8\n"
    assert rows(write(tmp_path, sts, "s.tsv"))[0] == (2, ("A plane.", "An air plane."), "4.8")


def test_bad_lines_are_named(tmp_path: Path) -> None:
    found = read_labelled(open_labelled([write(tmp_path, SST + "\t1\nno label\t \nthree\tcells\there\n")]))
    assert [(bad.line, bad.reason) for _, bad in found.bad] == [
        (6, "has an empty text"),
        (7, "has an empty label"),
        (8, "has 3 columns, not 2"),
    ]
    assert "  1 line that has an empty text (6)" in found.describe()


@pytest.mark.parametrize(
    ("text", "columns", "said"),
    [
        ("one\ntwo\n", {}, "has one column"),
        (SST, {"label": "mood"}, "no column 'mood'"),
        (SST, {"label": "3"}, "no column '3'"),
        (SST, {"text": "sentence", "label": "sentence"}, "different columns"),
        ("a\tb c\td\n1\t2 3\t4\n5\t6 7\t8\n", {}, "which column is the label"),
        ("sentence\tlabel\n \t1\n", {}, "no labelled text"),
    ],
)
def test_useless_files(tmp_path: Path, text: str, columns: dict[str, str], said: str) -> None:
    with pytest.raises(UserError, match=said) as raised:
        rows(write(tmp_path, text), **columns)
    assert "data.tsv" in str(raised.value)


def test_json_without_labels(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="it has id, words"):
        open_labelled([write(tmp_path, '{"id": 1, "words": "x"}\n', "a.jsonl")])


def test_held_out_keeps_classes_and_parts_no_duplicates() -> None:
    texts = [f"text {i % 150}" for i in range(300)]
    classes = ["rare" if i % 150 < 12 else "common" for i in range(300)]
    held = set(hold_out_examples(texts, classes, 50))
    assert 40 <= len(held) <= 55
    assert {texts[i] for i in held}.isdisjoint({texts[i] for i in range(300) if i not in held})
    assert sum(classes[i] == "rare" for i in held) == pytest.approx(4, abs=2)
    assert held == set(hold_out_examples(texts, classes, 50))


def test_place() -> None:
    assert Example(Path("a.tsv"), 7, ("x",), "y").place == "a.tsv line 7"


def test_a_file_without_names_is_read_as_the_one_before(tmp_path: Path) -> None:
    train = open_labelled([write(tmp_path, "x\tlong text here\ny\tmore of it\nx\tand so on\ny\tyes\n", "a.tsv")])
    other = write(tmp_path, "a very long label indeed\tno\n", "b.tsv")
    found = read_labelled(open_labelled([other], like=train)).examples
    assert [(e.texts, e.label) for e in found] == [(("no",), "a very long label indeed")]


@pytest.mark.parametrize(
    ("name", "text", "says_so"),
    [
        ("a.tsv", SST, True),
        ("a.csv", "text;category\nGood;film\n", True),
        ("a.jsonl", '{"text": "Good", "label": "film"}\n', True),
        ("a.tsv", "source\ttarget\nHi\tHallo\n", False),
        ("a.csv", "en,de,score\nHi,Hallo,1\n", False),
        ("a.tsv", "Hi\tHallo\n", False),
        ("a.txt", "label\n", False),
        ("a.tsv", "", False),
        ("a.tsv", COLA, True),
        ("a.tsv", "".join(f"some text {i}\t{i % 3}\n" for i in range(12)), True),
        ("a.csv", "".join(f"{'good' if i % 2 else 'bad'},some text {i}\n" for i in range(12)), True),
        ("a.tsv", "".join(f"some text {i}\t{i % 3}\n" for i in range(11)), False),  # too few to be sure
        ("a.tsv", "".join(f"text{i}\t{i % 3}\n" for i in range(12)), False),  # a list of words
        ("a.tsv", "".join(f"some text {i}\tein Text {i % 3}\n" for i in range(12)), False),
        ("a.tsv", "".join(f"some text {i}\tText{i}\n" for i in range(12)), False),
        ("a.tsv", "en\tde\n" + "".join(f"some text {i}\t{i % 3}\n" for i in range(12)), False),
    ],
)
def test_a_file_says_that_there_are_labels(tmp_path: Path, name: str, text: str, says_so: bool) -> None:
    assert holds_labels(write(tmp_path, text, name)) is says_so


@pytest.mark.parametrize(
    ("name", "head", "labels"),
    [
        ("a.csv", "text;price", [f"{i % 19},{i % 89:02d}" for i in range(300)]),
        ("a.tsv", "text\ttags", [f"t{i},t{i + 1},t{i * i % 7}" for i in range(30)]),
        ("a.tsv", "Review\tmood", ["good", "bad"]),
    ],
)
def test_a_header_with_one_known_name(tmp_path: Path, name: str, head: str, labels: list[str]) -> None:
    delimiter = ";" if name.endswith("csv") else "\t"
    lines = [f"some words, number {i}{delimiter}{label}" for i, label in enumerate(labels)]
    found = rows(write(tmp_path, "\n".join([head, *lines]), name))
    assert [(line, label) for line, _, label in found] == [(i + 2, label) for i, label in enumerate(labels)]
    assert found[0][1] == ("some words, number 0",)


@pytest.mark.parametrize("label", ["noun", "0.5"])
def test_a_text_that_might_be_a_name_is_none(tmp_path: Path, label: str) -> None:
    labels = ["noun", "verb"] * 4 if label == "noun" else ["0.25", "1.5", "2.5", "3.5"] * 2
    text = f"question\t{label}\n" + "".join(f"word{i}\t{y}\n" for i, y in enumerate(labels))
    assert rows(write(tmp_path, text))[0] == (1, ("question",), label)


def test_an_empty_label_is_none_of_many(tmp_path: Path) -> None:
    files = open_labelled([write(tmp_path, SST + "no label\t \n")])
    found = read_labelled(files, many=True)
    assert (found.examples[-1].texts, found.examples[-1].label, found.bad) == (("no label",), (), [])


def test_of_very_many_classes_only_some_are_held_out() -> None:
    classes = [f"class {i % 500}" for i in range(1500)]
    texts = [f"text {i % 1450}" for i in range(1500)]
    held = hold_out_examples(texts, classes)
    assert 80 <= len(held) <= 120  # of 100 that are wanted
    assert max(Counter(classes[i] for i in held).values()) == 1
    assert {texts[i] for i in held}.isdisjoint({texts[i] for i in range(1500) if i not in set(held)})
    assert held == hold_out_examples(texts, classes)


def test_small_classes_give_one_each_while_they_are_few() -> None:
    classes = [*(["large"] * 900), *(f"class {i % 30}" for i in range(90))]
    held = hold_out_examples([f"text {i}" for i in range(990)], classes)
    assert len({classes[i] for i in held}) == 31


def test_fingerprint_changes_with_the_columns(tmp_path: Path) -> None:
    path = write(tmp_path, "text\tother\tlabel\na\tb\tx\n")
    found = [read_labelled(open_labelled([path], Columns(name, label="label"))) for name in ("text", "other")]
    assert found[0].fingerprint() != found[1].fingerprint()
    again = read_labelled(open_labelled([path], Columns("text", label="label")))
    assert again.fingerprint() == found[0].fingerprint()
