"""`glassformer import SRC --out FOLDER`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from glassformer.cli.bar import Bar
from glassformer.cli.options import Quiet


def import_(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SRC",
            help="A Hugging Face folder, a .gguf file, a llama2.c .bin file, or OpenAI's .pt file of a Whisper.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="The model directory to write.")],
    from_format: Annotated[str, typer.Option(help="auto, huggingface, gguf or llama2c.")] = "auto",
    tokenizer: Annotated[
        Path | None,
        typer.Option(help="A tokenizer.json, or llama2.c's tokenizer.bin, or .tiktoken, not the one beside SRC."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The whole report as JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Bring in a model: GPT-2, Llama, BERT, ViT or Whisper from Hugging Face; GGUF; llama2.c; OpenAI's Whisper.

    Hugging Face: a folder with config.json, model.safetensors (or its shards)
    and tokenizer.json, or GPT-2's vocab.json and merges.txt, or BERT's
    vocab.txt; what sentence-transformers writes beside it is read too.
    GGUF: the Llama family in F32, F16, BF16 or quantised, which is undone.
    llama2.c: the .bin file, with tokenizer.bin beside it.
    Whisper: OpenAI's .pt file, with gpt2.tiktoken or multilingual.tiktoken
    of its package beside it; only the numbers in it are read.

    The new model must give the numbers that the file's weights give by plain
    formulas; the report is stored as import.json. No code in a file (a pickle
    may hold some) is ever run, and nothing is downloaded.

    glassformer import SmolLM2-135M-Instruct.Q4_1.gguf --out models/smollm2
    """
    from glassformer.exchange.importing import import_model

    with Bar(quiet or as_json, "read", "weights", lines=4) as bar:
        found = import_model(source, out, from_format, tokenizer, bar.show)  # type: ignore[arg-type]
    if as_json:
        typer.echo(json.dumps({"out": str(out), **found}, ensure_ascii=False))
        return
    kinds = ", ".join(f"{n} {kind}" for kind, n in found["weights"].items())
    typer.echo(f"{out}: a model to {found['task']}, {found['parameters']:,} parameters, {found['format']} ({kinds}).")
    for check in found["checks"]:
        typer.echo(f"  {'ok' if check['passed'] else 'NOT EQUAL'}: {check['name']}: {check['found']}")
    if "greedy" in found:
        typer.echo(f"  greedy: {found['greedy']['text']!r}")
