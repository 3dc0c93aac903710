"""`glassformer check DATA`."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer


def check(
    data: Annotated[
        list[Path],
        typer.Argument(help="Pairs (TSV, CSV, JSONL; .gz too), two aligned files, or recordings (a list or a folder)."),
    ],
    valid: Annotated[list[Path] | None, typer.Option(help="Validation pairs, to look for overlap.")] = None,
    source: Annotated[str | None, typer.Option(help="The source field of a CSV, TSV or JSONL file.")] = None,
    target: Annotated[str | None, typer.Option(help="The target field.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False,
) -> None:
    """Say what the data is, name bad lines by number, and plan a training."""
    from glassformer.data.check import check_pairs, explain
    from glassformer.data.pairs import open_pairs
    from glassformer.data.recordings import holds_recordings, open_recordings
    from glassformer.data.recordings_check import check_recordings, explain_recordings
    from glassformer.tasks.plan import plan_translation

    if len(data) == 1 and holds_recordings(data[0]):
        heard = check_recordings(open_recordings(data[0], source, target))
        typer.echo(json.dumps(dataclasses.asdict(heard), ensure_ascii=False) if as_json else explain_recordings(heard))
        return
    files = open_pairs(data, source, target)
    found = check_pairs(files, open_pairs(valid, source, target) if valid else None)
    plan = plan_translation(found)
    if as_json:
        typer.echo(json.dumps({**dataclasses.asdict(found), "plan": dataclasses.asdict(plan)}, ensure_ascii=False))
    else:
        typer.echo(f"{explain(found)}\n{plan}")
