"""A Whisper over HTTP: OpenAI's client gets the same words and times as the command line."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from glassformer.data.audio import read_sound
from glassformer.exchange.importing import import_model
from glassformer.serve.models import Served, load_models
from glassformer.tasks.transcriber import Transcript
from glassformer.tasks.whisper import WhisperTranscriber
from glassformer.tasks.whisper_steps import N_FRAMES
from tests.data.sounds import speechlike, write_sound
from tests.exchange.test_whisper import N_ROWS, theirs, write_openai, write_ranks
from tests.serve.conftest import running


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Served]]:
    folder = tmp_path_factory.mktemp("whisper")
    write_ranks(folder / "multilingual.tiktoken")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("glassformer.exchange.whisper.MULTILINGUAL", N_ROWS)  # real ones have many more words
        import_model(write_openai(theirs(), folder / "small.pt"), folder / "ears")
        # Weights from a lottery say unlikely things; they are to be believed, and not drawn again and again.
        patch.setattr("glassformer.tasks.whisper.TEMPERATURES", (0.0,))
        patch.setattr("glassformer.tasks.whisper.LEAST_AVERAGE", -1e9)
        yield load_models([str(folder / "ears")], engine="torch")  # CTranslate2 goes by the number of words


@pytest.fixture(scope="module")
def client(served: dict[str, Served]) -> Iterator[openai.OpenAI]:
    with running(served) as address, openai.OpenAI(base_url=f"{address}/v1", api_key="x", max_retries=0) as found:
        yield found


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sound(tmp_path_factory.mktemp("sound") / "a.wav", speechlike(4.0))


def heard(served: dict[str, Served], sound: Path, **given: Any) -> Transcript:
    face = served["ears"].face
    assert isinstance(face, WhisperTranscriber)
    [found] = WhisperTranscriber(face.loaded, face.backend, **given).transcribe_files([sound], details=True)
    assert isinstance(found, Transcript)
    return found


def times(text: str, point: str) -> list[tuple[float, float]]:
    """Read off subtitles, in seconds."""
    clock = rf"(\d\d):(\d\d):(\d\d)\{point}(\d\d\d)"
    found = []
    for row in re.findall(rf"^{clock} --> {clock}$", text, re.MULTILINE):
        numbers = [int(part) for part in row]
        begin, end = (round(3600 * h + 60 * m + s + ms / 1000, 3) for h, m, s, ms in (numbers[:4], numbers[4:]))
        found.append((begin, end))
    return found


def test_words_and_times_are_those_of_the_command_line(
    client: openai.OpenAI, served: dict[str, Served], sound: Path
) -> None:
    wanted = heard(served, sound, language="de")
    spans = [(segment.start, segment.end) for segment in wanted.segments]
    assert spans
    assert all(0 <= begin < end <= 34.0 for begin, end in spans)
    create = client.audio.transcriptions.create
    given: dict[str, Any] = {"model": "ears", "file": sound, "language": "de"}
    assert create(**given).text == wanted.text
    for form, point in (("srt", ","), ("vtt", ".")):
        assert times(create(**given, response_format=form), point) == spans  # type: ignore[arg-type]
    verbose = create(**given, response_format="verbose_json", timestamp_granularities=["word", "segment"])
    assert verbose.duration == 4.0
    assert verbose.language == "de"
    assert [(s.start, s.end, s.text) for s in verbose.segments] == [(s.start, s.end, s.text) for s in wanted.segments]
    words = [word for segment in wanted.segments for word in segment.words]
    assert words
    assert [(w.word, w.start, w.end) for w in verbose.words] == [(w.word, w.start, w.end) for w in words]


def test_the_language_that_it_hears_is_told(client: openai.OpenAI, served: dict[str, Served], sound: Path) -> None:
    face = served["ears"].face
    assert isinstance(face, WhisperTranscriber)
    features = face.extract(read_sound(sound, face.features.rate))
    wanted = face.backend.language(features[:N_FRAMES])
    assert wanted in face.marks.languages
    given: dict[str, Any] = {"model": "ears", "file": sound}
    assert client.audio.transcriptions.create(**given, response_format="verbose_json").language == wanted
    address = str(client.base_url).removesuffix("/v1/")
    ours = httpx.post(f"{address}/api/transcribe", files={"file": sound.read_bytes()}, timeout=60).json()
    assert ours["language"] == wanted
    assert ours["text"] == heard(served, sound).text
    assert face.language is None  # of another recording it may be another


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # OpenAI's own
def test_it_translates_what_it_hears_and_knows_its_languages(
    client: openai.OpenAI, served: dict[str, Served], sound: Path
) -> None:
    translated = client.audio.translations.create(model="ears", file=sound)
    assert translated.text == heard(served, sound, task="translate").text
    with pytest.raises(openai.BadRequestError, match="xx"):
        client.audio.transcriptions.create(model="ears", file=sound, language="xx")


def test_its_inside_is_shown(client: openai.OpenAI, sound: Path) -> None:
    address = str(client.base_url).removesuffix("/v1/")
    assert next(m["look"] for m in httpx.get(f"{address}/api/models").json() if m["name"] == "ears")
    asked = {"model": "ears", "file": base64.b64encode(sound.read_bytes()).decode(), "max_tokens": 4}
    page = httpx.post(f"{address}/api/look", json=asked, timeout=60)
    assert page.status_code == 200, page.text[:300]
    assert '"text":"recording"' in page.text
    assert '"silence"]' in page.text
