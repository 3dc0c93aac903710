"""`glassformer embed MODEL [TEXT…]`."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.options import Model, Quiet
from glassformer.cli.stdin import stdin_lines
from glassformer.data.counted import counted

if TYPE_CHECKING:
    from glassformer.tasks.embedder import Embedder, Vectors


def embed(
    model: Model,
    text: Annotated[list[str] | None, typer.Argument(help="Texts; without them, each line of stdin is one.")] = None,
    pooling: Annotated[
        str | None, typer.Option(help="mean, first or last: what of a text's states is taken; else as the model says.")
    ] = None,
    normalise: Annotated[
        bool | None, typer.Option("--normalise/--no-normalise", help="Vectors of length 1; else as the model says.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write all vectors to this .npy file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line: text and vector.")] = False,
    quiet: Quiet = False,
) -> None:
    """Make one vector of each text: one line of numbers out for each line in.

    glassformer embed models/minilm "A man plays the guitar."
    glassformer embed models/minilm --out vectors.npy < sentences.txt
    """
    from glassformer.api import load_embedder
    from glassformer.errors import require

    if out is not None:
        require(not as_json, "--json and --out contradict each other.", "Give one of them.")
        require(out.suffix == ".npy", f"--out is {out}, but vectors are written as .npy.", f"Say {out.stem}.npy.")
        require(out.absolute().parent.is_dir(), f"There is no folder {out.absolute().parent}.", "Make it first.")
    embedder = load_embedder(model)
    chunks = [text] if text else stdin_lines()
    if out is not None:
        _save(embedder, [line for chunk in chunks for line in chunk], pooling, normalise, out, quiet)
        return
    n_cut = 0
    for chunk in chunks:
        vectors = embedder.embed(chunk, pooling, normalise)  # type: ignore[arg-type]
        n_cut += embedder.n_cut
        _show(chunk, vectors, as_json)
    say_cut(n_cut, embedder, quiet)


def _show(texts: Iterable[str], vectors: "Vectors", as_json: bool) -> None:
    for text, vector in zip(texts, vectors.tolist(), strict=True):
        numbers = [float(f"{value:.8g}") for value in vector]  # all that float32 holds
        print(
            json.dumps({"text": text, "vector": numbers}, ensure_ascii=False)
            if as_json
            else " ".join(map(str, numbers))
        )
    sys.stdout.flush()


def _save(
    embedder: "Embedder", texts: list[str], pooling: str | None, normalise: bool | None, out: Path, quiet: bool
) -> None:
    import numpy as np

    from glassformer.data.files import writing

    vectors = embedder.embed(texts, pooling, normalise)  # type: ignore[arg-type]
    with writing(out) as file:
        np.save(file, vectors)
    say_cut(embedder.n_cut, embedder, quiet)
    if not quiet:
        typer.echo(f"{out}: {counted(len(texts), 'vector')} of {counted(vectors.shape[1], 'number')}.", err=True)


def say_cut(n_cut: int, embedder: "Embedder", quiet: bool) -> None:
    if n_cut and not quiet:
        typer.echo(
            f"Cut after {embedder.max_tokens:,} tokens, the model's maximum: {counted(n_cut, 'text')}.", err=True
        )
