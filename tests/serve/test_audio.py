"""Recordings through OpenAI's client, and what is said of bad ones."""

import io
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import openai
import pytest
import soundfile

from glassformer.cli.main import run
from glassformer.serve.limits import Limits
from glassformer.serve.models import load_models
from glassformer.tasks.transcriber import Transcriber
from tests.data.sounds import tone
from tests.serve.conftest import running
from tests.tasks.tones import write_recordings


@pytest.fixture(scope="module")
def sounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recordings(tmp_path_factory.mktemp("sounds"), 20)


@pytest.fixture(scope="module")
def voice(sounds: Path, tmp_path_factory: pytest.TempPathFactory) -> Transcriber:
    out = tmp_path_factory.mktemp("model") / "voice"
    stack = "{n_layers=1, d_model=32, attention={n_heads=2}, feed_forward={d_ff=32}}"
    changes = [f"model.{part}={stack}" for part in ("encoder", "decoder")] + ["train.n_translated=2"]
    options = [word for change in changes for word in ("--set", change)]
    with pytest.raises(SystemExit) as ended:
        run(["train", "transcribe", str(sounds), "--out", str(out), "--steps", "20", "--quiet", *options])
    assert not ended.value.code
    face = load_models([f"voice={out}"])["voice"].face
    assert isinstance(face, Transcriber)
    return face


@pytest.fixture(scope="module")
def address(voice: Transcriber) -> Iterator[str]:
    with running(load_models([f"voice={voice.loaded.path}"]), Limits(audio=5)) as found:
        yield found


def test_openai_hears_what_the_command_line_hears(address: str, voice: Transcriber, sounds: Path) -> None:
    path = sounds.parent / "0.wav"
    [wanted] = voice.transcribe_files([path], details=True)
    with openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client:
        create = client.audio.transcriptions.create
        assert create(model="voice", file=path).text == wanted.text
        assert create(model="voice", file=path, response_format="text") == wanted.text + "\n"
        subtitles = create(model="voice", file=path, response_format="vtt")
        assert subtitles.startswith("WEBVTT\n\n")
        assert " --> " in subtitles
        assert create(model="voice", file=path, response_format="srt").startswith("1\n00:00:0")
        verbose = create(
            model="voice", file=path, response_format="verbose_json", timestamp_granularities=["word", "segment"]
        )
        assert verbose.duration == wanted.seconds
        assert [s.text for s in verbose.segments] == [s.text for s in wanted.segments]
        assert [w.word for w in verbose.words] == [w.word for s in wanted.segments for w in s.words]
        with pytest.raises(openai.BadRequestError, match="cannot be read as sound") as caught:
            create(model="voice", file=("../../etc/passwd", b"nothing to hear"))
        assert "/tmp" not in str(caught.value)
    file, data = {"file": path.read_bytes()}, {"model": "voice"}
    for more, about in (
        ({"timestamp_granularities[]": "letter"}, "word"),
        ({"include[]": "logprobs"}, "include is not offered"),
    ):
        refused = httpx.post(f"{address}/v1/audio/transcriptions", files=file, data=data | more)
        assert refused.status_code == 400
        assert about in refused.json()["error"]["message"]
    no_file = httpx.post(f"{address}/v1/audio/transcriptions", data=data | {"file": "abc"})
    assert no_file.json()["error"]["message"].startswith("file: a file is wanted.")
    told = httpx.post(
        f"{address}/v1/audio/transcriptions",
        files=file,
        data=data | {"language": "fr", "response_format": "verbose_json"},
    )
    assert told.json()["language"] == "unknown"  # it knows only what it was trained on
    into_english = httpx.post(f"{address}/v1/audio/translations", files=file, data=data)
    assert into_english.status_code == 400
    assert "does not translate" in into_english.json()["error"]["message"]
    ours = httpx.post(f"{address}/api/transcribe", files={"file": path.read_bytes()}, data={"details": "true"}).json()
    assert ours["text"] == wanted.text
    assert ours["segments"][0]["words"]


def test_no_file_is_left_behind_and_long_ones_are_refused(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for seconds, status in ((0.5, 200), (6, 413)):
        sound = io.BytesIO()
        soundfile.write(sound, tone(seconds), 16_000, format="WAV")
        answer = httpx.post(
            f"{address}/v1/audio/transcriptions", files={"file": sound.getvalue()}, data={"model": "voice"}
        )
        assert answer.status_code == status
    for channels, rate, status in ((2, 48_000, 200), (8, 96_000, 413)):
        sound = io.BytesIO()
        soundfile.write(sound, np.zeros((4 * rate, channels), dtype=np.int16), rate, format="FLAC", subtype="PCM_16")
        assert len(sound.getvalue()) < 1_000_000
        answer = httpx.post(f"{address}/api/transcribe", files={"file": sound.getvalue()})
        assert answer.status_code == status, answer.text
    for bad in (
        {"data": {"model": "voice"}},
        {"json": {"model": "voice"}},
        {"files": {"file": b""}, "data": {"model": "voice"}},
    ):
        answer = httpx.post(f"{address}/v1/audio/transcriptions", **bad)
        assert answer.status_code == 400
        assert answer.json()["error"]["type"] == "invalid_request_error"
    assert list(tmp_path.iterdir()) == []
