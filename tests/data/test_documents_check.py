"""What `check` says of a text."""

import json
from pathlib import Path

import pytest

from glassformer.cli.main import run
from glassformer.data.documents import looks_like_text, open_documents
from glassformer.data.documents_check import check_text_files, explain_text

LINE = "This line is certainly longer than forty characters."


def test_findings_have_line_numbers(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text(f"{LINE}\nshort\nshort\nwith a bell \x07 in it\n{LINE}\nCafÃ© is garbled\n", encoding="utf-8")
    report = check_text_files(open_documents([text]))
    found = {finding.reason: finding.lines for finding in report.findings}
    assert found == {
        "repeats a long line": (5,),
        "has control characters": (4,),
        "looks like text in another encoding": (6,),
    }
    assert (report.n_lines, report.longest_line, report.script) == (6, len(LINE), "Latin")


def test_leaks_are_counted(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text(f"{LINE}\nanother line\n")
    (tmp_path / "valid.txt").write_text(f"{LINE}\nanother line\nand {LINE}\n")
    report = check_text_files(open_documents([tmp_path / "train.txt"]), open_documents([tmp_path / "valid.txt"]))
    assert report.n_leaked == 1  # short lines are in any text
    assert "Also in the training text: 1 long line." in explain_text(report)


def test_the_verb_knows_text_from_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, pairs = tmp_path / "book.txt", tmp_path / "pairs.tsv"
    text.write_text("Some words and some more words.\n" * 50)
    pairs.write_text("".join(f"one {i}\teins {i}\n" for i in range(30)))
    assert looks_like_text(text)
    assert looks_like_text(tmp_path)
    assert not looks_like_text(pairs)
    for path, key in ((text, "n_lines"), (pairs, "n_pairs")):
        with pytest.raises(SystemExit) as ended:
            run(["check", str(path), "--no-plan", "--json"])
        assert ended.value.code == 0
        assert key in json.loads(capsys.readouterr().out)


def test_an_unknown_task_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["check", str(tmp_path), "--task", "dance"])
    assert ended.value.code == 2
    assert "There is no task 'dance'" in capsys.readouterr().err
