"""What models can do, asked through the queue; each answer is the one that the command line gives."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from fastapi import Request

from glassformer.data.split import Piece
from glassformer.decode.options import DecodeOptions
from glassformer.model.settings import Pooling
from glassformer.serve.errors import ApiError
from glassformer.serve.hub import Hub
from glassformer.serve.models import Served
from glassformer.tasks.classifier import Answer, Classifier
from glassformer.tasks.completer import Completer
from glassformer.tasks.embedder import Vectors
from glassformer.tasks.filler import Filled, Filler
from glassformer.tasks.translator import Translation, Translator, join_best

LONG = 2000  # characters of a text that are cut, or put into tokens, beside the server's own thread


def is_translator(served: Served) -> bool:
    return isinstance(served.face, Translator)


def is_completer(served: Served) -> bool:
    return isinstance(served.face, Completer)


async def prompt_ids(hub: Hub, served: Served, prompts: Sequence[str | list[int]]) -> list[list[int]]:
    """Prompts as the tokens that the model goes on from; ids are taken as they are."""
    face = served.face
    assert isinstance(face, Completer)

    def encode() -> list[list[int]]:
        return [face.prompt_ids(each) if isinstance(each, str) else each for each in prompts]

    return await _in_tokens(hub, prompts, encode, face.tokenizer.vocab_size, "prompt")


async def source_ids(hub: Hub, served: Served, texts: Sequence[str | list[int]]) -> list[list[int]]:
    """Texts as the tokens that the model reads, without marks; ids are taken as they are."""
    tokenizer = served.loaded.source_tokenizer

    def encode() -> list[list[int]]:
        rows = iter(tokenizer.encode_batch([each for each in texts if isinstance(each, str)]))
        return [next(rows) if isinstance(each, str) else each for each in texts]

    return await _in_tokens(hub, texts, encode, tokenizer.vocab_size, "input")


async def _in_tokens(
    hub: Hub, given: Sequence[str | list[int]], encode: Callable[[], list[list[int]]], size: int, param: str
) -> list[list[int]]:
    n = hub.check_texts(given)
    ids = encode() if n < LONG else await asyncio.to_thread(encode)
    if any(not 0 <= i < size for row in ids for i in row):
        raise ApiError(400, f"A token of the {param} is none of the model's {size:,}.", "Give a text.", param)
    return ids


async def translate(
    hub: Hub,
    request: Request,
    served: Served,
    texts: Sequence[str],
    options: DecodeOptions,
    prefix: str = "",
    phrases: tuple[str, ...] = (),
    details: bool = False,
) -> list[list[Translation]]:
    """The `nbest` translations of each text. Parts of a long text are items of their own: others come in between."""
    hub.check_texts([*texts, prefix, *phrases])
    check_search(hub, options)
    face = served.face
    assert isinstance(face, Translator)

    def run(parts: list[str]) -> list[list[Translation]]:
        return face.translate_all(parts, options, prefix, phrases, details)

    if options.sample or prefix or phrases:  # these depend on the place in the batch or the text: a request is one
        whole = await hub.ask(request, served, object(), [list(texts)], lambda given: [run(given[0])])
        return whole[0]
    cut = [await _cut(face, text.strip()) for text in texts]
    flat = [piece.text for pieces in cut for piece in pieces if piece.text]
    # Alignments are found by torch, whose layers may be watched for another request at the same time.
    beside = not details and face.choose(options, False).is_shareable
    found = iter(await hub.ask(request, served, ("translate", options, details), flat, run, beside))
    nothing = [Translation("", 0.0)] * options.nbest
    return [join_best(pieces, [next(found) if piece.text else nothing for piece in pieces]) for pieces in cut]


async def _cut(face: Translator, text: str) -> list[Piece]:
    return face.cut(text) if len(text) < LONG else await asyncio.to_thread(face.cut, text)


async def fill(hub: Hub, request: Request, served: Served, texts: Sequence[str], top: int) -> list[Filled]:
    hub.check_texts(texts)
    face = served.face
    assert isinstance(face, Filler)
    return await hub.ask(request, served, ("fill", top), list(texts), lambda given: face.fill(given, top))


async def classify(hub: Hub, request: Request, served: Served, inputs: Sequence[Any]) -> list[Answer]:
    face = served.face
    assert isinstance(face, Classifier)
    if face.input != "pictures":
        hub.check_texts(inputs)
    return await hub.ask(request, served, "classify", list(inputs), face.classify)


async def embed(
    hub: Hub,
    request: Request,
    served: Served,
    ids: list[list[int]],
    pooling: Pooling | None = None,
    normalise: bool | None = None,
) -> list[Vectors]:
    """One vector for each text in tokens (`source_ids`)."""

    def run(given: list[list[int]]) -> list[Vectors]:
        return list(served.embedder.embed_ids(given, pooling, normalise))

    return await hub.ask(request, served, ("embed", pooling, normalise), ids, run)


def check_search(hub: Hub, options: DecodeOptions) -> None:
    limits = hub.limits
    for name, most in (("beam", limits.beam), ("nbest", limits.beam), ("max_len", limits.tokens)):
        if (value := getattr(options, name)) > most:
            raise ApiError(400, f"{name} is {value:,}, but at most {most:,} are allowed here.", "Ask for less.", name)
