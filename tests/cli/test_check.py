"""`glassformer check` as a person types it: it names what it saw, then says what is fatal, and knows labels."""

import json
from pathlib import Path

import pytest

from glassformer.cli.main import run

PAIRS = "".join(f"the house number {i}\tdas Haus Nummer {i}\n" for i in range(40))
BAD = "\tno source\nno target\t\na\tb\tc\n"


def check(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        run(["check", *map(str, arguments)])
    printed = capsys.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "options", "fatal"),
    [
        (BAD, [], "holds no usable pair"),
        ("a\tb\n" + BAD, [], "holds only one usable pair"),
        ("a\tsame\nb\tsame\n" + BAD, [], "The target is the same in all 2 pairs"),
        ("a text\tx\nmore text\tx\n" + BAD, ["--task", "classify"], "All 2 labels are the same"),
        ("a text\tx\n" + BAD, ["--task", "classify"], "There is only one label ('x')"),
        ("a b\tx\nc d\tx\ne f\ty\n" + BAD, ["--task", "classify"], "has the label 'y', which no other line has"),
    ],
)
def test_bad_lines_are_named_before_what_is_fatal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, options: list[str], fatal: str
) -> None:
    path, n = write(tmp_path / "data.tsv", text), text.count("\n")
    code, out, err = check(capsys, path, *options)
    assert code == 2
    assert "Skipped, as they cannot be used:" in out
    assert f"1 line that has 3 columns, not 2 ({n})" in out
    assert fatal in err
    assert fatal not in out
    code, out, err = check(capsys, path, *options, "--json")
    assert code == 2
    assert any(f"({n})" in line for line in json.loads(out)["said"])
    assert fatal in json.loads(err)["error"]


def test_recordings_that_are_not_there_are_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = check(capsys, write(tmp_path / "list.tsv", "a.wav\thello\nb.wav\tbye\n"), "--task", "transcribe")
    assert code == 2
    assert "is a file that is not there: b.wav (2)" in out
    assert "holds 0 usable recordings" in err


def test_labelled_lines_are_all_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    good = "".join(f"text number {i}\t{'yes' if i % 2 else 'no'}\n" for i in range(40))
    files = [write(tmp_path / f"{name}.tsv", good + BAD) for name in "ab"]
    code, out, _ = check(capsys, *files, "--task", "classify")
    assert code == 0
    assert f"{files[1]}: skipped, as they cannot be used:" in out
    assert out.count("1 line that has an empty label (42)") == 2


def test_labels_are_known_without_a_header(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    labelled = "".join(f"the film number {i}\t{i % 2}\n" for i in range(40))
    code, out, _ = check(capsys, write(tmp_path / "a.tsv", labelled))
    assert code == 0
    assert "There is no header; column 1: the text, column 2: the label." in out
    code, out, _ = check(capsys, write(tmp_path / "b.tsv", PAIRS), "--no-plan")
    assert code == 0
    assert "40 pairs." in out
    assert "classify" not in out


def test_few_targets_may_be_labels(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = "".join(f"the film number {i}\t{'very good' if i % 2 else 'very bad'}\n" for i in range(40))
    code, out, _ = check(capsys, write(tmp_path / "a.tsv", rows), "--no-plan")
    assert code == 0
    assert "Warning: There are only 2 different targets; check labels with --task classify." in out
