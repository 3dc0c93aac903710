"""The verbs of speech as a person types them: what comes out, and what is said of bad files."""

import json
from pathlib import Path

import numpy as np
import pytest

from glassformer.cli.main import run
from glassformer.cli.transcribe import _shown
from glassformer.data import microphone
from glassformer.tasks.transcriber import Segment, Transcript
from tests.data.sounds import write_sound
from tests.tasks.tones import RATE, say, write_recordings


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        run([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


@pytest.fixture(scope="module")
def sounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recordings(tmp_path_factory.mktemp("sounds"), 30)


@pytest.fixture(scope="module")
def model(sounds: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("model") / "voice"
    stack = "{n_layers=1, d_model=32, attention={n_heads=2}, feed_forward={d_ff=32}}"
    changes = [f"model.{part}={stack}" for part in ("encoder", "decoder")] + ["train.n_translated=4"]
    options = [word for change in changes for word in ("--set", change)]
    with pytest.raises(SystemExit) as ended:
        run(["train", "transcribe", str(sounds), "--out", str(out), "--steps", "3", "--quiet", *options])
    assert not ended.value.code
    return out


def test_files_and_lines_stay_side_by_side(
    capsys: pytest.CaptureFixture[str], model: Path, sounds: Path, tmp_path: Path
) -> None:
    (tmp_path / "bad.wav").write_text("nothing to hear")
    good = sounds.parent / "0.wav"
    code, out, err = call(capsys, "transcribe", model, good, tmp_path / "bad.wav", tmp_path / "none.wav", good)
    assert code == 2
    lines = out.split("\n")
    assert len(lines) == 5
    assert lines[0] == lines[3]
    assert lines[1] == lines[2] == ""
    assert "bad.wav cannot be read as sound" in err
    assert "none.wav" in err
    assert "2 of 4 files" in err


def test_json(capsys: pytest.CaptureFixture[str], model: Path, sounds: Path, tmp_path: Path) -> None:
    good = sounds.parent / "0.wav"
    code, out, _ = call(capsys, "transcribe", model, "--json", good, tmp_path / "none.wav")
    heard, missing = map(json.loads, out.splitlines())
    assert code == 2
    assert heard["file"] == str(good)
    assert heard["segments"][0]["end"] == pytest.approx(heard["seconds"])
    assert "There is no file" in missing["error"]


def test_subtitles(capsys: pytest.CaptureFixture[str], model: Path, sounds: Path) -> None:
    from glassformer.tasks.subtitles import subtitles

    heard = Transcript(
        "a.wav", "one two", 0.0, 4000.0, [Segment(0.5, 1.25, "one", 0.0), Segment(3661.0, 3662.5, "two", 0.0)]
    )
    assert list(subtitles(heard, "srt"))[:4] == ["1", "00:00:00,500 --> 00:00:01,250", "one", ""]
    assert list(subtitles(heard, "vtt"))[5] == "01:01:01.000 --> 01:01:02.500"
    code, _, err = call(capsys, "transcribe", model, "--format", "srt", sounds, sounds)
    assert code == 2
    assert "one file at a time" in err
    code, _, err = call(capsys, "transcribe", model, "--format", "doc", sounds)
    assert "There is no format 'doc'" in err


def test_listen(capsys: pytest.CaptureFixture[str], model: Path, sounds: Path, tmp_path: Path) -> None:
    (tmp_path / "commands.txt").write_text("low high\nhigh\n")
    silent = write_sound(tmp_path / "silent.wav", np.zeros(RATE, dtype=np.float32), RATE)
    spoken = write_sound(tmp_path / "high.wav", say("high"), RATE)
    code, out, _ = call(
        capsys, "listen", model, "--commands", tmp_path / "commands.txt", "--threshold", 0, spoken, silent, "none.wav"
    )
    heard, nothing, missing = out.split("\n")[:3]
    assert code == 2
    assert heard.split("\t")[0] in ("low high", "high")
    assert nothing == "not understood\t0.00"
    assert missing == ""


def test_check_and_evaluate(capsys: pytest.CaptureFixture[str], model: Path, sounds: Path) -> None:
    code, out, _ = call(capsys, "check", sounds)
    assert code == 0
    assert "30 recordings" in out
    assert "8,000 samples a second" in out
    code, out, _ = call(capsys, "evaluate", model, sounds, "--limit", 5)
    assert code == 0
    assert "5 recordings" in out
    assert "word errors" in out
    code, out, _ = call(capsys, "evaluate", model, sounds, "--limit", 5, "--json", "--quiet")
    assert json.loads(out)["n_recordings"] == 5
    code, out, err = call(
        capsys, "evaluate", model, sounds, "--limit", 2, "--max-len", 1, "--memory", sounds, "--worst", 9
    )
    answers = [line.split()[1:] for line in out.splitlines() if line.startswith("    answer")]
    assert answers
    assert all(len("".join(answer)) <= 1 or answer == ["(nothing)"] for answer in answers)  # one character
    assert f"For {model} these have no effect: --memory." in err


def test_a_recogniser_does_not_translate(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    code, _, err = call(capsys, "translate", model, "hello")
    assert code == 2
    assert "transcribe" in err


def test_an_engine_that_is_not_there_is_not_taken_in_silence(
    model: Path, sounds: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sound = next(sounds.parent.glob("*.wav"))
    for asked in (("--precision", "int8"), ("--engine", "ctranslate2")):
        code, out, err = call(capsys, "transcribe", model, sound, *asked)
        assert (code, out) == (2, "")
        assert "torch in fp32 is the only engine" in err
    assert call(capsys, "transcribe", model, sound, "--precision", "fp32")[0] == 0


def test_the_microphone_answers_after_each_pause(
    capsys: pytest.CaptureFixture[str], model: Path, sounds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silence = np.zeros(microphone.RATE, np.float32)
    word = say("low high low")
    wave = np.concatenate([silence, word, silence, word, silence])
    size = round(microphone.BLOCK * microphone.RATE)
    blocks = [wave[i : i + size] for i in range(0, len(wave), size)]
    monkeypatch.setattr(microphone, "microphone", lambda: iter(blocks))
    code, out, err = call(capsys, "transcribe", model, "--mic")
    assert code == 0
    assert len(out.splitlines()) == 2
    assert "Ctrl-C" in err
    commands = tmp_path / "commands.txt"
    commands.write_text("low\nhigh\n")
    code, out, _ = call(capsys, "listen", model, "--mic", "--commands", commands, "--threshold", "0")
    assert code == 0
    assert [line.split("\t")[0] in ("low", "high") for line in out.splitlines()] == [True, True]
    for words in ([], ["--mic", sounds.parent / "0.wav"]):
        code, out, err = call(capsys, "transcribe", model, *words)
        assert code == 2
        assert "--mic" in err


def test_a_file_has_one_line_whatever_was_heard() -> None:
    heard = Transcript("a.wav", "one\ntwo", 0.0, 1.0, [])
    assert list(_shown(Path("a.wav"), heard, "text", as_json=False)) == ["one two"]
