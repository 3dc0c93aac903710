"""The page: one offline HTML file with every number in it and the scripts that show them."""

import json
from html import escape
from pathlib import Path
from typing import Any

from glassformer import __version__
from glassformer.data.files import write_text
from glassformer.look.comparison import compare
from glassformer.look.packing import in_base64, pack
from glassformer.look.points import places
from glassformer.look.readings.attention_maps import attention_maps, rollout
from glassformer.look.scene import Scene
from glassformer.model import Transformer, count_parameters
from glassformer.model.stack import Stack

STATIC = Path(__file__).parent / "static"
# Each uses those before it.
SCRIPTS = (
    "data.js",
    "draw.js",
    "model_view.js",
    "sense_view.js",
    "attention_view.js",
    "walk_view.js",
    "answer_view.js",
    "reasons_view.js",
    "compare_view.js",
    "page.js",
)
ROOM = 4_800_000  # bytes of a page that data may take; tensors get what is left of it
# The browser itself refuses whatever is not in the file.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; form-action 'none'"


def write_page(path: Path, name: str, task: str, scenes: list[Scene], ablate: bool | None = None) -> None:
    write_text(path, make_page(name, task, scenes, ablate))


def make_page(
    name: str, task: str, scenes: list[Scene], ablate: bool | None = None, form: str = "", policy: str = POLICY
) -> str:
    """One input, or two to compare; `form` is for a page that is served."""
    data = as_json(page_data(name, task, scenes, ablate)).replace("<", "\\u003c")
    scripts = "\n".join((STATIC / script).read_text(encoding="utf-8") for script in SCRIPTS)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="glassformer look">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(scenes[0].subject.text[:60])} · {escape(name)} · Glassformer</title>
<style>
{(STATIC / "style.css").read_text(encoding="utf-8")}</style>
</head>
<body>
<a class="skip" href="#view">To the view</a>
{form}<header id="top"></header>
<nav id="views" aria-label="Views"></nav>
<form id="controls" aria-label="What to show" autocomplete="off"></form>
<main id="view" tabindex="-1"><noscript><p>The page draws itself: please allow scripts.</p></noscript></main>
{footer()}
<script type="application/json" id="data">{data}</script>
<script>
{scripts}</script>
</body>
</html>
"""


def as_json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def footer() -> str:
    return (
        f"<footer>Made by <code>glassformer look</code> {__version__}. "
        "This page works offline and sends nothing.</footer>"
    )


def page_data(name: str, task: str, scenes: list[Scene], ablate: bool | None = None) -> dict[str, Any]:
    model = scenes[0].model
    data: dict[str, Any] = {
        "model": {"name": name, "task": task, "parameters": count_parameters(model), **_shape(model)},
        "points": {place.name: [place.point.shape, place.point.caption] for place in places(model)},
        "runs": [scene.data(ablate) | {"rollout": _rollouts(scene)} for scene in scenes],
        "comparison": compare(*scenes) if len(scenes) == 2 else None,
    }
    room = (ROOM - len(as_json(data).encode())) // len(scenes)
    for run, scene in zip(data["runs"], scenes, strict=True):
        run["tensors"] = pack(scene.seen, room)
    return data


def _shape(model: Transformer) -> dict[str, Any]:
    """What the picture of the model is drawn from."""
    stacks = []
    for name, part in model.named_children():
        if isinstance(part, Stack):
            settings = getattr(model.settings, name)
            stacks.append(
                {
                    "name": name,
                    "layers": len(part.blocks),
                    "heads": part.n_heads,
                    "d_k": settings.d_k,
                    "cross": part.d_memory is not None,
                    "causal": part.causal,
                    "pre": settings.norm.place == "pre",
                    "norm": settings.norm.kind,
                    "final": part.norm is not None,
                    "activation": settings.feed_forward.activation,
                    "gated": settings.feed_forward.gated,
                    "bias": settings.attention.bias,
                    "feed_bias": settings.feed_forward.bias,
                    "rotary": settings.attention.rotary is not None,
                    "front": "target" if name == "decoder" and hasattr(model, "target") else "source",
                }
            )
    w = getattr(model.head, "w", None)
    answers = w.out_features if w is not None else settings.d_model
    head = {
        "head": model.settings.head.kind,
        "head_bias": w is not None and w.bias is not None,
        "pooling": getattr(model.settings.head, "pooling", None),
        "transform": getattr(model.settings.head, "transform", None),
    }
    return {"kind": model.settings.kind, "stacks": stacks, "answers": answers, **head}


def _rollouts(scene: Scene) -> dict[str, str]:
    return {
        name: in_base64(rollout(attention_maps(scene.seen, name)))
        for name, part in scene.model.named_children()
        if isinstance(part, Stack) and len(part.blocks)
    }
