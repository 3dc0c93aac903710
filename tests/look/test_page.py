"""The page in a real browser: every view opens, its numbers are Python's, nothing goes out, keys work."""

import json
from pathlib import Path
from typing import Any

import pytest

from glassformer.cli.main import run
from glassformer.look.page import STATIC, make_page, write_page
from glassformer.look.readings.attention_maps import attention_maps, mean_map, rollout
from glassformer.look.scene import Scene, look_at
from glassformer.look.subject import LookOptions
from glassformer.model.settings import PatchesSettings
from glassformer.tasks.classifier import Classifier
from glassformer.tasks.model_dir import LoadedModel
from tests.browser import Tab
from tests.look.conftest import Kind, pictures_of

CURRENT = "document.querySelector('nav [aria-current]').getAttribute('href')"
VIEWS = ["model", "attention", "matrix", "walk", "answer", "why", "compare"]
KINDS = (
    *("translate", "complete", "fill", "classify", "classify_by_decoder", "choices", "number", "transcribe", "picture"),
    *("series", "whisper"),
)
SELDOM = ("classify_by_decoder", "choices", "number")


class Pages(dict[str, tuple[Path, list[Scene]]]):
    """The page of each kind and what is on it, made when it is first asked for."""

    def __init__(self, folder: Path, kinds: dict[str, Kind]) -> None:
        super().__init__()
        assert tuple(kinds) == KINDS
        self.folder, self.kinds = folder, kinds

    def __missing__(self, name: str) -> tuple[Path, list[Scene]]:
        path, kind = self.folder / f"{name}.html", self.kinds[name]
        path.write_text(make_page("tiny", kind.task, kind.scenes), encoding="utf-8")
        self[name] = (path, kind.scenes)
        return self[name]


@pytest.fixture(scope="module")
def pages(kinds: dict[str, Kind], tmp_path_factory: pytest.TempPathFactory) -> Pages:
    return Pages(tmp_path_factory.mktemp("pages"), kinds)


def visit(tab: Tab, page: Path, view: str) -> None:
    tab.open(f"{page.as_uri()}#{view}")


@pytest.mark.parametrize(
    ("task", "width"),
    [
        *((kind, 1280) for kind in KINDS if kind not in SELDOM),
        *(pytest.param(kind, 1280, marks=pytest.mark.slow) for kind in SELDOM),
        ("translate", 360),
        pytest.param("picture", 360, marks=pytest.mark.slow),
        pytest.param("transcribe", 360, marks=pytest.mark.slow),
    ],
)
def test_every_view_opens_without_a_complaint_and_without_a_request(
    tab: Tab, pages: Pages, task: str, width: int
) -> None:
    page, _ = pages[task]
    tab.size(width, 800, dark=width == 360)
    tab.open(page.as_uri())
    for number, view in enumerate(VIEWS, 1):
        tab.press(str(number))
        tab.until(f"{CURRENT} === '#{view}'")
        seen = tab.run(
            """({
              text: document.getElementById("view").innerText,
              wide: document.documentElement.scrollWidth,
              unnamed: [...document.querySelectorAll("button, select, a")].filter((n) =>
                !(n.innerText || n.getAttribute("aria-label") || n.name)).map((n) => n.outerHTML),
            })"""
        )
        assert len(seen["text"]) > 50
        assert "NaN" not in seen["text"]
        assert "undefined" not in seen["text"]
        assert seen["wide"] <= width, view
        assert seen["unnamed"] == []
    assert tab.complaints == []
    assert {address.split("#")[0] for address in tab.requests} == {page.as_uri()}


def numbers(tab: Tab, script: str) -> Any:
    return json.loads(tab.run(f"JSON.stringify({script})"))


@pytest.mark.parametrize("task", ["translate", "complete"])
def test_the_page_s_maps_are_python_s(tab: Tab, pages: Pages, task: str) -> None:
    page, scenes = pages[task]
    tab.open(page.as_uri())
    for i, scene in enumerate(scenes):
        for kind, stack, name in (
            ("cross", "decoder", "cross"),
            ("decoder", "decoder", "self"),
            ("encoder", "encoder", "self"),
        ):
            if task == "complete" and kind != "decoder":
                continue
            maps = attention_maps(scene.seen, stack, name)  # type: ignore[arg-type]
            wanted = {(1 % len(maps), 3): maps[1 % len(maps), 3], (-1, -1): mean_map(maps)}
            if name == "self":
                wanted[-2, 0] = rollout(maps)
            for (layer, head), weights in wanted.items():
                find = f"Data.kinds().find((k) => k.id === '{kind}')"
                call = f"Array.from(Data.weights(Data.all.runs[{i}], {find}, {layer}, {head}).values)"
                assert numbers(tab, call) == pytest.approx(weights.flatten().tolist(), abs=1e-6)


def test_the_matrix_shows_the_weights(tab: Tab, pages: Pages) -> None:
    page, scenes = pages["translate"]
    visit(tab, page, "matrix")
    tab.run("Page.choose({ layer: 1, head: 2 })")
    cells = tab.run("[...document.querySelectorAll('#view table')][0].innerText")
    weights = attention_maps(scenes[0].seen, "decoder", "cross")[1, 2]
    shown = [line.split("\t")[1:] for line in cells.split("\n")[1:] if line.strip()]
    values = [[float(v.replace("−", "-")) for v in row] for row in shown if row]
    assert values == [pytest.approx(row, abs=6e-4) for row in weights.tolist()]
    tab.run("Page.choose({ layer: -1 })")
    assert "Choose one layer and one head" in tab.run("document.getElementById('view').innerText")


@pytest.mark.parametrize("task", ["translate", "complete", "fill", "picture"])
def test_the_walk_computes_in_the_page_what_the_model_computed(tab: Tab, pages: Pages, task: str) -> None:
    page, scenes = pages[task]
    visit(tab, page, "walk")
    kinds = tab.run("Data.kinds().map((k) => k.id)")
    n_checks = 0
    for kind in kinds:
        for head in (0, 3):
            find = f"Data.kinds().find((k) => k.id === '{kind}')"
            tab.run(f"Page.choose({{ kind: {find}, layer: 1, head: {head}, position: 2 }})")
            apart = tab.run("[...document.querySelectorAll('.check')].map((n) => Number(n.dataset.apart))")
            assert all(a < 1e-4 for a in apart)
            assert "✗" not in tab.run("document.getElementById('view').innerText")
            n_checks += len(apart)
    assert n_checks >= 6 * len(kinds)
    stack = "decoder" if "decoder" in kinds else "encoder"
    tab.run(f"Page.choose({{ kind: Data.kinds().find((k) => k.id === '{stack}'), layer: 0, head: 1, position: 2 }})")
    row = tab.run("[...document.querySelectorAll('#scores tbody tr')].map((r) => r.lastChild.innerText)")
    wanted = attention_maps(scenes[0].seen, stack)[0, 1, 2].tolist()
    assert [float(v.replace("−", "-")) for v in row] == pytest.approx(wanted, abs=6e-4)


def formulas(tab: Tab, **chosen: int) -> list[str]:
    tab.run(f"Page.choose({json.dumps(chosen)})")
    return tab.run("[...document.querySelectorAll('.formula')].map((f) => f.textContent)")  # type: ignore[no-any-return]


def test_the_formulas_are_those_of_the_model(tab: Tab, pages: Pages, llama: LoadedModel, tmp_path: Path) -> None:
    visit(tab, pages["translate"][0], "walk")
    found = formulas(tab, layer=1)
    assert "q = norm(x) WQ + bQ, k = s WK + bK, v = s WV + bV" in found
    assert "hidden = GELU(norm(x) W1 + b1)" in found
    assert "logits = x W,   share = softmax(logits)" in found
    visit(tab, pages["complete"][0], "walk")  # its norms stand behind
    found = formulas(tab, layer=0)
    assert "q = x WQ + bQ, k = x WK + bK, v = x WV + bV" in found
    assert "hidden = GELU(x W1 + b1)" in found
    for kind, wanted in (("choices", "logits = x W + b,   share = sigmoid(logits)"), ("number", "answer = x w + b")):
        visit(tab, pages[kind][0], "walk")
        assert formulas(tab, layer=1)[-1] == wanted
        assert "softmax turns these logits" not in tab.text("#view")

    page = tmp_path / "llama.html"
    write_page(page, "llama", "complete", [look_at(llama, "the old man", LookOptions(max_tokens=2))], ablate=False)
    visit(tab, page, "walk")
    found = formulas(tab, layer=0)
    assert "q = turn(norm(x) WQ), k = turn(norm(x) WK), v = norm(x) WV + bV" in found
    assert "turned by an angle that grows with their position" in tab.text("#view")
    assert next(f for f in found if f.startswith("out = Concat")).endswith(") WO")
    assert "hidden = SiLU(norm(x) Wgate) · (norm(x) W1)" in found
    assert "out = hidden W2" in found
    assert tab.complaints == []


def test_the_answers_and_reasons_are_python_s(tab: Tab, pages: Pages) -> None:
    page, scenes = pages["translate"]
    visit(tab, page, "answer")
    data = scenes[0].data()
    said = tab.run("[...document.querySelectorAll('#view tbody tr')].map((r) => r.children[1].innerText)")
    steps = [data["names"][str(best["said"]["id"])] for best in data["best"]]
    assert [text.strip() for text in said[: len(steps)]] == [text.strip() for text in steps]
    assert tab.run("document.querySelectorAll('#view svg rect').length") == len(data["beam"])
    visit(tab, page, "why")
    tab.run("Page.choose({ position: 1 })")
    shown = tab.run("[...document.querySelectorAll('#parts li')].map((li) => li.lastChild.innerText)")
    wanted = sorted(data["attribution"][1]["parts"].values(), key=lambda v: -abs(v))
    for text, value in zip(shown, wanted, strict=True):
        assert float(text.replace("−", "-")) == pytest.approx(value, abs=6e-4)
    top = tab.run("[...document.querySelectorAll('#lens tbody tr')][0].innerText").split("\t")[1:]
    best = [data["names"][str(ids[0])] for ids in data["lens"]["ids"][-1]]
    assert [t.strip() for t in top] == [b.strip() for b in best]


def test_of_several_labels_the_likeliest_is_named_so(tab: Tab, pages: Pages) -> None:
    page, scenes = pages["choices"]
    visit(tab, page, "answer")
    for i, scene in enumerate(scenes):
        tab.run(f"Page.choose({{ run: {i} }})")
        text = tab.text("#view")
        assert "What was chosen" not in text
        assert ("so none is said" in text) == (scene.subject.answer == "none")
    tab.run("Data.all.runs[0].best[0].p.fill(0.4)")
    tab.run("Page.choose({ run: 0 })")
    assert "No label reaches a half, so none is said; the likeliest is in bold." in tab.text("#view")
    visit(tab, page, "compare")
    assert "B's likeliest label" in tab.text("#view")
    assert tab.complaints == []


def test_the_page_says_why_there_is_no_map(tab: Tab, pages: Pages) -> None:
    for kind in ("whisper", "series"):
        page, _ = pages[kind]
        visit(tab, page, "compare")
        why = tab.run("Data.all.comparison.why")
        assert why
        assert why in tab.text("#view")


def shown_numbers(tab: Tab, selector: str) -> list[float]:
    return [float(text.replace("−", "-")) for text in tab.texts(selector)]


def test_a_recording_a_picture_and_a_series_lie_under_their_attention(tab: Tab, pages: Pages) -> None:
    for kind in ("transcribe", "picture", "series"):
        page, scenes = pages[kind]
        visit(tab, page, "attention")
        given = scenes[0].seen["source.input"][0]
        shown = numbers(tab, "Array.from(Data.tensor(Data.all.runs[0], 'source.input').values)")
        assert shown == pytest.approx(given.flatten().tolist(), abs=1e-6)
        drawn = "document.querySelectorAll('#view figure :is(canvas, polyline)').length"
        assert tab.run(drawn) >= (4 if kind == "series" else 2)  # three numbers a step are three lines
    tab.run("document.querySelector('#view figure details').open = true")
    tab.until("document.querySelector('#view figure td')")
    assert shown_numbers(tab, "#view figure td:not(.left)") == pytest.approx(given.flatten().tolist(), abs=6e-4)


def test_the_tree_of_a_transcript_is_python_s(tab: Tab, pages: Pages) -> None:
    page, scenes = pages["transcribe"]
    visit(tab, page, "answer")
    data = scenes[0].data(ablate=False)
    assert tab.run("document.querySelectorAll('#view svg rect').length") == len(data["beam"]) > 4
    tab.run("document.querySelector('#view figure details').open = true")
    rows = [row.split("\t") for row in tab.texts("#view figure tbody tr")]
    for row, node in zip(rows, data["beam"], strict=True):
        assert int(row[0]) == node["step"]
        assert row[2].strip() == data["names"][str(node["token"])].strip()
        assert float(row[4].replace("−", "-")) == pytest.approx(node["total"], abs=6e-4)
    assert [i for i, row in enumerate(rows) if row[5] == "yes"] == sorted(data["path"])
    assert "0.30 × that of CTC" in tab.text("#view figure figcaption")


def test_a_picture_is_looked_into_by_the_shell(
    tab: Tab, pictures: LoadedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, file = tmp_path / "p.html", pictures.path / "0.png"
    with pytest.raises(SystemExit) as stop:
        run(["look", str(pictures.path), str(file), "--out", str(page)])
    answer = Classifier(pictures).classify([file])[0]
    assert (stop.value.code, capsys.readouterr().err.split("\n")[0]) == (0, f"0.png → {answer.label}")
    scene = look_at(pictures, str(file))
    visit(tab, page, "answer")
    shares = numbers(tab, "Data.all.runs[0].best[0]")
    assert {
        tab.run(f"Data.nameOf(Data.all.runs[0], {i})"): p for i, p in zip(shares["ids"], shares["p"], strict=True)
    } == (pytest.approx(dict(answer.probabilities), abs=1e-6))
    visit(tab, page, "attention")
    # A click on the second patch of the first row: it looks from there.
    tab.wait(tab.page.locator("#view .pictures canvas").nth(1).click(position={"x": 120, "y": 20}))
    assert tab.run("Page.state.position") == 2
    tab.run("document.querySelector('#view figure details').open = true")
    tab.until("document.querySelector('#view figure td')")
    weights = attention_maps(scene.seen, "encoder")[0, 0, 2, 1:].tolist()
    assert shown_numbers(tab, "#view figure td:not(.left)") == pytest.approx(weights, abs=6e-4)
    visit(tab, page, "why")
    tab.run("[...document.querySelectorAll('#view details')].at(-1).open = true")
    tab.until("document.querySelector('#view details td')")
    found = scene.data(ablate=False)["attribution"][0]["tokens"]["self"][1:]
    assert shown_numbers(tab, "#view details td:not(.left)") == pytest.approx(found, abs=6e-4)
    assert tab.complaints == []


def test_where_attention_has_no_room_all_layers_are_shown_at_once(tab: Tab, tmp_path: Path) -> None:
    large = pictures_of(tmp_path, PatchesSettings(height=384, width=384, patch=16))
    page, scene = tmp_path / "large.html", look_at(large, str(tmp_path / "0.png"))
    write_page(page, "large", "classify", [scene], ablate=False)
    visit(tab, page, "attention")
    assert "all layers rolled out" in tab.text("h2")
    assert tab.run("document.querySelectorAll('#view .pictures canvas').length") == 2
    shown = "Array.from(Data.weights(Data.all.runs[0], Data.kinds()[0], -2, 0).values.slice(0, 577))"
    assert numbers(tab, shown) == pytest.approx(rollout(attention_maps(scene.seen, "encoder"))[0].tolist(), abs=1e-6)
    assert tab.complaints == []


def test_keys_and_clicks_choose(tab: Tab, pages: Pages) -> None:
    page, _ = pages["translate"]
    visit(tab, page, "attention")
    for key in ("]", ".", ".", "ArrowRight"):
        tab.press(key)
    state = tab.run("({ layer: Page.state.layer, head: Page.state.head, position: Page.state.position })")
    assert state == {"layer": 1, "head": 2, "position": 1}
    assert "layer 1, head 2" in tab.run("document.querySelector('h2').innerText")
    tab.press("a")
    assert tab.run("Page.state.kind.id") != "cross"
    tab.press("i")
    assert tab.run("Page.state.run") == 1
    visit(tab, page, "attention")
    tab.run("document.querySelector('[data-row=\"2\"]').dispatchEvent(new MouseEvent('click', { bubbles: true }))")
    assert tab.run("Page.state.position") == 2
    assert tab.run("document.querySelectorAll('#view figure svg rect').length") > 0
    visit(tab, page, "model")
    tab.run("document.querySelector('[data-path=\"decoder.blocks.1.feed_forward\"]').click()")
    assert "hidden" in tab.run("document.querySelector('.inspector').innerText")
    tab.run("document.querySelector('[data-point$=\".hidden\"]').click()")
    assert "d_ff" in tab.run("document.querySelector('.inspector').innerText")
    tab.run("document.querySelector('.inspector details').open = true")
    tab.until("document.querySelectorAll('.inspector td').length > 100")
    assert tab.complaints == []


def test_a_picture_s_channels_are_no_heads(tab: Tab, pages: Pages) -> None:
    visit(tab, pages["picture"][0], "model")
    tab.run("document.querySelector('[data-path=\"source\"]').click()")
    for point, said in (
        ("input", "(channels, height, width) = (3, 8, 12), channel 0 of 3"),
        ("projection", "number 0"),
    ):
        tab.run(f"document.querySelector('[data-point=\"source.{point}\"]').click()")
        text = tab.text(".inspector")
        assert said in text
        assert "head 0" not in text
    assert tab.complaints == []


def test_a_blank_is_filled_and_a_word_followed(tab: Tab, pages: Pages) -> None:
    for kind, said in (("fill", "was filled by"), ("complete", "was followed by")):
        page, scenes = pages[kind]
        visit(tab, page, "attention")
        place = next(i for i, answer in enumerate(scenes[0].subject.own_answers) if answer >= 0)
        tab.run(f"Page.choose({{ position: {place} }})")
        assert said in tab.text("#view")


def test_text_in_the_page_is_text_only(tab: Tab, translator: LoadedModel, tmp_path: Path) -> None:
    page = tmp_path / "evil.html"
    evil = "<img src=x onerror=document.title=1> </script><b>x</b>"
    page.write_text(
        make_page("<b>y</b>", "translate", [look_at(translator, evil, LookOptions(max_tokens=4))], ablate=False),
        encoding="utf-8",
    )
    for view in ("model", "walk", "answer"):
        visit(tab, page, view)
        assert tab.run("document.querySelectorAll('img, b:not(.formula b)').length") <= (view == "walk")
    assert evil in tab.run("document.querySelector('h1').innerText")
    assert tab.complaints == []


def test_text_and_background_differ_enough_in_light_and_dark(tab: Tab, pages: Pages) -> None:
    """WCAG's ratio of 4.5 for all text, however deep the colour under it."""
    page, _ = pages["translate"]
    for dark in (False, True):
        tab.size(1280, 900, dark)
        for view in ("walk", "why"):
            visit(tab, page, view)
            assert tab.least_contrast() >= 4.5, (view, dark)


def test_the_scripts_ask_nothing_of_a_network() -> None:
    for script in STATIC.glob("*.js"):
        source = script.read_text(encoding="utf-8")
        for word in ("fetch(", "XMLHttp", "import(", "WebSocket", "innerHTML", "http:"):
            assert word not in source.replace('"http://www.w3.org/2000/svg"', ""), (script.name, word)
