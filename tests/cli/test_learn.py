"""`glassformer learn` as people type it."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from glassformer.cli.main import run
from glassformer.learn.steps import STEPS


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        run(["learn", *arguments])
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


def test_the_list_has_every_step(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "--list")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [line.split()[1] for line in lines] == [step.name for step in STEPS]
    assert lines[6].split()[0] == "7"


@pytest.mark.parametrize("name", ["7", "masking", "Masking", " masking "])
def test_a_step_by_number_or_name_with_its_answer(capsys: pytest.CaptureFixture[str], name: str) -> None:
    code, out, err = call(capsys, name)
    assert (code, err) == (0, "")
    assert out.startswith("7 of 26 · masking\nListen only to those who know\n")
    assert out.endswith("Answer: down\n")


def test_a_name_may_have_spaces(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "layer norm")[1].startswith("17 of 26")


def test_own_text(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = tmp_path / "mine.txt"
    text.write_text("we go home *3\nwe go out\n", encoding="utf-8")
    code, out, err = call(capsys, "first-order", "--data", str(text))
    assert (code, err) == (0, "")
    assert out.endswith("Question: After “go”, how probable is “out”?\nAnswer: 0.25\n")


def test_own_text_that_is_too_small_for_a_step_gets_one_line_and_the_example(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = tmp_path / "mine.txt"
    text.write_text("hello world", encoding="utf-8")
    code, out, _ = call(capsys, "second-order", "--data", str(text))
    assert code == 0
    assert "\nThis step needs a sentence of at least 3 words. So here is the example.\n" in out
    assert "battery ran" in out


def test_long_text_is_cut_and_says_so_on_stderr(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = tmp_path / "mine.txt"
    text.write_text("some words here\n" * 100, encoding="utf-8")
    code, _, err = call(capsys, "1", "--data", str(text))
    assert (code, err) == (0, "The lesson uses the first 12 sentences, so that its figures can be read.\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["99"], "There is no step '99'. There are 1 to 26; see `glassformer learn --list`."),
        (["0"], "There is no step '0'."),
        (["maskin"], "There is no step 'maskin'. Did you mean masking?"),
        (["--data", "nowhere.txt"], "There is no file nowhere.txt."),
        (["--data", "."], ". is a folder, not a file."),
        (["7", "--out", "x"], "--out writes the whole lesson, but a step is given. Leave one of them out."),
        (["--list", "--out", "x"], "--list only lists: --data and --out have no effect."),
        (["--list", "--data", "x"], "--list only lists: --data and --out have no effect."),
    ],
)
def test_mistakes_get_one_sentence(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_a_folder_that_is_a_file_is_refused_before_anything_is_computed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    code, _, err = call(capsys, "--out", str(tmp_path / "file"))
    assert code == 2
    assert "is a file, not a folder" in err


def test_in_a_terminal_the_lesson_asks(tmp_path: Path) -> None:
    """A real pseudo-terminal of 80 columns: a wrong answer, the right one, Enter, and q."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "glassformer.cli.main", "learn"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        cwd=tmp_path,
    )
    os.close(theirs)
    seen = b""
    for wait_for, reply in ((b"1 of 26", b"2\n"), (b"Not quite", b"1\n"), (b"2 of 26", b"\n"), (b"3 of 26", b"q\n")):
        while wait_for not in seen or not seen.rstrip().endswith(b"leaves):"):
            seen += os.read(ours, 2**16)
        os.write(ours, reply)
        if wait_for == b"1 of 26":
            seen = b""
    while True:
        try:
            block = os.read(ours, 2**16)
        except OSError:  # the other side has closed
            break
        if not block:
            break
        seen += block
    assert process.wait() == 0
    os.close(ours)
    assert b"Right!" in seen
    assert b"It is 0.33." in seen
    assert b"4 of 26" not in seen
    assert list(tmp_path.iterdir()) == []
