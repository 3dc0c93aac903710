"""The files of the page: what is sent with them, and that they fit together."""

import re

import httpx
import pytest

from glassformer.serve import page
from glassformer.serve.page import STATIC, read_files

FILES = {name: body.decode() for name, (body, _) in read_files().items()}
SCRIPTS = {name: text for name, text in FILES.items() if name.endswith(".js")}


@pytest.mark.parametrize("path", ["/", "/page/page.js", "/page/style.css", "/page/icon.svg", "/look", "/learn"])
def test_every_file_is_sent_with_a_strict_policy(server: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "make_page", lambda: "the lesson takes seconds to write")
    answer = httpx.get(server + path)
    policy = answer.headers["content-security-policy"]
    assert answer.status_code == 200
    assert policy.startswith("default-src 'none';")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert ("unsafe" in policy) is (path in ("/look", "/learn"))  # pages that carry their scripts inside
    assert "http" not in policy


@pytest.mark.parametrize("name", ["app.py", "..%2fapp.py", "%2e%2e/app.py", "/etc/passwd", "..\\app.py", ".", "%00"])
def test_only_the_files_of_the_table_are_sent(server: str, name: str) -> None:
    answer = httpx.get(f"{server}/page/{name}")
    assert answer.status_code == 404
    assert str(STATIC.parent) not in answer.text


def test_the_page_is_no_part_of_the_described_interface(server: str) -> None:
    paths = httpx.get(f"{server}/openapi.json").json()["paths"]
    assert not {"/", "/page/{name}", "/look", "/learn"} & paths.keys()


def test_whatever_a_file_names_is_there_and_comes_from_here() -> None:
    for name, text in FILES.items():
        named = re.findall(r'(?:href|src)="([^"#]+)"', text) if name.endswith(".html") else []
        named += re.findall(r'from "([^"]+)"', text)
        for other in named:
            assert other in ("/", "/learn") or other.removeprefix("/page/").removeprefix("./") in FILES, (name, other)
        foreign = set(re.findall(r"https?://[^\s\"']+", text)) - {"http://www.w3.org/2000/svg"}
        assert not foreign, name


def test_no_script_makes_html_or_code_from_text() -> None:
    for name, text in SCRIPTS.items():
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|\beval\(|new Function", text), name
        assert ("document.write" in text) is (name == "look_page.js")  # only what /api/look made
    for name in ("index.html", "look.html"):
        assert not re.search(r"<script(?![^>]*src=)|\son\w+=|style=", FILES[name]), name


def test_both_languages_have_all_texts_that_are_used() -> None:
    english, german = (
        dict(re.findall(r'(\w+): "((?:[^"\\]|\\.)*)"', part))
        for part in FILES["words.js"].partition("\n};")[0].split("  de: {")
    )
    assert english.keys() == german.keys()
    assert len(english) > 50
    for key in english:
        assert re.findall(r"\{\d\}", english[key]) == re.findall(r"\{\d\}", german[key]), key
    used = {key for text in SCRIPTS.values() for key in re.findall(r'\bt\("(\w+)"', text)}
    used |= set(re.findall(r'data-text="(\w+)"', FILES["index.html"]))
    assert used <= english.keys()
    by_name = {"system", "light", "dark", "embed", "translate", "fill", "classify", "transcribe", "compare", "complete"}
    assert english.keys() - used <= by_name | {"noModels", "noView", "lengthReached"}
