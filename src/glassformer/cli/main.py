"""The command `glassformer`: collects the verbs, and shows each error as one sentence."""

import errno
import json
import os
import sys
from typing import Annotated, Any

import typer

from glassformer import __version__
from glassformer.cli import (
    check,
    classify,
    complete,
    embed,
    evaluate,
    export,
    fill,
    import_,
    learn,
    listen,
    look,
    models,
    search,
    serve,
    sizes,
    train,
    transcribe,
    translate,
    verify,
)
from glassformer.errors import UserError

app = typer.Typer(
    name="glassformer",
    help="A Transformer you can see through: train it on your own sequences, use it, look at every number inside.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for verb in (
    check.check,
    translate.translate,
    complete.complete,
    fill.fill,
    classify.classify,
    embed.embed,
    search.search,
    transcribe.transcribe,
    listen.listen,
    evaluate.evaluate,
    verify.verify,
    export.export,
    serve.serve,
    models.models,
    sizes.sizes,
):
    app.command()(verb)
app.command()(learn.learn)
app.command()(look.look)
app.command("import")(import_.import_)
app.add_typer(train.train, name="train")


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Say the version and stop.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")] = False,  # noqa: ARG001
) -> None:
    if version:
        typer.echo(f"glassformer {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


# typer may carry its own copy of click, so the base of its errors is found by name.
_BadUsage: type[Exception] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


def run(arguments: list[str] | None = None) -> None:
    """The entry point: 0 when all went well, 2 for what the user can mend, 130 for Ctrl-C."""
    given = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in given
    try:
        code = app(args=[a for a in given if a != "--debug"], standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except UserError as error:
        if debug:
            raise
        _fail(error.message, error.hint, "--json" in given)
    except _BadUsage as error:
        _fail(f"{str(error).removesuffix('.')}.", _help_hint(error), "--json" in given)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except BrokenPipeError:  # the reader has seen enough, as in `| head`
        _leave_stdout()
        sys.exit(0)
    except (MemoryError, RuntimeError) as error:
        if debug or not _is_out_of_memory(error):
            raise
        hint = "In training halve train.batch_tokens with --set; else give less at once, or take a smaller model."
        _fail("There is not enough memory for this.", hint, "--json" in given)
    except OSError as error:
        if debug:
            raise
        if error.errno == errno.ENOSPC:
            _leave_stdout()  # what is still to be written would fail again
        where = f" ({error.filename})" if error.filename else ""
        reason = error.strerror or str(error)
        _fail(f"{reason}{where}.", "Check the path, its permissions and the space on the disk.", "--json" in given)


def _is_out_of_memory(error: Exception) -> bool:
    """torch says it in words of its own for each device."""
    said = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in said or "allocate memory" in said


def _leave_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, hint: str, as_json: bool) -> None:
    said: Any = json.dumps({"error": message, "hint": hint}, ensure_ascii=False)
    typer.echo(said if as_json else f"glassformer: {message} {hint}".rstrip(), err=True)
    sys.exit(2)


def _help_hint(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return f"See `{context.command_path} --help`." if context is not None else ""


if __name__ == "__main__":
    run()
