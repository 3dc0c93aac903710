"""`glassformer fill` from the shell."""

import json
from pathlib import Path

import pytest

from glassformer.data.tokenizer import train_tokenizer, with_mask
from glassformer.tasks.model_dir import save_model
from tests.builders import encoder_only, tokens
from tests.cli.test_embed import feed
from tests.cli.test_main import call


@pytest.fixture
def model(tmp_path: Path) -> str:
    words = with_mask(train_tokenizer(["The dog barks. The cat purrs."] * 2, "word", 300, sentences=False))
    save_model(tmp_path, "fill", encoder_only(source=tokens(vocab_size=words.vocab_size)), words)
    return str(tmp_path)


def test_lines_without_a_blank_stay_as_they_are(
    model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["no blank here", "The ___ barks.", "", "The cat ___."]
    feed(monkeypatch, "\n".join(lines) + "\n")
    code, out, err = call(capsys, "fill", model, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert [row["given"] for row in rows] == lines
    assert [len(row["blanks"]) for row in rows] == [0, 1, 0, 1]
    assert [row["text"] for row in rows][::2] == lines[::2]
    assert all("___" not in row["text"] for row in rows)
    feed(monkeypatch, "\n".join(lines) + "\n")
    code, out, err = call(capsys, "fill", model)
    assert (code, err) == (0, "")
    assert [line for line in out.splitlines() if not line.startswith("  1. ")] == [row["text"] for row in rows]


def test_a_text_of_the_command_line_needs_a_blank(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(capsys, "fill", model, "no blank here")
    assert code == 2
    assert "There is no blank in 'no blank here'" in err
