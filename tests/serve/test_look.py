"""Look inside over HTTP, for files: a picture and a recording."""

import base64
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import soundfile
from PIL import Image

from glassformer.api import load
from glassformer.serve.models import Served
from tests.data.sounds import speechlike
from tests.serve.conftest import running
from tests.serve.models import picture_classifier


def picture() -> bytes:
    made = io.BytesIO()
    Image.linear_gradient("L").resize((20, 30)).save(made, "PNG")
    return made.getvalue()


def sound(seconds: float = 0.8) -> bytes:
    made = io.BytesIO()
    soundfile.write(made, speechlike(seconds), 16_000, format="WAV")
    return made.getvalue()


@pytest.fixture(scope="module")
def address(models: dict[str, Served]) -> Iterator[str]:
    shown = {"eyes": Served("eyes", picture_classifier(Path("model"))), "ears": Served("ears", load("digits"))}
    with running({**shown, "stories": models["stories"]}) as found:
        yield found


def look(address: str, model: str, **given: object) -> httpx.Response:
    given = {name: base64.b64encode(v).decode() if isinstance(v, bytes) else v for name, v in given.items()}
    return httpx.post(f"{address}/api/look", json={"model": model, **given}, timeout=60)


@pytest.mark.parametrize(("model", "file", "name"), [("eyes", picture(), "picture"), ("ears", sound(), "recording")])
def test_a_file_is_looked_into(address: str, model: str, file: bytes, name: str) -> None:
    page = look(address, model, file=file)
    assert page.status_code == 200, page.text[:300]
    assert f'"text":"{name}"' in page.text
    assert "glassformer-" not in page.text  # what files are called here
    assert tempfile.gettempdir() not in page.text
    assert not list(Path(tempfile.gettempdir()).glob("glassformer-*.picture"))
    assert next(m["look"] for m in httpx.get(f"{address}/api/models").json() if m["name"] == model)


def test_of_a_long_recording_the_first_part_is_shown(address: str) -> None:
    page = look(address, "ears", file=sound(60.0))
    assert page.status_code == 200, page.text[:300]
    assert '"text":"recording (the first of ' in page.text


@pytest.mark.parametrize(
    ("model", "given", "said"),
    [
        ("eyes", {"file": b"no picture"}, "The picture"),
        ("ears", {"file": b"no sound"}, "The recording"),
        ("stories", {"file": b"x"}, "is not a model whose inside is shown for a file"),
        ("eyes", {"texts": ["/etc/passwd"]}, "is not a model whose inside is shown for a text"),
        ("ears", {"texts": ["/etc/passwd"]}, "is not a model whose inside is shown for a text"),
        ("stories", {"texts": ["the"], "file": b"x"}, "either texts or a file"),
        ("stories", {}, "either texts or a file"),
    ],
)
def test_what_cannot_be_looked_into_is_said(address: str, model: str, given: dict[str, object], said: str) -> None:
    answer = look(address, model, **given)
    assert answer.status_code == 400
    assert said in f"{answer.json()['error']} {answer.json()['hint']}"
    assert tempfile.gettempdir() not in answer.text
