"""`glassformer verify MODEL`."""

import dataclasses
import json

import typer

from glassformer.cli.options import AsJson, Model


def verify(model: Model, as_json: AsJson = False) -> None:
    """Prove on this machine that the model's numbers and answers are the same by every way to them.

    Fused attention and the textbook's, alone and in a batch, with and without a cache, watched and not, one engine and
    another. The exit code is 1 if anything differs.
    """
    from glassformer.verify import verify as verify_model

    checks = verify_model(model)
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(check) for check in checks], ensure_ascii=False))
    else:
        width = max(len(check.name) for check in checks)
        for check in checks:
            typer.echo(f"{'ok  ' if check.passed else 'FAIL'}  {check.name:<{width}}  {check.found}")
    if not all(check.passed for check in checks):
        raise typer.Exit(1)
