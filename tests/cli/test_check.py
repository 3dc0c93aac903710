"""`glassformer check` as a person types it: it names what it saw, then says what is fatal, and knows labels."""

import json
from pathlib import Path

import numpy as np
import pytest

from glassformer.cli.main import run
from glassformer.errors import UserError
from tests.data.sounds import tone, write_sound

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


def test_what_was_seen_is_said_before_a_plan_that_fails(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = write(tmp_path / "data.tsv", "".join(f"{'one two ' * 200}{i}\t{'eins zwei ' * 200}{i}\n" for i in range(4)))
    code, out, err = check(capsys, path)
    assert code == 2
    assert f"{path}: 4 pairs." in out
    assert "No pair is left to use" in err
    code, out, err = check(capsys, path, "--json")
    assert code == 2
    assert "4 pairs." in json.loads(out)["said"][0]
    assert "No pair is left to use" in json.loads(err)["error"]


def test_what_was_seen_in_a_text_is_said_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise UserError("There is no plan.")

    monkeypatch.setattr("glassformer.tasks.plan.plan_completion", fail)
    code, out, err = check(capsys, write(tmp_path / "a.txt", "Some words.\n" * 40))
    assert code == 2
    assert "1 file, 1 document" in out
    assert "There is no plan." in err


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


@pytest.mark.parametrize("content", ["a" * 140_000 + "\tb\nc\td\n", "a\rb\tc\nd\te\n"])
def test_odd_pairs_are_still_pairs(capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes((content + PAIRS).encode())
    code, out, _ = check(capsys, path, "--no-plan")
    assert code == 0
    assert " pairs." in out


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("data.json", '[{"source": "a", "target": "b"}]'),
        ("data.json", "[" * 50_000),
        ("data.txt", "\u3000\n\u3000\n"),
        ("data.tsv", "\u3000\n\u3000\n"),
        ("data.csv", "a" * 2**20 + "\n"),
        ("data.csv", ",\n,\n"),
    ],
)
def test_what_is_no_data_gets_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, content: str
) -> None:
    path = write(tmp_path / name, content)
    for options in ([], ["--task", "classify"], ["--task", "transcribe"]):
        code, _, err = check(capsys, path, "--no-plan", *options)
        assert code == 2
        assert str(path) in err
        assert "Traceback" not in err


def test_labels_to_validate_on_are_checked_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = [f"text number {i}\t{'yes' if i % 2 else 'no'}\n" for i in range(40)]
    train = write(tmp_path / "a.tsv", "".join(rows) + "Text  Number 1\tyes\n")
    valid = write(tmp_path / "b.tsv", rows[3] + "another text\tno\n" + BAD)
    code, out, _ = check(capsys, train, "--valid", valid)
    assert code == 0
    assert "1 example repeats another one." in out
    assert "Also in training: 1 of those to validate on." in out
    assert "Warning: 50% of the validation examples are in training too" in out
    assert f"{valid}: skipped, as they cannot be used:" in out
    assert "1 line that has 3 columns, not 2 (5)" in out


def test_labels_are_read_as_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "".join(f"text number {i}\t{i % 3}+{(i + 1) % 3}\n" for i in range(40)))
    _, out, _ = check(capsys, path, "--separator", "+", "--kind", "classes")
    assert "Any number of labels for each, of 3:" in out
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((40, 8, 8)))
    labels = write(tmp_path / "y.txt", "".join(f"{i % 2}\n" for i in range(40)))
    _, out, _ = check(capsys, tmp_path / "x.npy", "--labels", labels)
    assert "40 series of 8 numbers a step" in out
    _, out, _ = check(capsys, tmp_path / "x.npy", "--labels", labels, "--pictures", "--kind", "number")
    assert "40 pictures, read as 8 × 8 pixels" in out
    assert "Labels are numbers from 0 to 1" in out
    code, _, err = check(capsys, path, "--kind", "clas")
    assert code == 2
    assert "clas" in err


@pytest.mark.parametrize(("options", "n"), [(["--separator", "+"], 44), (["--kind", "classes"], 44), ([], 40)])
def test_an_empty_label_means_none_where_many_are_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, options: list[str], n: int
) -> None:
    path = write(
        tmp_path / "a.tsv", "".join(f"text number {i}\t{['a+b', 'b'][i % 2] * (i % 11 > 0)}\n" for i in range(44))
    )
    _, out, _ = check(capsys, path, "--task", "classify", *options)
    assert f"{n} labelled texts." in out
    assert ("an empty label" in out) is (n == 40)


def test_recordings_to_validate_on_are_checked_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for i in range(4):
        write_sound(tmp_path / f"{i}.wav", tone(0.2, 300.0 + i))
    train = write(tmp_path / "train.tsv", "0.wav\thello\n1.wav\tyou\n2.wav\tthere\n")
    code, _, err = check(capsys, train, "--valid", tmp_path / "nothere.tsv")
    assert code == 2
    assert "There is no file" in err
    code, _, err = check(capsys, train, train, "--task", "transcribe")
    assert code == 2
    assert "2 files were given" in err
    valid = write(tmp_path / "valid.tsv", "0.wav\thello\n3.wav\tyou\nnone.wav\tbye\n")
    code, out, err = check(capsys, train, "--valid", valid, "--plan", "--label", "x", "--task", "transcribe")
    assert code == 0
    assert "Also in training: 1 of the recordings." in out
    assert "is a file that is not there: none.wav (3)" in out
    assert "For this data (--task transcribe) these have no effect: --label, --plan." in err
    code, out, _ = check(capsys, train, "--valid", valid, "--json")
    assert json.loads(out)["valid"]["n_same"] == 1
