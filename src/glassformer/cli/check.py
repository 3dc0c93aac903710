"""`glassformer check DATA`."""

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.cli.idle import given_options, say_idle
from glassformer.cli.options import (
    AsJson,
    AsPictures,
    Label,
    LabelsFile,
    LabelsKind,
    Separator,
    Source,
    Target,
    Text2,
    ValidLabels,
)

if TYPE_CHECKING:
    from glassformer.tasks.plan import Plan

TASKS = ("translate", "complete", "classify", "transcribe", "auto")
# What not all kinds of data have a use for.
USES = {
    "translate": {"source", "target", "with_plan"},
    "complete": {"field", "with_plan"},
    "classify": {"text", "text2", "label", "labels", "valid_labels", "pictures", "kind", "separator"},
    "transcribe": {"source", "target"},
}


def check(
    context: typer.Context,
    data: Annotated[
        list[Path],
        typer.Argument(
            help="Pairs (TSV, CSV, JSONL; .gz too) or two aligned files; text (one file or a folder); "
            "recordings (a list or a folder); labelled data (--task classify)."
        ),
    ],
    valid: Annotated[list[Path] | None, typer.Option(help="Validation data, to look for overlap.")] = None,
    source: Source = None,
    target: Target = None,
    field: Annotated[str, typer.Option(help="For text: the field of JSONL files that holds it.")] = "text",
    text: Annotated[str | None, typer.Option(help="For labelled data: the column or field of the text.")] = None,
    text2: Text2 = None,
    label: Label = None,
    labels: LabelsFile = None,
    valid_labels: ValidLabels = None,
    pictures: AsPictures = False,
    kind: LabelsKind = None,
    separator: Separator = None,
    task: Annotated[
        str, typer.Option(help="translate, complete, classify or transcribe, where the files do not tell.")
    ] = "auto",
    with_plan: Annotated[
        bool | None,
        typer.Option("--plan/--no-plan", help="Measure and plan a training, as is usual for pairs and text."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what the data is, name bad lines by number, and plan a training."""
    from glassformer.errors import UserError, require

    require(task in TASKS, f"There is no task {task!r} to check for.", f"Choose {', '.join(TASKS)}.")
    if task == "auto":
        task = "classify" if USES["classify"] & set(given_options(context)) else _task_of(data)
    say_idle(context, f"For this data (--task {task})", {"valid", "task", "as_json", *USES[task]})
    try:
        if task == "transcribe":
            report, words = _recordings(data, valid, source, target)
        elif task == "classify":
            settings = {"labels": kind, "separator": separator}
            report, words = _labelled(data, valid, (text, text2, label), labels, valid_labels, pictures, settings)
        elif task == "complete":
            report, words = _text(data, valid, field, with_plan is not False)
        else:
            report, words = _pairs(data, valid, source, target, with_plan is not False)
    except UserError as error:  # it says what is fatal; what was seen before comes first
        if seen := getattr(error, "__notes__", []):
            typer.echo(json.dumps({"said": seen}, ensure_ascii=False) if as_json else "\n".join(seen))
        raise
    typer.echo(json.dumps(report, ensure_ascii=False) if as_json else words)


def _task_of(data: list[Path]) -> str:
    """What the files look as if they were for."""
    from glassformer.data.documents import looks_like_text
    from glassformer.data.labelled_layout import holds_labels
    from glassformer.data.picture_find import looks_like_pictures
    from glassformer.data.recordings import holds_recordings
    from glassformer.data.series import holds_series

    if len(data) == 1 and holds_recordings(data[0]):
        return "transcribe"
    if looks_like_pictures(data[0]) or holds_series(data[0]) or holds_labels(data[0]):
        return "classify"
    return "complete" if len(data) != 2 and all(map(looks_like_text, data)) else "translate"


def _recordings(
    data: list[Path], valid: list[Path] | None, source: str | None, target: str | None
) -> tuple[dict[str, Any], str]:
    from glassformer.data.recordings import open_recordings
    from glassformer.data.recordings_check import check_recordings, explain_recordings
    from glassformer.errors import require

    for given in (data, valid or data):
        require(len(given) == 1, f"{len(given)} files were given.", "Give one list, or one folder, of recordings.")
    others = open_recordings(valid[0], source, target) if valid else None
    heard = check_recordings(open_recordings(data[0], source, target), others)
    return dataclasses.asdict(heard), explain_recordings(heard)


def _labelled(
    data: list[Path],
    valid: list[Path] | None,
    columns: tuple[str | None, str | None, str | None],
    labels: Path | None,
    valid_labels: Path | None,
    pictures: bool,
    settings: dict[str, str | None],
) -> tuple[dict[str, Any], str]:
    from glassformer import config
    from glassformer.cli.labelled import open_subject
    from glassformer.data.labelled_layout import Columns
    from glassformer.tasks.classify import ClassifyRecipe

    recipe: ClassifyRecipe = config.parse(ClassifyRecipe, settings, "The settings")
    subject = open_subject(data, valid, Columns(*columns), labels, valid_labels, pictures)(recipe)
    said = subject.describe()
    report = {"n_examples": subject.n_examples, "labels": dataclasses.asdict(subject.labels), "said": said}
    return report, "\n".join(said)


def _text(data: list[Path], valid: list[Path] | None, field: str, with_plan: bool) -> tuple[dict[str, Any], str]:
    from glassformer.data.documents import open_documents
    from glassformer.data.documents_check import check_text_files, explain_text
    from glassformer.data.findings import having_seen
    from glassformer.tasks.plan import plan_completion

    read = check_text_files(open_documents(data, field), open_documents(valid, field) if valid else None)
    words = explain_text(read)
    with having_seen([words]):
        return _with_plan(read, words, plan_completion(read.found) if with_plan else None)


def _pairs(
    data: list[Path], valid: list[Path] | None, source: str | None, target: str | None, with_plan: bool
) -> tuple[dict[str, Any], str]:
    from glassformer.data.check import check_pairs, explain
    from glassformer.data.findings import having_seen
    from glassformer.data.pairs import open_pairs
    from glassformer.tasks.plan import plan_translation

    files = open_pairs(data, source, target)
    found = check_pairs(files, open_pairs(valid, source, target) if valid else None)
    words = explain(found)
    with having_seen([words]):
        return _with_plan(found, words, plan_translation(files, found) if with_plan else None)


def _with_plan(found: Any, words: str, plan: "Plan | None") -> tuple[dict[str, Any], str]:
    data = dataclasses.asdict(found)
    return (data, words) if plan is None else ({**data, "plan": dataclasses.asdict(plan)}, f"{words}\n{plan}")
