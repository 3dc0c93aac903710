"""Documents: what is read from files, folders and JSONL, and what is refused."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.data import documents
from glassformer.data.documents import Part, check_documents, open_documents, read_documents
from glassformer.errors import UserError


def texts(parts: list[Part]) -> list[str]:
    """Whole documents again."""
    found, current = [], ""
    for part in parts:
        current += part.text
        if part.ends:
            found.append(current)
            current = ""
    assert current == ""
    return found


def read(*paths: Path, field: str = "text") -> list[str]:
    return texts(list(read_documents(open_documents(paths, field))))


def test_a_text_file_is_one_document_as_it_is(tmp_path: Path) -> None:
    text = "First line\n\n  second\twith tab\nno newline at the end"
    (tmp_path / "a.txt").write_text(text)
    assert read(tmp_path / "a.txt") == [text]


@pytest.mark.parametrize("packed", [False, True])
def test_windows_files_and_gzip(tmp_path: Path, packed: bool) -> None:
    data = b"\xef\xbb\xbfEins\r\nzwei \xc3\xa4\r\n"
    path = tmp_path / ("a.txt.gz" if packed else "a.txt")
    path.write_bytes(gzip.compress(data) if packed else data)
    assert read(path) == ["Eins\nzwei ä\n"]


def test_folders_are_read_in_order_and_only_text(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name, text in (("b.txt", "B"), ("a.md", "A"), ("sub/c.txt", "C"), ("picture.png", "P"), ("empty.txt", "")):
        (tmp_path / name).write_text(text)
    assert read(tmp_path) == ["A", "B", "C"]


def test_lines_of_jsonl_are_documents(tmp_path: Path) -> None:
    lines = [{"text": "one\ntwo"}, {"text": ""}, {"text": "drei ä", "more": 1}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    assert read(tmp_path / "a.jsonl") == ["one\ntwo", "drei ä"]
    (tmp_path / "b.jsonl").write_text('{"body": "x"}\n')
    assert read(tmp_path / "b.jsonl", field="body") == ["x"]


@settings(max_examples=60, deadline=None)
@given(text=st.text(alphabet="aä€𝄞 \n", min_size=1, max_size=60), size=st.integers(1, 9))
def test_parts_never_lose_or_break_a_character(tmp_path_factory: pytest.TempPathFactory, text: str, size: int) -> None:
    path = tmp_path_factory.mktemp("d") / "a.txt"
    path.write_text("x" + text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "PART", size)
        patch.setattr(documents, "LONGEST", 8)
        found = list(documents._text(path))
    assert texts(found) == ["x" + text]


@pytest.mark.parametrize(
    ("name", "data", "answer"),
    [
        ("a.txt", b"", "is empty"),
        ("a.txt", b"\n\n", "nothing but empty lines"),
        ("a.jsonl", b'{"text": 1}\n', "no text in the field 'text' .it has text"),
        ("a.jsonl", b'{"body": "x"}\n', "no text in the field 'text' .it has body"),
        ("a.jsonl", b"[]\n", "no text in the field"),
        ("a.jsonl", b"{\n", "Line 1 of .* is not JSON"),
        ("a.txt", bytes(range(128, 256)) * 9, "is not UTF-8 text"),
        ("a.txt", b"\xff\xfea\x00", "UTF-16"),
    ],
)
def test_bad_files_are_one_clear_sentence(tmp_path: Path, name: str, data: bytes, answer: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UserError, match=answer):
        check_documents(open_documents([tmp_path / name]))


def test_missing_file_and_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no file"):
        open_documents([tmp_path / "none.txt"])
    with pytest.raises(UserError, match="holds no text file"):
        open_documents([tmp_path])


def test_report_counts(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("äb\n")
    (tmp_path / "b.txt").write_bytes(b"x\n" * 40 + b"\xff\n")
    report = check_documents(open_documents([tmp_path]))
    assert (report.n_files, report.n_documents, report.n_characters, report.n_broken) == (2, 2, 85, 1)
    assert "1 character was no UTF-8" in str(report)
