"""A training seen: its curves, what the model said on the way, and how attention formed over the saved weights."""

import json
import math
import re
from html import escape
from pathlib import Path
from typing import Any

import torch

from glassformer.data.files import write_text
from glassformer.errors import require
from glassformer.look.page import POLICY, STATIC, footer
from glassformer.look.saved import SavedStates
from glassformer.look.scene import Scene, look_at, scene_of, score_answers
from glassformer.look.subject import LookOptions
from glassformer.tasks.model_dir import load_model
from glassformer.train.checkpoint import read_checkpoint
from glassformer.train.early import weights_files
from glassformer.train.report import read_metrics

SCRIPTS = ("draw.js", "training.js")
ROOM, BYTES = 4_000_000, 8  # of the page for attention, and of one number in it
APART = 1.15  # times as many steps at least from one state to the next
_FOLDERS = re.compile(r"(?<!\S)/(?:[^/\n]+/)+")  # of a path from the root, all but the last part
NO_CURVE = ("step", "epoch", "seconds", "samples")


def write_training_page(path: Path, run: Path, text: str | None, options: LookOptions) -> None:
    write_text(path, make_training_page(run, text, options))


def make_training_page(run: Path, text: str | None, options: LookOptions, name: str | None = None) -> str:
    """One offline HTML file. With a `name` it is for others, who need not know where the files of the run lie."""
    found = training_data(run, text, options)
    if name is not None:
        for each in found["samples"]:
            each["samples"] = [_FOLDERS.sub("", str(sample)) for sample in each["samples"]]
    title = escape(name or run.name)
    data = json.dumps(found, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    data = data.replace("<", "\\u003c")
    scripts = "\n".join((STATIC / script).read_text(encoding="utf-8") for script in SCRIPTS)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="glassformer look --training">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Training of {title} · Glassformer</title>
<style>
{(STATIC / "style.css").read_text(encoding="utf-8")}</style>
</head>
<body>
<header><h1>The training of {title}</h1></header>
<main id="view" tabindex="-1"><noscript><p>The page draws itself: please allow scripts.</p></noscript></main>
{footer()}
<script type="application/json" id="data">{data}</script>
<script>
{scripts}</script>
</body>
</html>
"""


def training_data(run: Path, text: str | None, options: LookOptions) -> dict[str, Any]:
    """The curves and samples of metrics.jsonl, and for an input what each saved state makes of it."""
    entries = read_metrics(run / "metrics.jsonl")
    require(bool(entries), f"{run} holds no metrics.jsonl with entries.", "Name the folder that a training wrote.")
    names = dict.fromkeys(key for entry in entries for key, value in entry.items() if _is_number(value))
    curves = {
        name: [[entry["step"], entry[name]] for entry in entries if _is_number(entry.get(name))]
        for name in names
        if name not in NO_CURVE
    }
    samples = [{"step": e["step"], "samples": e["samples"]} for e in entries if isinstance(e.get("samples"), list)]
    return {"curves": curves, "samples": samples, "states": None if text is None else states(run, text, options)}


@torch.no_grad()
def states(run: Path, text: str, options: LookOptions) -> dict[str, Any]:
    """The finished model's answer, and at each kept step its share and the attention with which it is given."""
    loaded = load_model(run)
    files = weights_files(run)
    require(bool(files), f"{run} has no saved weights.", "They are there while and after it trains.")
    final = look_at(loaded, text, options)
    end, subject = _state(final, "end"), final.subject
    n_numbers = sum(final.seen[name].numel() for name in final.seen.names if name.endswith(".weights"))
    found, saved = [], SavedStates(loaded)
    for step in _spread(_apart(list(files)), max(2, ROOM // (BYTES * n_numbers) - 1)):
        model = saved.at(read_checkpoint(files[step]).tensors)
        found.append(_state(scene_of(model, subject), str(step)))
    found.append(end)
    names = {"text": subject.text, "answer": subject.answer, "source": subject.source, "target": subject.target}
    return names | {"kind": subject.kind, "steps": found}


def _apart(steps: list[int]) -> list[int]:
    """Without those that differ little from the one before; the last stays."""
    kept = steps[-1:]
    for step in reversed(steps[:-1]):
        if step * APART <= kept[0]:
            kept.insert(0, step)
    return kept


def _spread(steps: list[int], most: int) -> list[int]:
    """So many of them at most, evenly chosen, with the first and the last."""
    if len(steps) <= most:
        return steps
    return [steps[round(i * (len(steps) - 1) / (most - 1))] for i in range(most)]


def _state(scene: Scene, step: str) -> dict[str, Any]:
    weights = {
        name.removesuffix(".weights"): [[_short(row) for row in head] for head in scene.seen[name][0].tolist()]
        for name in scene.seen.names
        if name.endswith(".weights")
    }
    score = score_answers(scene.seen["head.logits"], scene.subject.own_answers, scene.subject.kind)
    return {"step": step, "score": score, "weights": weights}


def _short(row: list[float]) -> list[float]:
    return [float(f"{value:.4g}") for value in row]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
