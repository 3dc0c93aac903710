"""`glassformer evaluate MODEL DATA…`."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from glassformer.cli.idle import say_idle
from glassformer.cli.options import (
    AsJson,
    Beam,
    Engine,
    Label,
    LabelsFile,
    Others,
    Precision,
    Quiet,
    Source,
    Target,
    Text2,
)

ALWAYS = "engine precision as_json quiet"
# What not every kind of model has a use for.
USES = {
    "Completer": "memory stride field",
    "Filler": "memory field",
    "Classifier": "memory text text2 label labels picture limit worst",
    "Transcriber": "source target beam length_penalty max_len limit worst",
    "WhisperTranscriber": "source target beam max_len limit worst",
    "Translator": "others memory source target beam length_penalty max_len tokenize limit worst",
}


def evaluate(
    context: typer.Context,
    model: Annotated[str, typer.Argument(help="A model directory, or a built-in model such as en-de.")],
    data: Annotated[
        list[Path],
        typer.Argument(
            help="Test data of the kind that the model was trained on: pairs, text, labelled data, recordings."
        ),
    ],
    memory: Annotated[
        list[Path] | None, typer.Option(help="Training data, for simple baselines to compare with.")
    ] = None,
    stride: Annotated[
        int | None, typer.Option(help="For text: tokens that the window slides by; half of the context if left out.")
    ] = None,
    field: Annotated[str, typer.Option(help="The field of JSONL files that holds the text.")] = "text",
    source: Source = None,
    target: Target = None,
    text: Annotated[str | None, typer.Option(help="For labelled texts: the column or field of the text.")] = None,
    text2: Text2 = None,
    label: Label = None,
    labels: LabelsFile = None,
    picture: Annotated[
        Path | None, typer.Option(help="For a classifier: draw which class it takes for which (PNG).")
    ] = None,
    beam: Beam = 4,
    length_penalty: Annotated[
        float | None, typer.Option(help="Scores are divided by length to this power; 1, or 0 for recordings.")
    ] = None,
    max_len: Annotated[
        int | None, typer.Option(help="Tokens of an answer at most; 256, or 400 for recordings.")
    ] = None,
    tokenize: Annotated[
        str | None,
        typer.Option(
            help="How BLEU finds words: 13a, none, intl, char, zh, ja-mecab or ko-mecab; by the script if left out."
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(help="Only so many pairs, examples or recordings, evenly spread over the data.")
    ] = None,
    worst: Annotated[int, typer.Option(help="Show so many of the worst answers.")] = 5,
    others: Others = None,
    engine: Engine = "auto",
    precision: Precision = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Score a model beside simple baselines.

    A translator with BLEU and chrF, a language model with bits per byte, a classifier with accuracy and F1,
    a recogniser with word and character errors.

    glassformer evaluate runs/en-de test.tsv --memory train.tsv
    """
    from glassformer.api import load
    from glassformer.cli.bar import Bar
    from glassformer.cli.evaluate_classify import run_evaluate_classify
    from glassformer.cli.evaluate_complete import run_evaluate_complete
    from glassformer.cli.evaluate_fill import run_evaluate_fill
    from glassformer.cli.evaluate_transcribe import run_evaluate_transcribe
    from glassformer.cli.evaluate_translate import run_evaluate_translate
    from glassformer.data.labelled_layout import Columns
    from glassformer.decode.options import DecodeOptions
    from glassformer.errors import UserError
    from glassformer.tasks.classifier import Classifier
    from glassformer.tasks.completer import Completer
    from glassformer.tasks.filler import Filler
    from glassformer.tasks.transcriber import DEFAULT, Transcriber
    from glassformer.tasks.translator import Translator
    from glassformer.tasks.whisper import WhisperTranscriber

    loaded = load(model, engine, precision, others or ())  # type: ignore[arg-type]
    asked: dict[str, Any] = {
        name: v for name, v in (("length_penalty", length_penalty), ("max_len", max_len)) if v is not None
    }
    if not quiet:
        used = f"{ALWAYS} {USES.get(type(loaded).__name__, '')}"
        say_idle(context, f"For {model}", used.split())
    match loaded:
        case Completer():
            run_evaluate_complete(model, loaded, data, memory, stride, field, as_json, quiet)
        case Classifier():
            columns = Columns(text, text2, label)
            run_evaluate_classify(model, loaded, data, memory, columns, labels, limit, worst, picture, as_json, quiet)
        case Filler():
            with Bar(quiet, "read") as bar:
                run_evaluate_fill(model, loaded, data, memory, field, as_json, bar.show)
        case Transcriber() | WhisperTranscriber():
            hearing = dataclasses.replace(DEFAULT, beam=beam, **asked)
            with Bar(quiet, "heard") as bar:
                run_evaluate_transcribe(model, loaded, data, (source, target), hearing, limit, worst, as_json, bar.show)
        case Translator():
            options = DecodeOptions(beam=beam, **asked)
            fields = (source, target)
            run_evaluate_translate(model, loaded, data, memory, fields, options, tokenize, limit, worst, as_json, quiet)
        case _:
            raise UserError(f"{model} makes vectors, for which there is no score.", "Give a model of another task.")
