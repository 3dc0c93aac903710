"""`glassformer complete MODEL [PROMPT…]`."""

import dataclasses
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.options import MinP, Model, Precision, Seed, TopK, TopP

if TYPE_CHECKING:
    from glassformer.decode.complete_options import CompleteOptions
    from glassformer.tasks.completer import Completer


def complete(
    model: Model,
    prompt: Annotated[list[str] | None, typer.Argument(help="What to go on from; without it, all of stdin.")] = None,
    max_tokens: Annotated[int, typer.Option(help="Tokens to add at most.")] = 200,
    temperature: Annotated[float, typer.Option(help="0 takes the best token; 1 draws as the model would.")] = 0.8,
    top_k: TopK = 0,
    top_p: TopP = 1.0,
    min_p: MinP = 0.0,
    repetition_penalty: Annotated[float, typer.Option(help="Above 1 makes what was said less likely.")] = 1.0,
    frequency_penalty: Annotated[float, typer.Option(help="Taken from a score for each time it was said.")] = 0.0,
    presence_penalty: Annotated[float, typer.Option(help="Taken from a score if it was said at all.")] = 0.0,
    stop: Annotated[list[str] | None, typer.Option(help="End before this text; may be repeated.")] = None,
    seed: Seed = None,
    n: Annotated[int, typer.Option("-n", "--n", help="Answers for each prompt.")] = 1,
    alternatives: Annotated[int, typer.Option(help="With --json, so many alternatives of each token.")] = 0,
    slide: Annotated[bool, typer.Option("--slide", help="Forget the older half where the context is full.")] = False,
    chat: Annotated[
        bool, typer.Option("--chat", help="Talk: each line is a message, for models with a template.")
    ] = False,
    system: Annotated[str, typer.Option(help="With --chat, what the model is told first.")] = "",
    lines: Annotated[bool, typer.Option("--lines", help="Each line of stdin is a prompt; answers as JSON.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a prompt: texts, tokens, scores.")] = False,
    draft: Annotated[
        str | None,
        typer.Option(
            help="A small model of the same vocabulary that runs ahead: at temperature 0 the same answers sooner, "
            "else others that are as likely."
        ),
    ] = None,
    precision: Precision = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", help="Nothing on stderr, and no prompt before its answer.")] = False,
) -> None:
    """Go on from a prompt, token by token as they come.

    glassformer complete runs/book "Once upon a time" --max-tokens 100
    """
    from glassformer.api import load_completer
    from glassformer.decode.choose import SEEDS_APART
    from glassformer.decode.complete_options import CompleteOptions
    from glassformer.errors import require

    options = CompleteOptions(
        max_tokens=max_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        repetition_penalty=repetition_penalty,
        frequency_penalty=frequency_penalty,
        presence_penalty=presence_penalty,
        stop=tuple(stop or ()),
        seed=seed,
        n=n,
        alternatives=alternatives,
        slide=slide,
    )
    idle = [name for name, given in (("--json", as_json), ("--lines", lines), ("--n", n > 1)) if given and chat]
    require(not idle, f"{' and '.join(idle)} cannot go with --chat: it answers one message at a time.", "Leave it out.")
    require(not (lines and prompt), "--lines reads prompts from stdin, but one was given.", "Give one of them.")
    completer = load_completer(model, precision, draft)  # type: ignore[arg-type]
    if not quiet:
        typer.echo(f"engine: {completer.engine}", err=True)
    if chat:
        _chat(completer, options, system, prompt or [])
    elif as_json or lines:
        _as_json(completer, options, prompt or list(_stdin(lines)))
    else:
        for text in prompt or list(_stdin(lines=False)):
            for i in range(n):
                one = dataclasses.replace(options, n=1, seed=None if seed is None else seed + SEEDS_APART * i)
                _show(text, completer.stream(text, one), quiet)


def _stdin(lines: bool) -> Iterator[str]:
    data = sys.stdin.buffer
    if lines:
        for line in data:
            yield line.decode("utf-8", errors="replace").removesuffix("\n").removesuffix("\r")
    else:
        yield data.read().decode("utf-8", errors="replace").removesuffix("\n")


def _show(prompt: str, pieces: Iterator[str], quiet: bool) -> None:
    first = next(pieces, "")  # what cannot be answered is refused here, before anything is shown
    sys.stdout.write(first if quiet else prompt + first)
    sys.stdout.flush()
    for piece in pieces:
        sys.stdout.write(piece)
        sys.stdout.flush()
    sys.stdout.write("\n")
    sys.stdout.flush()


def _as_json(completer: "Completer", options: "CompleteOptions", prompts: list[str]) -> None:
    for prompt, found in zip(prompts, completer.complete_all(prompts, options), strict=True):
        data = {"prompt": prompt, "completions": [dataclasses.asdict(answer) for answer in found]}
        print(json.dumps(data, ensure_ascii=False))


def _chat(completer: "Completer", options: "CompleteOptions", system: str, first: list[str]) -> None:
    """One message a line, until the end of the input or an empty line in a terminal; given messages come first."""
    from glassformer.tasks.chat import Chat

    talk = Chat(completer, system)
    typed = sys.stdin.isatty()
    waiting = list(first)
    while True:
        if not waiting:
            if first and not typed:
                return
            message = _ask(typed)
            if message is None:
                return
            waiting.append(message)
        for piece in talk.answer(waiting.pop(0), options):
            sys.stdout.write(piece)
            sys.stdout.flush()
        sys.stdout.write("\n")
        sys.stdout.flush()
        if first and not waiting:
            return


def _ask(typed: bool) -> str | None:
    """The next message; None at the end."""
    if typed:
        try:
            return input("> ").strip() or None
        except EOFError:
            return None
    return next(filter(None, map(str.strip, sys.stdin)), None)
