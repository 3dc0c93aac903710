"""`glassformer models`."""

import json

import typer

from glassformer.cli.options import AsJson


def models(as_json: AsJson = False) -> None:
    """List the models that come with Glassformer."""
    from glassformer.tasks.built_in import built_in_models

    found = built_in_models()
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False))
    elif not found:
        typer.echo("No model is built in.", err=True)
    else:
        for name, title in found.items():
            typer.echo(f"{name:<12}{title}")
