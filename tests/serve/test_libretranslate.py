"""LibreTranslate's dialect, spoken by its own clients and by hand."""

import json

import httpx
import pytest
from deep_translator import LibreTranslator
from libretranslatepy import LibreTranslateAPI

from glassformer.api import load
from glassformer.serve.app import Access
from glassformer.serve.models import Served
from tests.serve.conftest import running

TEXT = "Where is the station?"


@pytest.fixture(scope="module")
def wanted(models: dict[str, Served]) -> str:
    face = models["en-de"].face
    return face.translate([TEXT])[0]  # type: ignore[union-attr]


def test_libretranslatepy(server: str, wanted: str) -> None:
    client = LibreTranslateAPI(server)
    assert client.translate(TEXT, "en", "de") == wanted
    assert client.languages() == [
        {"code": "de", "name": "German", "targets": []},
        {"code": "en", "name": "English", "targets": ["de"]},
    ]
    [found] = client.detect(TEXT)
    assert found["language"] == "en"
    assert 0 < found["confidence"] <= 100


def test_deep_translator(server: str, wanted: str) -> None:
    client = LibreTranslator(source="en", target="de", api_key="any", custom_url=f"{server}/")
    assert client.translate(TEXT) == wanted
    assert client.translate_batch([TEXT, "Yes."])[0] == wanted


def test_json_form_and_query_are_the_same(server: str, wanted: str) -> None:
    given = {"q": TEXT, "source": "en", "target": "de"}
    for how in ({"json": given}, {"data": given}, {"params": given}):
        answer = httpx.post(f"{server}/translate", **how)
        assert answer.status_code == 200
        assert answer.json() == {"translatedText": wanted}


def test_null_says_nothing_and_texts_may_come_as_several_fields(server: str, wanted: str) -> None:
    given = {"q": TEXT, "source": "en", "target": "de"}
    said = httpx.post(f"{server}/translate", json={**given, "format": None, "alternatives": None, "api_key": None})
    assert said.json() == {"translatedText": wanted}
    texts = [TEXT, "Yes."]
    for how in ({"params": {**given, "q": texts}}, {"data": {**given, "q": texts}}, {"json": {**given, "q": texts}}):
        several = httpx.post(f"{server}/translate", **how).json()["translatedText"]
        assert several[0] == wanted
        assert len(several) == 2


def test_a_translator_of_unknown_languages_is_named() -> None:
    mine = Served("mine", load("en-de"))
    del mine.loaded.about["languages"]
    with running({"mine": mine}) as address:
        answer = httpx.post(f"{address}/translate", json={"q": TEXT, "source": "en", "target": "de"})
        assert answer.status_code == 400
        assert "--languages mine=en,de" in answer.json()["error"]
        mine.pair = ("en", "de")
        answer = httpx.post(f"{address}/translate", json={"q": TEXT, "source": "xx", "target": "de"})
        assert "--languages" not in answer.json()["error"]


def test_lists_alternatives_and_auto(server: str, models: dict[str, Served], wanted: str) -> None:
    given = {"q": [TEXT, "", "Good morning."], "source": "auto", "target": "de", "alternatives": 2}
    said = httpx.post(f"{server}/translate", json=given).json()
    assert said["translatedText"][0] == wanted
    assert said["translatedText"][1] == ""
    assert [len(others) for others in said["alternatives"]] == [2, 2, 2]
    assert {found["language"] for found in said["detectedLanguage"]} == {"en"}
    one = httpx.post(f"{server}/translate", json={**given, "q": TEXT}).json()
    assert one["translatedText"] == wanted
    assert one["alternatives"] == said["alternatives"][0]


@pytest.mark.parametrize(
    ("change", "about"),
    [
        ({"q": None}, "parameter q"),
        ({"q": [1]}, "parameter q"),
        ({"q": "\ud800"}, "half a character"),
        ({"source": "xx"}, "No model here translates from xx to de"),
        ({"target": 5}, "parameter target"),
        ({"format": "html"}, "format"),
        ({"alternatives": -1}, "alternatives"),
        ({"alternatives": 99}, "0 to 31"),
    ],
)
def test_what_is_wrong_is_said(server: str, change: dict[str, object], about: str) -> None:
    given = {"q": TEXT, "source": "en", "target": "de"} | change
    body = json.dumps(given)
    answer = httpx.post(f"{server}/translate", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert list(answer.json()) == ["error"]
    assert about in answer.json()["error"]


def test_nothing_has_no_language(server: str) -> None:
    answer = httpx.post(f"{server}/detect", json={"q": " "})
    assert answer.status_code == 400
    assert "no text" in answer.json()["error"]


def test_bodies_of_other_types_are_refused(server: str) -> None:
    answer = httpx.post(f"{server}/translate", content=b"{}", headers={"content-type": "text/plain"})
    assert answer.status_code == 415
    answer = httpx.post(f"{server}/translate", content=b"{", headers={"content-type": "application/json"})
    assert answer.status_code == 400


def test_a_key_in_the_body(models: dict[str, Served], wanted: str) -> None:
    with running({"en-de": models["en-de"]}, access=Access(keys=["one", "secret"])) as address:
        assert LibreTranslateAPI(address, api_key="secret").translate(TEXT, "en", "de") == wanted
        given = {"q": TEXT, "source": "en", "target": "de"}
        for wrong in ({}, {"api_key": "secre"}, {"api_key": 7}):
            assert httpx.post(f"{address}/translate", json=given | wrong).status_code == 403
        assert httpx.get(f"{address}/frontend/settings").json()["keyRequired"] is True
        assert httpx.get(f"{address}/health").json() == {"status": "ok"}
        assert httpx.get(f"{address}/v1/models").status_code == 401
        assert httpx.get(f"{address}/v1/models", headers={"Authorization": "Bearer secret"}).status_code == 200
        assert httpx.get(f"{address}/metrics").status_code == 401
