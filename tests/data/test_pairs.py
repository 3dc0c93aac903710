"""Pairs come out of every kind of file alike, bad lines by number, and useless files with one clear sentence."""

import gzip
import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glassformer.data.pairs import BadLine, Pair, fingerprint, open_pairs, read_pairs
from glassformer.errors import UserError

PAIRS = [("a house", "ein Haus"), ("the sea", "das Meer"), ("Größe 2", "размер 二")]
TSV = "".join(f"{source}\t{target}\n" for source, target in PAIRS)


def save(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def read(*paths: Path, source: str | None = None, target: str | None = None) -> list[Pair | BadLine]:
    return list(read_pairs(open_pairs(paths, source, target)))


def sides(*paths: Path, source: str | None = None, target: str | None = None) -> list[tuple[str, str]]:
    items = read(*paths, source=source, target=target)
    return [(item.source, item.target) for item in items if isinstance(item, Pair)]


def refusal(*paths: Path, source: str | None = None, target: str | None = None) -> str:
    with pytest.raises(UserError) as error:
        read(*paths, source=source, target=target)
    return str(error.value)


@pytest.mark.parametrize("name", ["p.tsv", "p.tsv.gz", "p.txt", "p", "p.TSV"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_tsv(tmp_path: Path, name: str, bom: str, newline: str, last: bool) -> None:
    text = bom + TSV.replace("\n", newline)
    path = save(tmp_path, name, text if last else text.removesuffix(newline))
    assert read(path) == [Pair(i, *pair) for i, pair in enumerate(PAIRS, start=1)]


def test_gzip_is_told_by_its_content(tmp_path: Path) -> None:
    assert sides(save(tmp_path, "p.tsv", gzip.compress(TSV.encode()))) == PAIRS


def test_tsv_header_by_obvious_names(tmp_path: Path) -> None:
    path = save(tmp_path, "p.tsv", "id\tTarget\tsource\n7\tein\tone\n8\tzwei\ttwo\n")
    assert read(path) == [Pair(2, "one", "ein"), Pair(3, "two", "zwei")]
    assert "source is the source, Target the target" in open_pairs([path]).notes[0]


def test_numbers_of_rows_that_the_header_does_not_name(tmp_path: Path) -> None:
    path = save(tmp_path, "p.tsv", "en\tde\n1\tone\tein\n2\ttwo\tzwei\n")
    assert sides(path) == [("one", "ein"), ("two", "zwei")] == sides(path, source="en", target="de")
    assert "the first column is taken for row numbers" in open_pairs([path]).notes[1]


@pytest.mark.parametrize("text", ["source\tid\ttarget\none\tein\ntwo\tzwei\n", "en\tde\na\tb\tc\td\ne\tf\tg\th\n"])
def test_a_header_of_another_width(tmp_path: Path, text: str) -> None:
    said = refusal(save(tmp_path, "p.tsv", text))
    n, m = (line.count("\t") + 1 for line in text.splitlines()[:2])
    assert f"p.tsv has {n} columns, but its lines have {m}" in said


@pytest.mark.parametrize(
    ("name", "text"), [("p.csv", ",\n,\n"), ("p.csv", "a" * 2**20 + "\n"), ("p.csv", "\u3000,\u3000\n")]
)
def test_tables_without_a_row(tmp_path: Path, name: str, text: str) -> None:
    assert "holds nothing that can be read in its first" in refusal(save(tmp_path, name, text))


@pytest.mark.parametrize("head", ["en,de", "German,English", "src,tgt", "en_US,de-DE"])
def test_csv_header(tmp_path: Path, head: str) -> None:
    assert sides(save(tmp_path, "p.csv", f"{head}\none,ein\ntwo,zwei\n")) == [("one", "ein"), ("two", "zwei")]


def test_csv_without_header(tmp_path: Path) -> None:
    assert sides(save(tmp_path, "p.csv", "one,ein\ntwo,zwei\n")) == [("one", "ein"), ("two", "zwei")]


def test_csv_quotes_hold_newlines_commas_and_quotes(tmp_path: Path) -> None:
    path = save(tmp_path, "p.csv", 'source,target\r\n"one,\r\n""two""",ein\r\nthree,"drei, vier"\r\n')
    assert read(path) == [Pair(2, 'one,\r\n"two"', "ein"), Pair(4, "three", "drei, vier")]


def test_csv_with_semicolons(tmp_path: Path) -> None:
    path = save(tmp_path, "p.csv", "source;target\nyes, no;ja, nein\ntwo;zwei\n")
    assert sides(path) == [("yes, no", "ja, nein"), ("two", "zwei")]


def test_csv_that_never_closes_its_quote_goes_on_later(tmp_path: Path) -> None:
    rows = "one,ein\n" * 30_000
    path = save(tmp_path, "p.csv", f'one,ein\n"open,ein\n{rows}')
    found = read(path)
    bad = [item for item in found if isinstance(item, BadLine)]
    assert bad[0].line == 2
    assert "quote that never closes" in bad[0].reason
    assert len(found) > 1000


@pytest.mark.parametrize(
    ("stray", "later", "reason"),
    [
        ('"open,ein', "one,ein", "is in a record of 1 column, not 2, that spans 980 lines: a quote may never close"),
        # Two columns by chance: up to the end of the file, or up to where another cell is quoted.
        ('one,"ein', "one,ein", "is in a record that spans 980 lines: a quote may never close"),
        ('one,"ein', 'two,"zwei"', "is in a record that spans 2 lines: a quote may never close"),
        ('"open,ein', '"one, two",ein', "is in a record of 3 columns, not 2, that spans 2 lines: a quote"),
    ],
)
def test_csv_lines_that_a_stray_quote_swallows_are_counted(tmp_path: Path, stray: str, later: str, reason: str) -> None:
    rows = [f"number {i},Nummer {i}" for i in range(20)] + [stray] + [later] * 979
    found = read(save(tmp_path, "p.csv", "\n".join(rows) + "\n"))
    bad = [item for item in found if isinstance(item, BadLine)]
    assert bad[0].line == 21
    assert bad[0].reason.startswith(reason)
    assert [item.line for item in found] == list(range(1, 1001))


def test_csv_cells_of_several_lines_are_no_fault(tmp_path: Path) -> None:
    path = save(tmp_path, "p.csv", 'one,"ein\n\n""zwei"""\n"a ""b""\nc","d\n"\none,"ein\n')
    assert read(path) == [Pair(1, "one", 'ein\n\n"zwei"'), Pair(4, 'a "b"\nc', "d"), Pair(7, "one", "ein")]


def test_csv_bytes_that_are_not_utf_8(tmp_path: Path) -> None:
    path = save(tmp_path, "p.csv", b"one,ein\nb\xe4d,b\xf6se\ntwo,zwei\n")
    assert read(path) == [Pair(1, "one", "ein"), BadLine(2, "is not UTF-8"), Pair(3, "two", "zwei")]


def test_csv_line_with_a_lone_carriage_return(tmp_path: Path) -> None:
    path = save(tmp_path, "p.csv", "one,ein\na\rb,c\ntwo,zwei\n")
    assert read(path)[1] == BadLine(2, "is not CSV")


@pytest.mark.parametrize(
    "record",
    [
        {"source": "one", "target": "ein"},
        {"id": 3, "target": "ein", "source": "one", "origin": "x"},
        {"first": "one", "second": "ein", "n": 7},
        {"id": "9", "translation": {"en": "one", "de": "ein"}},
        {"de": "one", "en": "ein", "id": "x"},
    ],
)
def test_json_lines(tmp_path: Path, record: object) -> None:
    assert sides(save(tmp_path, "p.jsonl", json.dumps(record) + "\n")) == [("one", "ein")]
    assert sides(save(tmp_path, "p", json.dumps(record))) == [("one", "ein")]


def test_json_fields_by_name(tmp_path: Path) -> None:
    nested = save(tmp_path, "p.jsonl", '{"id": "x", "translation": {"en": "one", "de": "ein", "fr": "un"}}\n')
    assert sides(nested, source="fr", target="en") == [("un", "one")]
    assert sides(nested, source="translation.fr", target="en") == [("un", "one")]
    assert "Name them with --source" in refusal(nested)
    assert "has no field 'frr'" in refusal(nested, source="frr", target="en")
    assert "Did you mean fr?" in refusal(nested, source="frr", target="en")


def test_json_that_is_labelled_lists_all_fields(tmp_path: Path) -> None:
    said = refusal(
        save(tmp_path, "p.jsonl", '{"sentence": "one", "cls": 0, "more": {"by": "me", "to": "you", "age": 3}}\n')
    )
    assert "it has sentence, cls, more.by, more.to, more.age." in said
    assert "--task classify" not in said  # there are several texts
    said = refusal(save(tmp_path, "p.jsonl", '{"sentence": "one", "cls": 0}\n'))
    assert "it has sentence, cls." in said
    assert "--task classify, --text and --label" in said


def test_json_bad_lines(tmp_path: Path) -> None:
    good = '{"source": "one", "target": "ein"}'
    deep = "[" * 100_000
    lines = [good, "", "{", "[1]", '{"source": "x"}', '{"source": 1, "target": "y"}', deep, good]
    half = '{"source": "\\ud83d", "target": "y"}'
    found = read(save(tmp_path, "p.jsonl", "\n".join([*lines, half, '{"source": " ", "target": "y"}'])))
    reasons = {item.line: item.reason for item in found if isinstance(item, BadLine)}
    assert reasons == {
        2: "is empty",
        3: "is not JSON",
        4: "is not a JSON object",
        5: "has no text in the field target",
        6: "has no text in the field source",
        7: "is not JSON",
        9: "has half of a character (a lone surrogate)",
        10: "has an empty source side",
    }


def test_two_aligned_files(tmp_path: Path) -> None:
    source = save(tmp_path, "t.en.gz", "\ufeffone\r\n two \r\nthree\r\n")
    target = save(tmp_path, "t.de", "ein\nzwei\n\n")
    assert read(source, target) == [
        Pair(1, "one", "ein"),
        Pair(2, "two", "zwei"),
        BadLine(3, "has an empty target side"),
    ]


def test_aligned_files_that_are_not(tmp_path: Path) -> None:
    one, two = save(tmp_path, "t.en", "a\nb\nc"), save(tmp_path, "t.de", "a\nb\n")
    assert "has 3 lines, but" in refusal(one, two)
    assert "was given for both sides" in refusal(one, one)
    assert "is a table of its own (tsv)" in refusal(one, save(tmp_path, "p.tsv", TSV))
    assert "no fields to choose" in refusal(one, two, source="a", target="b")
    assert "3 files were given" in refusal(one, two, one)
    assert "No file was given" in refusal()


def test_aligned_file_that_changes_in_between(tmp_path: Path) -> None:
    one, two = save(tmp_path, "t.en", "a\nb\n"), save(tmp_path, "t.de", "a\nb\n")
    files = open_pairs([one, two])
    save(tmp_path, "t.de", "a\n")
    with pytest.raises(UserError, match="no longer have the same number"):
        list(read_pairs(files))


def test_only_newline_ends_a_line(tmp_path: Path) -> None:
    odd = "a\u2028b\u0085c\x0bd\x0ce\x1cf\rg"
    assert read(save(tmp_path, "p.tsv", f"{odd}\tx\nb\ty\n")) == [Pair(1, odd, "x"), Pair(2, "b", "y")]
    assert sides(save(tmp_path, "a.en", f"{odd}\nb\n"), save(tmp_path, "a.de", "x\ny\n")) == [(odd, "x"), ("b", "y")]


@pytest.mark.parametrize("end", ["", "\r", "\n"])
def test_lines_that_end_in_cr_alone(tmp_path: Path, end: str) -> None:
    many = "\r".join(f"house {i}\tHaus {i}" for i in range(600)) + end
    refused = "end in CR (\\r), not in LF (\\n), so it reads as 1 line. Convert them: tr '\\r' '\\n' < OLD > NEW."
    for name in ("p.tsv", "p.csv", "p.tsv.gz"):
        path = save(tmp_path, name, many)
        assert refusal(path) == f"The lines of {path} {refused}"
    assert refused in refusal(save(tmp_path, "p.en", PAIRS[0][0]), save(tmp_path, "p.de", many))


def test_bad_lines_of_a_tsv(tmp_path: Path) -> None:
    lines = [
        b"a\tb",
        b"alone",
        b"a\tb\tc",
        b"",
        b"\t",
        b"a\t",
        b" \tb",
        b"\xff\xfe\tb",
        b"a" * 10_001 + b"\tb",
        b"c\td",
    ]
    reasons = [
        item.reason if isinstance(item, BadLine) else None for item in read(save(tmp_path, "p.tsv", b"\n".join(lines)))
    ]
    assert reasons == [
        None,
        "has 1 column, not 2",
        "has 3 columns, not 2",
        "is empty",
        "is empty",
        "has an empty target side",
        "has an empty source side",
        "is not UTF-8",
        "is longer than 10,000 characters",
        None,
    ]


@pytest.mark.parametrize("name", ["p.tsv", "p.csv", "p.jsonl"])
@pytest.mark.parametrize("size", [1 << 20, 3 << 20])
def test_line_of_megabytes(tmp_path: Path, name: str, size: int) -> None:
    row = {"p.tsv": "{}\tb\n", "p.csv": "{},b\n", "p.jsonl": '{{"source": "{}", "target": "b"}}\n'}[name]
    path = save(tmp_path, name, row.format("a") + row.format("ä" * (size // 2)) + row.format("c"))
    first, bad, last = read(path)
    assert (first, last) == (Pair(1, "a", "b"), Pair(3, "c", "b"))
    assert isinstance(bad, BadLine)
    assert bad.line == 2
    assert "long" in bad.reason


def test_more_columns_everywhere_are_told(tmp_path: Path) -> None:
    path = save(tmp_path, "p.tsv", "a\tb\tCC-BY\nc\td\tCC-BY\ne\tf\n")
    assert read(path) == [Pair(1, "a", "b"), Pair(2, "c", "d"), BadLine(3, "has 2 columns, not 3")]
    assert open_pairs([path]).notes == ("There are 3 columns; the first two are used.",)


def test_columns_by_number(tmp_path: Path) -> None:
    path = save(tmp_path, "p.tsv", "1\ta\t2\tb\n3\tc\t4\td\n")
    assert sides(path, source="2", target="4") == [("a", "b"), ("c", "d")]
    assert "has 4 columns, but 2 and 5 were asked for" in refusal(path, source="2", target="5")


def test_unknown_columns(tmp_path: Path) -> None:
    path = save(tmp_path, "p.csv", "english,german,id\none,ein,1\n")
    assert sides(path, source="german", target="english") == [("ein", "one")]
    message = refusal(path, source="germn", target="english")
    assert "has no column 'germn'; it has english, german, id. Did you mean german?" in message
    assert "Choose two of these" in refusal(path, source="zzz", target="english")
    assert "Name two different ones" in refusal(path, source="english")
    assert "Name two different ones" in refusal(path, source="english", target="english")


def test_files_that_are_none(tmp_path: Path) -> None:
    assert "There is no file" in refusal(tmp_path / "none.tsv")
    assert "is a folder" in refusal(tmp_path)
    assert "is empty." in refusal(save(tmp_path, "e.tsv", ""))
    assert "is empty." in refusal(save(tmp_path, "e.tsv.gz", ""))
    assert "nothing but empty lines" in refusal(save(tmp_path, "e.tsv", "\n \n\n"))
    assert "nothing but empty lines" in refusal(save(tmp_path, "e.tsv", "\ufeff"))
    assert "has one column" in refusal(save(tmp_path, "o.tsv", "one\ntwo\n"))
    assert "has one column" in refusal(save(tmp_path, "o.csv", "one\ntwo\n"))
    assert "has one column" in refusal(save(tmp_path, "o.txt", "a" * (1 << 20)))
    assert "holds no JSON object" in refusal(save(tmp_path, "a.json", '[\n{"source": "a", "target": "b"},\n]'))
    assert "UTF-16" in refusal(save(tmp_path, "u.tsv", TSV.encode("utf-16")))
    junk = random.Random(0).randbytes(100_000)
    for name in ("j.tsv", "j.csv", "j.jsonl", "j.bin", "j.tsv.gz"):
        assert "is not UTF-8 text" in refusal(save(tmp_path, name, junk))


def test_pipe_is_refused(tmp_path: Path) -> None:
    assert "is a pipe or a device" in refusal(Path("/dev/null"))


def test_damaged_gzip(tmp_path: Path) -> None:
    whole = gzip.compress("".join(f"{i}\t{i * i}\n" for i in range(200_000)).encode())
    path = tmp_path / "p.tsv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    assert "is a damaged gzip file" in refusal(path)
    path.write_bytes(whole[:500] + b"\0" * 500 + whole[1000:])
    assert "is a damaged gzip file" in refusal(path)


def test_fingerprint_knows_contents_and_order_only(tmp_path: Path) -> None:
    plain, packed = save(tmp_path, "p.tsv", TSV), save(tmp_path, "q.tsv.gz", TSV)
    other = save(tmp_path, "o.tsv", TSV + "x\ty\n")
    assert fingerprint([plain]) == fingerprint([packed])
    assert len({fingerprint(paths) for paths in ([plain], [other], [plain, other], [other, plain], [])}) == 5


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), min_size=1))
def test_any_text_comes_back_from_json(tmp_path: Path, pairs: list[tuple[str, str]]) -> None:
    rows = [json.dumps({"source": source, "target": target}) for source, target in pairs]
    found = read(save(tmp_path, "p.jsonl", "\n".join(rows)))
    assert len(found) == len(pairs)
    for item, (source, target) in zip(found, pairs, strict=True):
        if isinstance(item, Pair):
            assert (item.source, item.target) == (source.strip(), target.strip())
        else:
            assert not (source.strip() and target.strip())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(min_size=1, max_size=300), st.sampled_from(["p.tsv", "p.csv", "p.jsonl", "p"]))
def test_no_bytes_break_the_reader(tmp_path: Path, data: bytes, name: str) -> None:
    path = save(tmp_path, name, b"a\tb\na,b\n" + data)
    try:
        found = read(path)
    except UserError:
        return
    assert all(item.line >= 1 for item in found)


def test_identity_changes_with_the_columns_but_not_with_how_they_were_chosen(tmp_path: Path) -> None:
    table, records = tmp_path / "a.tsv", tmp_path / "a.jsonl"
    table.write_text("en\tde\tfr\none\teins\tun\n")
    records.write_text('{"en": "one", "de": "eins"}\n')
    for path in (table, records):
        there, back = (open_pairs([path], *names).identity for names in (("en", "de"), ("de", "en")))
        assert there != back
    assert open_pairs([records]).identity == open_pairs([records], "en", "de").identity
    by_name, by_number = open_pairs([table], "en", "fr"), open_pairs([table], "1", "3")
    assert by_name.identity != by_number.identity  # a header is a pair for the second
