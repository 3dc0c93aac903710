"""The page in a real browser: its script computes what Python computes, every step opens, nothing goes out."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from glassformer.learn.find import find_step
from glassformer.learn.sentences import parse
from glassformer.learn.site import SCRIPTS, STATIC
from glassformer.learn.steps import STEPS
from tests import browser as browser_module
from tests.browser import Chromium, Tab
from tests.learn.test_question import CASES, NUMBERS, WRITTEN
from tests.learn.test_steps import OWN

LIVE = [step for step in STEPS if step.live]


def test_without_a_browser_these_tests_are_skipped_unless_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser_module, "CHROMIUM", None)
    monkeypatch.delenv("GLASSFORMER_BROWSER", raising=False)
    with pytest.raises(pytest.skip.Exception, match="there is no Chromium"):
        browser_module.chromium_or_skip()
    monkeypatch.setenv("GLASSFORMER_BROWSER", "required")
    with pytest.raises(pytest.fail.Exception, match="there is no Chromium"):
        browser_module.chromium_or_skip()


@pytest.fixture(scope="module")
def script(chromium: Chromium) -> Iterator[Tab]:
    """An empty page with the lesson's mathematics in it, which no test changes."""
    with chromium.tab() as tab:
        for name in SCRIPTS[:-1]:  # the last one draws the page
            tab.wait(tab.page.add_script_tag(path=STATIC / name))
        yield tab


def assert_same(found: Any, wanted: Any, where: str = "") -> None:
    """Equal, numbers to nine digits."""
    if isinstance(wanted, dict):
        assert isinstance(found, dict), where
        assert found.keys() == wanted.keys(), where
        for key in wanted:
            assert_same(found[key], wanted[key], f"{where}.{key}")
    elif isinstance(wanted, list):
        assert isinstance(found, list), where
        assert len(found) == len(wanted), f"{where}: {found} {wanted}"
        for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
            assert_same(a, b, f"{where}[{i}]")
    elif isinstance(wanted, float | int) and not isinstance(wanted, bool):
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9), where
    else:
        assert found == wanted, where


def random_texts(n: int) -> list[list[str]]:
    """Sentences of few or many words, of different lengths, some counting more often."""
    dice = random.Random(7)
    texts = []
    for _ in range(n):
        words = [
            dice.choice(["the", "a", "Über", "né", "日本", "🙂", "zz9", "x"]) + str(i) * dice.randint(0, 2)
            for i in range(dice.randint(1, 30))
        ]
        lines = [" ".join(dice.choices(words, k=dice.randint(1, 18))) for _ in range(dice.randint(1, 14))]
        texts.append([line + (f" *{dice.randint(0, 30)}" if dice.random() < 0.3 else "") for line in lines])
    return texts


@pytest.mark.parametrize("step", LIVE, ids=lambda step: step.name)
def test_the_page_computes_what_python_computes(script: Tab, step: Any) -> None:
    texts = [step.example.split("\n"), *OWN, *random_texts(25)]
    example = json.dumps(step.example.split("\n"))
    call = f"{json.dumps(texts)}.map((text) => Lesson.show({step.name!r}, text, {example}))"
    for text, found in zip(texts, json.loads(script.run(f"JSON.stringify({call})")), strict=True):
        wanted = json.loads(json.dumps(step.show(parse(text)).to_data()))
        assert_same(found, wanted, f"{step.name} of {text}")


def test_the_page_has_every_live_step(script: Tab) -> None:
    assert script.run("Object.keys(Lesson.makers)") == [step.name for step in LIVE]


def test_the_page_reads_and_judges_answers_as_python_does(script: Tab) -> None:
    for question, given, right in CASES:
        data = json.dumps(question.to_data())
        assert script.run(f"Lesson.accepts({data}, {json.dumps(given)})") is right
        assert script.run(f"Lesson.answerOf({data})") == question.answer
    for text, number in NUMBERS.items():
        one = json.dumps({"answers": [number if number is not None else 0.0], "choices": None})
        assert script.run(f"Lesson.accepts({one}, {json.dumps(text)})") is (number is not None)
    for value, written in WRITTEN:
        assert script.run(f"Maths.writeNumber({json.dumps(value)})") == written


def visit(tab: Tab, site: Path, name: str) -> None:
    tab.open(f"{site.as_uri()}#{name}")
    tab.until(f"!document.getElementById('step-{name}').hidden")


@pytest.mark.parametrize("width", [1280, 360])
def test_every_step_opens_without_a_word_on_the_console_and_without_a_request(tab: Tab, site: Path, width: int) -> None:
    tab.size(width, 800, dark=width == 360)
    tab.open(site.as_uri())
    for i, step in enumerate(STEPS):
        seen = tab.run(
            """(() => {
              const open = [...document.querySelectorAll("main section")].filter((s) => !s.hidden);
              const parts = "h2, p, figcaption, textarea, button, form, svg, .scroll, .bars, .pieces";
              const outside = (part) => part.getBoundingClientRect().right > innerWidth + 1;
              return {
                n: open.length, id: open[0].id, figures: open[0].querySelectorAll("figure").length,
                kinds: [...open[0].querySelectorAll("figure")].map((f) => f.dataset.kind),
                question: open[0].querySelector(".ask").innerText, title: document.title,
                wide: document.documentElement.scrollWidth,
                outside: [...open[0].querySelectorAll(parts)].filter(outside).map((part) => part.outerHTML),
              };
            })()"""
        )
        shown = step.show() if step.live else None
        assert (seen["n"], seen["id"]) == (1, f"step-{step.name}")
        assert seen["figures"] >= 1
        assert shown is None or seen["kinds"] == [figure.kind for figure in shown.figures]
        assert shown is None or shown.question.text in seen["question"]
        assert step.title in seen["title"]
        assert seen["wide"] <= width
        assert seen["outside"] == []
        if i + 1 < len(STEPS):
            tab.run("document.querySelector('main section:not([hidden]) .onward a:last-child').click()")
            name = STEPS[i + 1].name
            tab.until(f"!document.getElementById('step-{name}').hidden")
    assert tab.complaints == []
    assert set(tab.requests) == {site.as_uri()}


def test_the_numbers_follow_the_sentences(tab: Tab, site: Path) -> None:
    visit(tab, site, "first-order")
    read = (
        "[...document.querySelectorAll('#step-first-order .bars li')].map((li) => li.innerText.split('\\n').join(' '))"
    )
    cells = "document.querySelectorAll('#step-first-order .bars .number')"
    assert tab.run(f"[...{cells}].map((n) => n.textContent)") == ["0.50", "0.30", "0.20"]
    tab.run("document.getElementById('text-first-order').select(), 0")
    tab.run("document.getElementById('text-first-order').focus()")
    tab.type("we go home *3\nwe go out")
    labels = tab.run(
        "[...document.querySelectorAll('#step-first-order .bars li > :first-child')].map((n) => n.textContent)"
    )
    assert labels == ["home", "out"], tab.run(read)
    assert tab.run(f"[...{cells}].map((n) => n.textContent)") == ["0.75", "0.25"]
    assert "“out”" in tab.run("document.querySelector('#step-first-order .question label').textContent")
    tab.run("document.querySelector('#step-first-order .reset').click()")
    assert tab.run(f"[...{cells}].map((n) => n.textContent)") == ["0.50", "0.30", "0.20"]
    assert tab.complaints == []


def test_steps_that_share_an_example_share_the_change(tab: Tab, site: Path) -> None:
    visit(tab, site, "skips")
    tab.run("document.getElementById('text-skips').select(), document.getElementById('text-skips').focus()")
    tab.type("the red fox ran home\nthe blue fox ran away")
    tab.run("location.hash = 'masking'")
    tab.until("!document.getElementById('step-masking').hidden")
    assert tab.run("document.getElementById('text-masking').value") == "the red fox ran home\nthe blue fox ran away"
    assert "red … ran" in tab.run("document.querySelector('#step-masking .figures').innerText")


def test_a_text_that_does_not_fit_says_so_and_shows_the_example(tab: Tab, site: Path) -> None:
    visit(tab, site, "second-order")
    box = "document.getElementById('text-second-order')"
    tab.run(f"{box}.value = '', {box}.dispatchEvent(new Event('input'))")
    note = tab.run("document.querySelector('#step-second-order .note').innerText")
    assert note == "There is no word in the text. So here is the example."
    assert "battery ran" in tab.run("document.querySelector('#step-second-order .figures').innerText")
    assert tab.run(f"{box}.value") == ""


def test_what_a_reader_types_is_text_only(tab: Tab, site: Path) -> None:
    visit(tab, site, "one-hot")
    box = "document.getElementById('text-one-hot')"
    evil = "<img src=x onerror=document.title=1> </script> <b>x</b>"
    tab.run(f"{box}.value = {json.dumps(evil)}, {box}.dispatchEvent(new Event('input'))")
    assert tab.run("document.querySelectorAll('main img, main b').length") == 0
    assert "<b>x</b>" in tab.run("document.querySelector('#step-one-hot .figures').innerText")
    assert tab.complaints == []
    assert set(tab.requests) == {site.as_uri()}


@pytest.mark.parametrize("name", ["one-hot", "masking", "cross-attention"])
def test_a_question_is_answered_by_keyboard(tab: Tab, site: Path, name: str) -> None:
    visit(tab, site, name)
    told = f"document.querySelector('#step-{name} .told').innerText"
    question = find_step(name).show().question
    tab.run(f"document.getElementById('answer-{name}').focus()")
    tab.type("no idea")
    tab.press("Enter")
    assert tab.run(told) == f"Not quite. {question.hint}"
    tab.run(f"document.getElementById('answer-{name}').select()")
    tab.type(question.answer)
    tab.press("Enter")
    assert tab.run(told) == "Right!"


def test_a_choice_is_checked_and_an_answer_shown(tab: Tab, site: Path) -> None:
    visit(tab, site, "skip-connections")
    section = "document.querySelector('#step-skip-connections')"
    for i, said in enumerate(["Not quite. Something is added to x. How much is it here?", "Right!"]):
        tab.run(f"{section}.querySelectorAll('input')[{i}].click(), {section}.querySelector('[type=submit]').click()")
        assert tab.run(f"{section}.querySelector('.told').innerText") == said
    tab.run(f"{section}.querySelector('.question .plain').click()")
    assert tab.run(f"{section}.querySelector('.told').innerText") == "It is the input."


def test_an_unknown_address_opens_the_first_step(tab: Tab, site: Path) -> None:
    tab.open(f"{site.as_uri()}#nowhere")
    tab.until("!document.getElementById('step-one-hot').hidden")
    assert tab.complaints == []


def test_the_list_of_steps_is_folded_on_a_phone_and_open_beside_the_step(tab: Tab, site: Path) -> None:
    for width, is_open in ((360, False), (1280, True)):
        tab.size(width, 800)
        visit(tab, site, "skips")
        assert tab.run("document.querySelector('nav details').open") is is_open


def test_a_table_wider_than_the_page_says_so(tab: Tab, site: Path) -> None:
    for width, is_cut in ((360, True), (1280, False)):
        tab.size(width, 800)
        visit(tab, site, "pictures")
        tables = "[...document.querySelectorAll('#step-pictures .scroll')]"
        cut = tab.run(f"{tables}.map((t) => t.scrollWidth > t.clientWidth)")
        assert tab.run(f"{tables}.map((t) => !t.nextElementSibling.hidden)") == cut
        assert any(cut) is is_cut


def test_text_and_background_differ_enough_in_light_and_dark(tab: Tab, site: Path) -> None:
    """WCAG's ratio of 4.5 for all text in tables, however deep the colour under it."""
    for dark in (False, True):
        tab.size(1280, 900, dark)
        for name in ("positions", "first-order"):
            visit(tab, site, name)
            assert tab.least_contrast() >= 4.5, (name, dark)
