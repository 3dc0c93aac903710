"""`glassformer translate MODEL [TEXT…]`."""

import dataclasses
import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.options import (
    Beam,
    Engine,
    LengthPenalty,
    MaxLen,
    MinP,
    Others,
    Precision,
    Quiet,
    Seed,
    TopK,
    TopP,
)
from glassformer.cli.stdin import stdin_lines

if TYPE_CHECKING:
    from glassformer.tasks.translator import Translation


def translate(
    model: Annotated[str, typer.Argument(help="A model directory, or a built-in model such as en-de.")],
    text: Annotated[list[str] | None, typer.Argument(help="What to translate; without it, each line of stdin.")] = None,
    beam: Beam = 4,
    nbest: Annotated[int, typer.Option(help="Answers for each text, best first.")] = 1,
    length_penalty: LengthPenalty = 1.0,
    max_len: MaxLen = 256,
    sample: Annotated[bool, typer.Option("--sample", help="Draw instead of search.")] = False,
    temperature: Annotated[float, typer.Option(help="Below 1 draws more carefully, above 1 more wildly.")] = 1.0,
    top_k: TopK = 0,
    top_p: TopP = 1.0,
    min_p: MinP = 0.0,
    seed: Seed = None,
    no_repeat: Annotated[int, typer.Option(help="No n-gram of this length twice; 0 allows all.")] = 0,
    prefix: Annotated[str, typer.Option(help="What each answer must start with.")] = "",
    phrase: Annotated[list[str] | None, typer.Option(help="What each answer must contain; may be repeated.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line: scores, tokens, alignment.")] = False,
    others: Others = None,
    engine: Engine = "auto",
    precision: Precision = "auto",
    int8: Annotated[bool, typer.Option("--int8", help="The same as --precision int8.")] = False,
    quiet: Quiet = False,
) -> None:
    """Translate texts, or stdin line by line: as many lines out as in, in their order."""
    from glassformer.api import load_translator
    from glassformer.cli.bar import Bar
    from glassformer.decode.options import DecodeOptions
    from glassformer.errors import require

    options = DecodeOptions(
        beam=max(beam, nbest) if beam > 0 else beam,  # as many answers need as wide a beam
        nbest=nbest,
        length_penalty=length_penalty,
        max_len=max_len,
        sample=sample,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        seed=seed,
        no_repeat=no_repeat,
    )
    require(
        not (int8 and precision == "fp32"), "--int8 and --precision fp32 contradict each other.", "Give one of them."
    )
    idle = [
        name
        for name in ("temperature", "top_k", "top_p", "min_p", "seed")
        if getattr(options, name) != getattr(DecodeOptions(), name)
    ]
    if idle and not sample and not quiet:
        typer.echo(f"Without --sample these have no effect: {', '.join(idle)}.", err=True)
    translator = load_translator(model, engine, "int8" if int8 else precision, others or ())  # type: ignore[arg-type]
    if not quiet:
        typer.echo(f"engine: {translator.engine_name(options, bool(phrase))}", err=True)
    n_before = 0
    for chunk in [text] if text else stdin_lines():
        with Bar(quiet, "translated", "parts") as bar:
            answers = translator.translate_all(chunk, options, prefix, phrase or [], as_json, bar.show, n_before)
        n_before += len(chunk)
        for given, found in zip(chunk, answers, strict=True):
            print(_as_json(given, found) if as_json else "\n".join(_as_line(t) for t in found))
        sys.stdout.flush()


def _as_line(translation: "Translation") -> str:
    """One line out for one line in, whatever the model says."""
    return " ".join(translation.text.split("\n"))


def _as_json(given: str, found: "list[Translation]") -> str:
    return json.dumps({"source": given, "translations": [dataclasses.asdict(t) for t in found]}, ensure_ascii=False)
