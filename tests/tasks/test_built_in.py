"""Models that come with the package work offline right after the install, and say where they come from."""

import io
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
import torch
import torch.nn.functional as F

import glassformer
from glassformer.cli.main import run
from glassformer.cli.stdin import stdin_lines
from glassformer.errors import UserError
from glassformer.tasks.built_in import FOLDER, built_in_models, find_model
from glassformer.tasks.completer import Completer
from glassformer.tasks.transcriber import Transcriber

NAMES = sorted(built_in_models())


def test_they_are_there() -> None:
    assert {"digits", "en-de", "shakespeare"} <= set(NAMES)


# A sonnet, which is none of the plays that it learned from.
SONNET = """Shall I compare thee to a summer's day?
Thou art more lovely and more temperate:
Rough winds do shake the darling buds of May,
And summer's lease hath all too short a date:
"""


def test_shakespeare_expects_shakespeare() -> None:
    model = glassformer.load("shakespeare")
    assert isinstance(model, Completer)
    ids = torch.tensor([model.prompt_ids(f"First Citizen:\n{SONNET}")])
    with torch.inference_mode():
        loss = float(F.cross_entropy(model.model(ids)[0, :-1], ids[0, 1:]))
    assert loss < 1.9  # nats a character; all characters alike would be 4.2, the plays themselves are 1.44
    [answer] = model.complete(["ROMEO:\n"], temperature=0.5, seed=1, max_tokens=120)
    words = {"the", "and", "to", "of", "I", "you", "my", "a", "is", "in", "that", "not", "thou", "be", "his", "it"}
    assert len(words & set(answer.split())) >= 4


def test_digits_is_smaller_still_and_listens(tmp_path: Path) -> None:
    assert sum(path.stat().st_size for path in (FOLDER / "digits").iterdir()) <= 5_000_000
    model = glassformer.load("digits")
    assert isinstance(model, Transcriber)
    hum = np.sin(np.arange(16_000) * 2 * np.pi * 150 / 16_000) * 0.1
    soundfile.write(tmp_path / "hum.wav", hum, 16_000)
    [heard] = model.transcribe([tmp_path / "hum.wav"])
    assert set(heard) <= set("zero one two three four five six seven eight nine")


@pytest.mark.parametrize("name", NAMES)
def test_it_is_small_and_says_where_it_comes_from(name: str) -> None:
    files = list((FOLDER / name).iterdir())
    assert sum(path.stat().st_size for path in files) <= 15_000_000
    card = (FOLDER / name / "README.md").read_text(encoding="utf-8")
    assert "**Data and attribution.**" in card
    assert any(licence in card for licence in ("CC-BY", "MIT", "public\ndomain", "public domain"))
    assert (FOLDER / name / "recipe.toml").exists()


@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_en_de_translates(engine: str) -> None:
    model = glassformer.load("en-de", engine=engine)  # type: ignore[arg-type]
    assert model.translate(["Where is the station?", "", "I am tired."]) == ["Wo ist der Bahnhof?", "", "Ich bin müde."]


def test_a_near_name_is_suggested() -> None:
    with pytest.raises(UserError, match=r"There is no model 'en-dee'.*Did you mean en-de\?"):
        find_model("en-dee")


def test_the_list_is_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["models", "--json"])
    assert json.loads(capsys.readouterr().out) == built_in_models()


def test_lines_are_given_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that ends in the middle of a line waits for the rest of that line only."""
    blocks = [b"one\ntw", b"o\r\n", b"three"]
    read = []

    def read1(_: int) -> bytes:
        read.append(blocks[len(read)] if len(read) < len(blocks) else b"")
        return read[-1]

    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=SimpleNamespace(read1=read1, read=io.BytesIO().read)))
    lines = stdin_lines()
    assert (next(lines), len(read)) == (["one"], 1)
    assert (next(lines), len(read)) == (["two"], 2)
    assert list(lines) == [["three"]]
