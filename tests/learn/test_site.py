"""The page as a file: whole, one, and safe whatever the text says."""

import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from glassformer.errors import UserError
from glassformer.learn import site as site_module
from glassformer.learn.sentences import parse
from glassformer.learn.site import STATIC, lesson_data, make_page, write_site
from glassformer.learn.steps import STEPS


class Reader(HTMLParser):
    """All tags with their attributes, and the text of the data."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""
        self._in_data = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in_data = dict(attrs).get("id") == "lesson"

    def handle_endtag(self, tag: str) -> None:
        self._in_data = False

    def handle_data(self, data: str) -> None:
        self.data += data if self._in_data else ""


def test_the_page_stands_alone(site: Path) -> None:
    assert [path.name for path in site.parent.iterdir()] == ["index.html"]
    page = Reader(site.read_text(encoding="utf-8"))
    for tag, attributes in page.tags:
        for name in ("src", "href", "action", "srcset"):
            value = attributes.get(name)
            assert value is None or value.startswith("#") or (tag, value) == ("link", "data:,")
    assert "http" not in re.sub(r"http-equiv|http://www\.w3\.org/2000/svg", "", site.read_text(encoding="utf-8"))


def test_every_step_has_its_section_heading_link_and_box(site: Path) -> None:
    page = Reader(site.read_text(encoding="utf-8"))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    for step in STEPS:
        assert f"step-{step.name}" in ids
        assert f"title-{step.name}" in ids
        assert f"#{step.name}" in links
        assert (f"text-{step.name}" in ids) == step.live
    labels = [attributes["for"] for tag, attributes in page.tags if tag == "label"]
    assert labels == [f"text-{step.name}" for step in STEPS if step.live]


def test_steps_with_one_example_share_a_text_and_the_others_bring_their_figures(site: Path) -> None:
    data = json.loads(Reader(site.read_text(encoding="utf-8")).data)
    texts = {step["name"]: data["texts"][step["text"]] for step in data["steps"] if step["live"]}
    assert texts == {step.name: step.example for step in STEPS if step.live}
    assert len(data["texts"]) < len(texts)
    for step in data["steps"]:
        assert step["live"] or step["shown"]["figures"]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the steps that train."""
    steps = tuple(step for step in STEPS if step.live)
    monkeypatch.setattr(site_module, "STEPS", steps)


EVIL = ["</script><script>alert(1)</script>", "<!-- <img src=x onerror=alert(2)> &amp; \u2028 \" ' `"]


@pytest.mark.usefixtures("quick")
def test_text_of_others_stays_text() -> None:
    sentences = parse(EVIL)
    page = make_page(sentences)
    plain = make_page(None)
    assert [tag for tag, _ in Reader(page).tags] == [tag for tag, _ in Reader(plain).tags]
    data = json.loads(Reader(page).data)
    assert data["texts"] == [sentences.text()]
    assert {step["text"] for step in data["steps"]} == {0}


def test_the_page_s_own_scripts_end_no_script() -> None:
    for path in STATIC.iterdir():
        assert "</s" not in path.read_text(encoding="utf-8").lower()


def test_trained_steps_follow_the_reader_s_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_module, "STEPS", tuple(step for step in STEPS if step.name == "fine-tuning"))
    (step,) = lesson_data(parse(["one two three", "one two four"]))["steps"]
    assert step["shown"]["figures"][0]["tokens"] == [["one two three"], ["one two four"]]


@pytest.mark.usefixtures("quick")
def test_a_lesson_is_written_again_but_nothing_else_is_overwritten(tmp_path: Path) -> None:
    page = write_site(tmp_path / "new" / "folder")
    assert write_site(page.parent, parse(["other words here"])) == page
    assert "other words here" in page.read_text(encoding="utf-8")
    page.write_text("<p>mine</p>", encoding="utf-8")
    with pytest.raises(UserError, match="is not a lesson"):
        write_site(page.parent)
    assert page.read_text(encoding="utf-8") == "<p>mine</p>"
    with pytest.raises(UserError, match="is a file, not a folder"):
        write_site(page)


@pytest.mark.usefixtures("quick")
def test_a_site_that_could_not_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = write_site(tmp_path)
    before = page.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="No space left"):
        write_site(tmp_path, parse(["new words"]))
    assert page.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
