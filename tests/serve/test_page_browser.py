"""The page in Chromium, as a person uses it."""

import base64
import io
import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import soundfile
from PIL import Image

from glassformer.serve.app import Access
from glassformer.serve.models import Served
from glassformer.tasks.completer import Completer
from tests.browser import Chromium, Tab
from tests.serve.conftest import running
from tests.serve.models import plain_completer
from tests.serve.test_runs import write_run


def never_ending() -> Completer:
    face = plain_completer(Path("model"), context=100_000)
    face.tokenizer.marks = type(face.tokenizer.marks)(start=1, ends=(0,))
    # Slow enough that a browser on a busy machine comes in time to stop it.
    face.model.decoder.register_forward_pre_hook(lambda *_: time.sleep(0.003))
    return face


@pytest.fixture(scope="module")
def address(models: dict[str, Served]) -> Iterator[str]:
    with running({**models, "endless": Served("endless", never_ending())}) as found:
        yield found


class Page:
    """What a person does on the page."""

    def __init__(self, tab: Tab, address: str) -> None:
        self.tab, self.address = tab, address
        self.run, self.until, self.text = tab.run, tab.until, tab.text
        self.click, self.press = tab.click, tab.press

    def open(self, where: str = "", width: int = 1280) -> "Page":
        self.tab.size(width, 800)
        self.tab.open(f"{self.address}/{where}")
        self.until("document.querySelector('#view .card, #key:not([hidden])')")
        return self

    def type(self, selector: str, text: str) -> None:
        self.tab.type(text, into=selector)

    def marked(self, selector: str) -> list[str]:
        found: list[str] = self.run(
            f"[...document.querySelectorAll('{selector} .marked')].map((node) => node.textContent)"
        )
        return found


@pytest.fixture
def page(tab: Tab, address: str) -> Iterator[Page]:
    yield Page(tab, address)
    tab.run("localStorage.clear()")
    assert tab.complaints == []


def ask(address: str, path: str, **body: Any) -> Any:
    return httpx.post(f"{address}/api/{path}", json=body).json()


def test_a_text_is_translated_as_it_is_typed(page: Page) -> None:
    page.open()
    for part in ("I like", " tea. Where is", " the station?"):
        page.type("#source", part)
    found = ask(page.address, "translate", texts=["I like tea.", "Where is the station?"])["translations"]
    wanted = " ".join(best[0]["text"] for best in found)
    page.until(f"document.querySelector('#target').innerText === {json.dumps(wanted)}")
    # Other ways to say the last sentence; a click takes one.
    other = page.text(".others li button")
    assert other not in wanted
    page.click(".others li button")
    assert page.text("#target") == f"{found[0][0]['text']} {other}"


def test_words_show_where_they_come_from(page: Page) -> None:
    page.open()
    page.type("#source", "I like tea.")
    page.until("document.querySelector('#target').innerText.includes('Tee')")
    words = page.run("[...document.querySelectorAll('#target .word')].map((node) => node.textContent)")
    at = words.index("Tee")
    page.run("document.querySelector('#target').focus()")
    for _ in range(at + 1):
        page.press("ArrowRight")
    assert page.marked("#target") == ["Tee"]
    assert page.marked(".mirror") == ["tea"]
    assert page.text("#view .foot [role=status]") == "“Tee” comes from “tea”"
    page.run("document.querySelector('#target').blur()")
    assert page.marked(".mirror") == []
    hover = (
        "document.querySelectorAll('#target .word')[0].dispatchEvent(new PointerEvent('pointerover', {bubbles: true}))"
    )
    page.run(hover)
    assert page.marked(".mirror") == ["I"]


def test_only_the_newest_answer_counts_and_known_sentences_are_not_asked_again(page: Page) -> None:
    page.open()
    page.run(
        """window.asked = []; const real = fetch; window.fetch = async (path, options) => {
          const body = JSON.parse(options.body); asked.push(body.texts);
          const answer = await real(path, options);
          if (body.texts[0] === "Tom") await new Promise((done) => setTimeout(done, 1500));
          return answer; }; 0"""
    )
    page.type("#source", "Tom")
    page.until("asked.length === 1")
    page.type("#source", " sleeps.")
    page.until("document.querySelector('#target').innerText.startsWith('Tom ')")
    page.type("#source", " I see.")
    page.until("asked.length === 3")
    page.until("document.querySelectorAll('#target .word').length > 4")
    assert page.run("asked") == [["Tom"], ["Tom sleeps."], ["I see."]]


def test_a_long_text_comes_in_parts_and_keeps_its_lines(page: Page) -> None:
    page.open()
    page.run("window.n = 0; const real = fetch; window.fetch = (...given) => { n += 1; return real(...given); }; 0")
    lines = [f"Tom has {i} cats." for i in range(2, 20)]
    page.type("#source", "\n\n".join(lines))
    page.until("!document.querySelector('#target').matches('.old, :empty')")
    found = page.run("document.querySelector('#target').textContent").split("\n\n")
    wanted = ask(page.address, "translate", texts=lines)["translations"]
    assert found == [best[0]["text"] for best in wanted]
    assert page.run("n") == 2


def test_an_answer_streams_and_stops(page: Page) -> None:
    page.open("#model=endless")
    page.run("document.querySelector('[name=max_tokens]').value = 7000")
    page.run("document.querySelector('[name=max_tokens]').dispatchEvent(new Event('input'))")
    page.type("#prompt", "the cat")
    page.run("document.querySelector('#view .main').focus()")
    page.press("Enter")  # the button goes, and the focus with it
    page.until("document.querySelector('#answer').innerText.length > 40")
    assert page.run("document.querySelector('#view .stop').hidden") is False
    page.press("Escape")
    page.until("document.querySelector('#view .stop').hidden")
    assert page.text(".notice") == "Stopped."
    page.until("fetch('/metrics').then((found) => found.text()).then((text) => text.includes('rows_running 0'))")


def test_a_seed_gives_the_answer_of_the_interface_and_certainty_is_shown(page: Page) -> None:
    page.open("#model=stories")
    for name, value in (("seed", "7"), ("max_tokens", "20"), ("top_p", "1"), ("temperature", "0.5")):
        page.run(f"document.querySelector('[name={name}]').value = {value!r}")
        page.run(f"document.querySelector('[name={name}]').dispatchEvent(new Event('input'))")
    page.type("#prompt", "the cat")
    page.press("Control+Enter")
    page.until("/Done|ended/.test(document.querySelector('.notice').innerText)")
    options = {"seed": 7, "max_tokens": 20, "temperature": 0.5}
    wanted = ask(page.address, "complete", model="stories", prompts=["the cat"], options=options)
    wanted_text = wanted["completions"][0][0]["text"]
    assert page.run("document.querySelector('#answer').textContent") == wanted_text
    page.click("#sure")
    assert page.run("document.querySelector('#answer').textContent") == wanted_text
    assert page.run("document.querySelectorAll('#answer .token').length") > 3
    page.click("#view .foot button", 2)  # take it over
    assert page.run("document.querySelector('#prompt').value") == f"the cat{wanted_text}"


def test_a_talk(page: Page) -> None:
    page.open("#model=talker")
    page.type("#message", "Hello")
    page.press("Enter")
    page.until("document.querySelector('#talk .assistant p').textContent.length > 5")
    page.until("document.querySelector('#view .stop').hidden")
    assert page.text("#talk .user p") == "Hello"
    assert page.run("document.querySelector('#message').value") == ""


def test_a_blank_is_filled_by_a_click(page: Page) -> None:
    page.open("#model=blanks")
    page.type("#source", "the ___ sat")
    page.until("document.querySelectorAll('.bars button').length === 8")
    guesses = ask(page.address, "fill", texts=["the ___ sat"], top=8)["answers"][0]["blanks"][0]
    labels = page.run("[...document.querySelectorAll('.bars .label')].map((node) => node.textContent)")
    assert labels == [guess["word"] for guess in guesses]
    page.click(".bars button", 1)
    assert page.run("document.querySelector('#source').value") == f"the {labels[1]} sat"
    page.until("!document.querySelector('.bars')")


def test_a_text_is_classified_and_texts_are_compared(page: Page) -> None:
    page.open("#model=mood")
    page.type("#source", "the cat sat")
    page.until("document.querySelectorAll('.bars li').length === 2")
    assert page.text(".label-found") == ask(page.address, "classify", texts=["the cat sat"])["answers"][0]["label"]
    page.open("#model=en-de&view=compare")
    page.type("#source", "I like tea.\nI like tea.\nWhere is it?")
    page.until("document.querySelectorAll('td.heat').length === 6")
    cells = page.run("[...document.querySelectorAll('tbody td')].map((node) => Number(node.textContent))")
    assert cells[:3] == [1, 1, cells[2]]
    assert cells[2] < 1
    assert page.text("#view section p").startswith("Closest: “I like tea.” and “I like tea.”")


def test_look_inside_opens_the_trace(page: Page) -> None:
    page.open()
    page.type("#source", "I like tea.")
    page.until("document.querySelector('#target').innerText.includes('Tee')")
    link = "document.querySelector('.foot a')"
    page.run(f"{link}.dispatchEvent(new Event('focus'))")
    page.tab.open(page.run(f"{link}.href"))
    page.until("document.body.innerText.includes('Made by glassformer look')")
    assert "I like tea.→Ich mag Tee." in page.text("body")


def test_errors_are_told_kindly(page: Page) -> None:
    page.open("#model=mood")
    for answer, said in (
        ("Promise.reject(new TypeError('x'))", "The server does not answer. Is it still running? Then try again."),
        ("Response.json({error: 'Too long.', hint: 'Give less.'}, {status: 400})", "Too long. Give less."),
        ("new Response('<b>', {status: 500})", "Something went wrong in the server."),
    ):
        page.run(f"window.fetch = async () => {answer}; 0")
        page.type("#source", "x ")
        page.until(f"document.querySelector('.notice').innerText === {json.dumps(said)}")


def test_training_runs_are_one_click_away(chromium: Chromium, tmp_path: Path) -> None:
    for name in ("model", "runs/other"):
        write_run(tmp_path / name)
    models = {"stories": Served("stories", plain_completer(tmp_path / "model"))}
    with running(models, runs=[tmp_path / "runs"]) as address, chromium.tab() as tab:
        page = Page(tab, address).open()
        assert page.run("document.querySelector('#trained').hidden") is False
        own, runs = (
            page.run(f"document.querySelector('{link}').getAttribute('href')") for link in ("#trained", "#runs")
        )
        tab.open(address + own)
        page.until("document.querySelector('h1')?.innerText === 'The training of stories'")
        page.until("document.querySelector('#view svg')")
        tab.open(address + runs)
        page.until("document.querySelectorAll('.runs a').length === 2")
        page.run("[...document.querySelectorAll('.runs a')].find((link) => link.innerText === 'other').click()")
        page.until("document.querySelector('h1')?.innerText === 'The training of other'")
        assert tab.complaints == []


@pytest.mark.parametrize("where", ["", "#model=endless", "#model=talker", "#model=blanks", "#model=en-de&view=compare"])
def test_nothing_is_wider_than_a_phone(page: Page, where: str) -> None:
    page.open(where, width=360)
    assert page.run("document.documentElement.scrollWidth") <= 360
    outside = """[...document.querySelectorAll("button, select, textarea, a:not(.skip), h2, .card")]
      .filter((node) => node.getBoundingClientRect().right > innerWidth + 1).map((node) => node.outerHTML)"""
    assert page.run(outside) == []
    unnamed = """[...document.querySelectorAll("button, select, textarea, input, a")].filter((node) => !node.hidden
      && !(node.ariaLabel || node.labels?.length || node.textContent.trim())).map((node) => node.outerHTML)"""
    assert page.run(unnamed) == []


def test_the_language_is_the_browsers_or_the_chosen_one_and_what_was_typed_stays(
    chromium: Chromium, address: str
) -> None:
    with chromium.tab(locale="de-AT") as tab:
        page = Page(tab, address).open("#model=mood")
        assert page.run("document.documentElement.lang") == "de"
        assert page.text("#views [aria-selected=true]") == "Einordnen"
        page.type("#source", "the cat")
        page.click("#language")
        assert page.text("#views [aria-selected=true]") == "Classify"
        assert page.run("document.querySelector('#source').value") == "the cat"
        page.open()
        assert page.run("document.documentElement.lang") == "en"


def test_the_colours_can_be_chosen(page: Page) -> None:
    page.open("#model=mood")
    seen = []
    for _ in range(3):
        page.click("#theme")
        assert page.run("document.querySelector('#model').value") == "mood"
        seen.append(page.run("[document.documentElement.dataset.theme, getComputedStyle(document.body).color]"))
    assert [name for name, _ in seen] == ["light", "dark", "system"]
    assert seen[0][1] == seen[2][1] != seen[1][1]


def test_a_key_is_asked_for_where_the_server_wants_one(tab: Tab, models: dict[str, Served]) -> None:
    with running({"mood": models["mood"]}, access=Access(keys=["secret"])) as address:
        page = Page(tab, address).open()
        page.type("#key input", "wrong")
        page.press("Enter")
        page.until("document.querySelector('#view .bad')?.innerText.trim() === 'This key does not fit.'")
        page.run("document.querySelector('#key input').select()")
        page.type("#key input", "secret")
        page.press("Enter")
        page.until("document.querySelector('#source')")
        assert page.run("document.querySelector('#key').hidden") is True
        page.type("#source", "the cat")
        page.until("document.querySelector('.label-found')")


PLAYED = """
const real = window.fetch;
window.fetch = async (path, options) => {
  const told = (body) => Response.json(body);
  if (path === "/api/models") return told([{name: "eyes", task: "classify", input: "pictures"},
    {name: "ears", task: "transcribe"}]);
  if (path === "/api/classify") {
    window.sent = JSON.parse(options.body).pictures[0];
    return told({answers: [{label: "boot", probabilities: {shirt: 0.2, boot: 0.8}}]});
  }
  if (path === "/v1/audio/transcriptions") {
    window.sent = [...new Uint8Array(await options.body.get("file").arrayBuffer())];
    return told({text: " hello"});
  }
  return real(path, options);
};"""


def test_a_picture_is_dropped(chromium: Chromium, address: str) -> None:
    """The model is played by a script: what counts is that the file arrives as it is."""
    with chromium.tab() as tab:
        tab.wait(tab.page.add_init_script(PLAYED))
        page = Page(tab, address)
        page.open("#model=eyes")
        for data, seen in ((picture(), "boot"), (b"no picture", "This file is not a picture.")):
            drop = f"""(() => {{
              const data = new DataTransfer();
              const bytes = Uint8Array.from(atob({base64.b64encode(data).decode()!r}), (c) => c.charCodeAt(0));
              data.items.add(new File([bytes], "x.png", {{type: "image/png"}}));
              document.querySelector(".drop").dispatchEvent(new DragEvent("drop", {{dataTransfer: data}}));
            }})()"""
            page.run(drop)
            page.until(f"document.querySelector('.stack').innerText.includes({seen!r})")
        assert base64.b64decode(page.run("sent")) == picture()
        assert tab.complaints == []


def test_pairs_are_sent_to_models_of_pairs_only(chromium: Chromium, address: str) -> None:
    played = """
    window.sent = [];
    const real = window.fetch;
    const told = {answers: [{label: "yes", probabilities: {yes: 1}}]};
    const models = [1, 2].map((n) => ({name: `of${n}`, task: "classify", input: "text", n_texts: n, look: true}));
    window.fetch = async (path, options) => {
      if (path === "/api/models") return Response.json(models);
      if (path !== "/api/classify") return real(path, options);
      window.sent.push(JSON.parse(options.body));
      return Response.json(told);
    };"""
    with chromium.tab() as tab:
        tab.wait(tab.page.add_init_script(played))
        page = Page(tab, address).open("#model=of2")
        page.type("#source", "one")
        page.type("#second", "two")
        page.until("sent.some((body) => body.texts[0][1] === 'two')")
        page.run("document.querySelector('.foot a').dispatchEvent(new Event('focus'))")
        assert "text=one%09two" in page.run("document.querySelector('.foot a').href")
        assert page.run("sent.every((body) => Array.isArray(body.texts[0]))") is True
        page.run("location.hash = '#model=of1'; 0")
        page.until("sent.at(-1).model === 'of1'")
        assert page.run("sent.at(-1).texts") == ["one"]
        assert page.run("document.querySelector('#second').checkVisibility()") is False
        assert tab.complaints == []


def test_what_is_spoken_arrives_as_a_recording(address: str, tmp_path: Path) -> None:
    """The microphone is played by a file with a tone; it must come out with the same pitch."""
    rate, pitch = 48_000, 440
    soundfile.write(tmp_path / "tone.wav", 0.5 * np.sin(2 * np.pi * pitch * np.arange(rate) / rate), rate)
    played = f"--use-file-for-fake-audio-capture={tmp_path / 'tone.wav'}"
    browser = Chromium("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream", played)
    with closing(browser), browser.tab() as tab:
        tab.wait(tab.page.add_init_script(PLAYED))
        page = Page(tab, address).open("#model=ears")
        page.click(".round")
        page.until("document.querySelector('.notice').innerText === 'Recording … 1 s'")
        page.click(".round")
        page.until("document.querySelector('#transcript').innerText === 'hello'")
        heard, found_rate = soundfile.read(io.BytesIO(bytes(page.run("sent"))))
        assert tab.complaints == []
    assert (found_rate, heard.ndim) == (16_000, 1)
    assert len(heard) > 0.8 * found_rate
    loudest = np.abs(np.fft.rfft(heard)).argmax() * found_rate / len(heard)
    assert loudest == pytest.approx(pitch, abs=5)


def picture() -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (4, 3), "red").save(made, "PNG")
    return made.getvalue()
