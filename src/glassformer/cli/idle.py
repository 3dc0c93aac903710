"""Options that were given, but that what they were given with has no use for."""

from collections.abc import Iterable

import typer


def given_options(context: typer.Context) -> dict[str, str]:
    """The options that a person typed, by the names of their parameters: {"max_len": "--max-len"}."""
    found = {}
    for parameter in context.command.params:
        name, value = parameter.name or "", context.params.get(parameter.name or "")
        source = context.get_parameter_source(name)
        typed = source is not None and source.name == "COMMANDLINE"  # by name: typer may carry its own copy of click
        if typed and value is not False and parameter.opts[0].startswith("-"):
            found[name] = parameter.opts[0]
    return found


def say_idle(context: typer.Context, what: str, used: Iterable[str]) -> None:
    """One sentence on those that have no effect."""
    known = set(used)
    idle = [option for name, option in given_options(context).items() if name not in known]
    if idle:
        typer.echo(f"{what} these have no effect: {', '.join(idle)}.", err=True)
