"""`glassformer search MODEL TEXTS_FILE [QUERY…]`."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.options import Model, Quiet
from glassformer.cli.stdin import stdin_lines
from glassformer.data.counted import counted

if TYPE_CHECKING:
    from glassformer.tasks.search import Hit


def search(
    model: Model,
    texts: Annotated[Path, typer.Argument(help="A file with a text on each line, plain or gzip.")],
    query: Annotated[list[str] | None, typer.Argument(help="What to look for; without it, each line of stdin.")] = None,
    top: Annotated[int, typer.Option(help="So many texts for each query.")] = 5,
    index: Annotated[
        Path | None, typer.Option(help="Keep the vectors in this .npz file, and use them the next time.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a query: scores, lines, texts.")] = False,
    quiet: Quiet = False,
) -> None:
    """Find the texts that are nearest to a query in meaning: cosine, line number, text.

    glassformer search models/minilm sentences.txt "somebody makes music"
    """
    from glassformer.api import load_embedder
    from glassformer.cli.embed import say_cut
    from glassformer.errors import require
    from glassformer.tasks.search import keep_index, make_index, read_texts

    require(top >= 1, f"--top is {top}.", "It must be 1 or more.")
    embedder, found = load_embedder(model), read_texts(texts)

    def say(message: str) -> None:
        if not quiet:
            typer.echo(message, err=True)

    if index is None:
        kept = make_index(embedder, found)
    else:
        kept, done = keep_index(embedder, found, index)
        why = ": the texts or the model have changed" if done == "made again" else ""
        say(f"{index}: {counted(len(found.texts), 'vector')}, {done}{why}.")
    say_cut(embedder.n_cut, embedder, quiet)
    several = len(query) > 1 if query else True
    for chunk in [query] if query else stdin_lines():
        for asked, hits in zip(chunk, kept.search(embedder, chunk, top), strict=True):
            print(_as_json(asked, hits) if as_json else _as_lines(asked, hits, several))
        sys.stdout.flush()


def _as_json(query: str, hits: "list[Hit]") -> str:
    return json.dumps({"query": query, "found": [dataclasses.asdict(hit) for hit in hits]}, ensure_ascii=False)


def _as_lines(query: str, hits: "list[Hit]", several: bool) -> str:
    rows = [f"{hit.score:.4f}\t{hit.line}\t{hit.text}" for hit in hits]
    return "\n".join([f"# {query}", *rows] if several else rows)
