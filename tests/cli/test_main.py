"""The command line's frame: exit codes, one-sentence errors, JSON, and what newcomers type first."""

import json
import subprocess
import sys

import pytest
import torch

from glassformer import __version__
from glassformer.cli.main import run


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        run(list(arguments))
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


def test_the_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "--version") == (0, f"glassformer {__version__}\n", "")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["train", "--help"], ["train", "translate", "--help"]])
def test_help_is_given(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    code, out, _ = call(capsys, *arguments)
    assert code == 0
    assert "Usage" in out


def test_every_verb_is_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys)
    for verb in ("check", "train", "translate", "evaluate", "export", "models", "sizes"):
        assert verb in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fly"], "No such command 'fly'"),
        (["sizes", "--wings"], "No such option"),
        (["sizes", "gpt2"], "There is no size 'gpt2'. Did you mean gpt-2?"),
        (["sizes", "--set", "a=1"], "--set needs the size that it changes."),
        (["sizes", "gpt-2", "--set", "decoder.n_layer=3"], "did you mean n_layers?"),
        (["sizes", "gpt-2", "--set", "decoder.attention.n_heads=5"], "which attention.n_heads 5 does not divide"),
        (["translate", "no-such-model", "hello"], "There is no model 'no-such-model'"),
        (["translate", "x", "hello", "--beam", "0"], "beam is 0. It must be 1 or more."),
        (["train", "translate", "nothing.tsv", "--out", "x"], "nothing.tsv"),
        (["export", "no-such-model", "--out", "x"], "There is no model 'no-such-model'"),
        (["export", "en", "--out", "x", "--to", "stone"], "There is no format 'stone'"),
    ],
)
def test_a_mistake_gets_one_sentence_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.startswith("glassformer: ")
    assert err.count("\n") == 1


def test_with_json_an_error_is_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(capsys, "sizes", "gpt2", "--json")
    assert code == 2
    assert json.loads(err) == {"error": "There is no size 'gpt2'.", "hint": "Did you mean gpt-2?"}


def test_debug_shows_the_traceback() -> None:
    command = [sys.executable, "-m", "glassformer.cli.main", "--debug", "sizes", "gpt2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "There is no size 'gpt2'" in done.stderr


def test_sizes_are_listed_with_their_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "sizes", "--json")
    listed = {row["name"]: row["parameters"] for row in json.loads(out)}
    assert code == 0
    assert listed["gpt-2"] == 124_439_808
    _, out, _ = call(capsys, "sizes", "gpt-2", "--set", "decoder.n_layers=1", "--json")
    shown = json.loads(out)
    assert shown["settings"]["decoder"]["n_layers"] == 1
    assert shown["parameters"] < listed["gpt-2"]


def test_help_does_not_wait_for_torch() -> None:
    code = "import sys; from glassformer.cli import main; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_too_little_memory_is_one_sentence(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glassformer.cli.main.app", lambda **_: torch.empty(2**50))
    code, _, err = call(capsys, "sizes")
    assert code == 2
    assert err.startswith("glassformer: There is not enough memory for this.")


def test_other_failures_of_torch_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glassformer.cli.main.app", lambda **_: torch.ones(2) @ torch.ones(3))
    with pytest.raises(RuntimeError, match="inconsistent tensor size"):
        run(["sizes"])
