"""`glassformer sizes`: the ready-made settings, with exact parameter counts."""

import json
from typing import Annotated

import typer

from glassformer.cli.options import AsJson


def sizes(
    name: Annotated[str | None, typer.Argument(help="Show all settings of this size.")] = None,
    changes: Annotated[list[str] | None, typer.Option("--set", help="Change a setting, as encoder.n_layers=3.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the ready-made model sizes, or show one with your changes."""
    from glassformer import config
    from glassformer.errors import require
    from glassformer.model import build_empty, count_parameters
    from glassformer.sizes import describe_size, load_size, size_names

    if name is None:
        require(not changes, "--set needs the size that it changes.", "Write `glassformer sizes NAME --set …`.")
        rows = [(n, count_parameters(build_empty(load_size(n))), describe_size(n)) for n in size_names()]
        if as_json:
            typer.echo(json.dumps([{"name": n, "parameters": count, "about": about} for n, count, about in rows]))
        else:
            for n, count, about in rows:
                typer.echo(f"{n:<16}{count:>13,}  {about}")
        return
    settings = load_size(name, changes or [])
    n_parameters = count_parameters(build_empty(settings))
    data = config.to_data(settings)
    if as_json:
        typer.echo(json.dumps({"name": name, "parameters": n_parameters, "settings": data}))
    else:
        typer.echo(f"# {name}: {n_parameters:,} parameters\n{config.write_toml(data)}", nl=False)
