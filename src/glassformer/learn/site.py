"""The lesson as one page in one folder: it opens by a double click, asks nothing of any network, and computes itself.

All is in one file, so that a half-written site cannot exist; the page draws its figures, so no text needs HTML in it.
"""

import json
from html import escape
from pathlib import Path
from typing import Any

from glassformer import __version__
from glassformer.data.files import write_text
from glassformer.errors import UserError, require
from glassformer.learn.sentences import Sentences
from glassformer.learn.step import Step
from glassformer.learn.steps import STEPS

STATIC = Path(__file__).parent / "static"
# Each uses those before it.
SCRIPTS = (
    "maths.js",
    "vectors.js",
    "pieces.js",
    "lesson.js",
    "counting_steps.js",
    "vector_steps.js",
    "page.js",
)
MARK = '<meta name="generator" content="glassformer learn">'
# The browser itself refuses whatever is not in the file.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; form-action 'none'"


def write_site(folder: Path, sentences: Sentences | None = None) -> Path:
    """Write index.html into the folder, unless there is one that is not ours."""
    require(not folder.exists() or folder.is_dir(), f"{folder} is a file, not a folder.", "Give another --out.")
    page = folder / "index.html"
    if page.exists() and MARK not in _beginning(page):
        raise UserError(f"{page} is there already and is not a lesson.", "Give another --out.")
    write_text(page, make_page(sentences))
    return page


def _beginning(page: Path) -> str:
    with page.open(encoding="utf-8", errors="replace") as file:
        return file.read(1000)


def make_page(sentences: Sentences | None = None) -> str:
    """The whole page, on the reader's sentences or the examples."""
    data = json.dumps(lesson_data(sentences), ensure_ascii=False).replace("<", "\\u003c")
    scripts = "\n".join(_static(name) for name in SCRIPTS)
    links = "".join(f'<li><a href="#{step.name}">{escape(step.title)}</a></li>\n' for step in STEPS)
    sections = "\n".join(_section(i, step) for i, step in enumerate(STEPS))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
{MARK}
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>From counting words to the Transformer · Glassformer</title>
<style>
{_static("style.css")}</style>
</head>
<body>
<a class="skip" href="#lesson-steps">To the lesson</a>
<header>
<h1>From counting words to the Transformer</h1>
<p>{len(STEPS)} short steps. Change the sentences, and the numbers follow.</p>
</header>
<div class="frame">
<nav aria-label="Steps"><details open><summary>All steps</summary>
<ol>
{links}</ol>
</details></nav>
<main id="lesson-steps" tabindex="-1">
<noscript><p>The figures are computed in this page: please allow scripts.</p></noscript>
{sections}
</main>
</div>
<footer>Made by <code>glassformer learn</code> {__version__}. This page works offline and sends nothing.</footer>
<script type="application/json" id="lesson">{data}</script>
<script>
{scripts}</script>
</body>
</html>
"""


def lesson_data(sentences: Sentences | None) -> dict[str, Any]:
    """What the page computes with: texts that steps share, and the figures of those that it cannot compute."""
    own = None if sentences is None else sentences.text()
    texts = list(dict.fromkeys(own or step.example for step in STEPS if step.live))
    steps = []
    for step in STEPS:
        entry: dict[str, Any] = {"name": step.name, "title": step.title, "live": step.live, "example": step.example}
        entry |= {"text": texts.index(own or step.example)} if step.live else {"shown": step.show(sentences).to_data()}
        steps.append(entry)
    return {"texts": texts, "steps": steps}


def _section(i: int, step: Step) -> str:
    before = f'<a href="#{STEPS[i - 1].name}">← {escape(STEPS[i - 1].title)}</a>' if i else "<span></span>"
    after = f'<a href="#{STEPS[i + 1].name}">{escape(STEPS[i + 1].title)} →</a>' if i + 1 < len(STEPS) else ""
    return f"""<section id="step-{step.name}" aria-labelledby="title-{step.name}"{" hidden" if i else ""}>
<p class="number-of">Step {i + 1} of {len(STEPS)}</p>
<h2 id="title-{step.name}" tabindex="-1">{escape(step.title)}</h2>
<p class="text">{escape(step.text)}</p>
{_box(step) if step.live else _STILL}
<p class="note" role="status" hidden></p>
<div class="figures"></div>
<div class="ask"></div>
<div class="onward">{before}{after}</div>
</section>"""


def _box(step: Step) -> str:
    return f"""<div class="sentences">
<label for="text-{step.name}">Your sentences, one a line (*3 at the end of a line counts it three times)</label>
<textarea id="text-{step.name}" rows="3" spellcheck="false"></textarea>
<button type="button" class="reset">Start again</button>
</div>"""


_STILL = (
    '<p class="still">These numbers come from a trained model and were computed when this page was made. '
    "For your own text: <code>glassformer learn --data FILE --out DIR</code>.</p>"
)


def _static(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")
