"""Our own interface: /api/… for every verb, with the options of the command line."""

from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from fastapi import APIRouter, Request
from pydantic import Base64Bytes, BaseModel, ConfigDict, Field

from glassformer.data.picture_file import Header, read_header
from glassformer.decode.complete_options import CompleteOptions
from glassformer.decode.options import DecodeOptions
from glassformer.errors import require
from glassformer.model.settings import Pooling
from glassformer.serve import verbs
from glassformer.serve.errors import ApiError
from glassformer.serve.hub import Hub
from glassformer.serve.models import Served
from glassformer.serve.uploads import kept
from glassformer.tasks.classifier import Classifier
from glassformer.tasks.completer import Completer
from glassformer.tasks.filler import Filler

STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
MOST_SEED = 2**62


@dataclass(frozen=True, kw_only=True)
class SearchOptions(DecodeOptions):
    __pydantic_config__: ClassVar[ConfigDict] = STRICT


@dataclass(frozen=True, kw_only=True)
class TextOptions(CompleteOptions):
    __pydantic_config__: ClassVar[ConfigDict] = STRICT


Name = Annotated[str | None, Field(description="A name of /api/models; without it, the first model that can do it.")]
Texts = Annotated[list[str], Field(min_length=1)]


class _Ask(BaseModel):
    model_config = STRICT
    model: Name = None


class TranslateAsk(_Ask):
    texts: Texts
    options: SearchOptions = SearchOptions()
    prefix: str = ""
    phrases: tuple[str, ...] = ()
    details: bool = Field(False, description="Tokens and alignment too.")


class CompleteAsk(_Ask):
    prompts: Texts
    options: TextOptions = TextOptions()


class FillAsk(_Ask):
    texts: Texts
    top: int = Field(5, ge=1, le=100)


class ClassifyAsk(_Ask):
    texts: list[str | Annotated[list[str], Field(min_length=2, max_length=2)]] = []
    series: list[list[list[float]]] = Field([], description="For models of vectors: rows of numbers, one a step.")
    pictures: list[Base64Bytes] = Field([], description="For models of pictures: files such as PNG, in base64.")


class EmbedAsk(_Ask):
    texts: Texts
    pooling: Pooling | None = None
    normalise: bool | None = None


def routes(hub: Hub) -> APIRouter:
    router = APIRouter(prefix="/api", tags=["Glassformer"])

    @router.get("/models")
    async def models() -> list[dict[str, Any]]:
        """What is served."""
        return [
            {
                "name": s.name,
                "task": s.task,
                "title": s.title,
                "languages": s.languages,
                "chat": s.can_talk,
                **_reads(s),
            }
            for s in hub.models.values()
        ]

    @router.post("/translate")
    async def translate(ask: TranslateAsk, request: Request) -> dict[str, Any]:
        """The best translations of each text."""
        check_seed(ask.options.seed)
        served = hub.find(ask.model, verbs.is_translator, "a translator")
        found = await verbs.translate(
            hub, request, served, ask.texts, ask.options, ask.prefix, ask.phrases, ask.details
        )
        kept = ("text", "score", "source_tokens", "tokens", "alignment")[: 5 if ask.details else 2]
        answers = [[{name: getattr(each, name) for name in kept} for each in best] for best in found]
        return {"model": served.name, "translations": answers}

    @router.post("/complete")
    async def complete(ask: CompleteAsk, request: Request) -> dict[str, Any]:
        """Texts that go on; /v1/completions gives them as they come."""
        check_seed(ask.options.seed)
        hub.check_texts(ask.prompts)
        served = hub.find(ask.model, is_completer, "a language model")
        options = ask.options
        if options.slide or options.n > hub.limits.beam or options.alternatives > 100:
            raise ApiError(400, "slide, so many answers or so many alternatives are not offered here.", "Ask for less.")
        prompts = [encode(served, prompt) for prompt in ask.prompts]
        found = [asdict(answer) for answer in await hub.complete(request, served, prompts, options)]
        grouped = [found[i : i + options.n] for i in range(0, len(found), options.n)]
        return {"model": served.name, "completions": grouped}

    @router.post("/fill")
    async def fill(ask: FillAsk, request: Request) -> dict[str, Any]:
        """The best words for each blank (___)."""
        served = hub.find(ask.model, lambda s: isinstance(s.face, Filler), "a model for blanks")
        found = await verbs.fill(hub, request, served, ask.texts, ask.top)
        return {"model": served.name, "answers": [asdict(filled) for filled in found]}

    @router.post("/classify")
    async def classify(ask: ClassifyAsk, request: Request) -> dict[str, Any]:
        """The label of each text, pair of texts, series or picture, and how likely it is."""
        served = hub.find(ask.model, lambda s: isinstance(s.face, Classifier), "a classifier")
        async with AsyncExitStack() as files:
            found = await verbs.classify(hub, request, served, await _inputs(hub, served, ask, files))
        answers = [{"label": each.label, "probabilities": dict(each.probabilities)} for each in found]
        return {"model": served.name, "answers": answers}

    @router.post("/embed")
    async def embed(ask: EmbedAsk, request: Request) -> dict[str, Any]:
        """One vector for each text."""
        served = hub.find(ask.model, lambda s: s.reads_text, "a model that reads text")
        found = await verbs.embed(hub, request, served, ask.texts, ask.pooling, ask.normalise)
        return {"model": served.name, "vectors": [vector.tolist() for vector in found]}

    return router


def _reads(served: Served) -> dict[str, Any]:
    """What a classifier judges, so that a page knows what to ask for."""
    face = served.face
    return {"input": face.input, "n_texts": face.n_texts} if isinstance(face, Classifier) else {}


def is_completer(served: Served) -> bool:
    return isinstance(served.face, Completer)


def encode(served: Served, prompt: str) -> list[int]:
    assert isinstance(served.face, Completer)
    with served.encoding:
        return served.face.prompt_ids(prompt)


def check_seed(seed: int | None) -> None:
    if seed is not None and not 0 <= seed < MOST_SEED:
        raise ApiError(400, "The seed is out of range.", "Give a number from 0 on, below 2 to the power of 62.", "seed")


async def _inputs(hub: Hub, served: Served, ask: ClassifyAsk, files: AsyncExitStack) -> list[Any]:
    """What the model reads, and only that."""
    assert isinstance(served.face, Classifier)
    wanted = {"text": "texts", "vectors": "series", "pictures": "pictures"}[served.face.input]
    given: dict[str, list[Any]] = {"texts": list(ask.texts), "series": list(ask.series), "pictures": list(ask.pictures)}
    if not given[wanted] or sum(map(bool, given.values())) > 1:
        raise ApiError(400, f"The model {served.name!r} reads {wanted}.", f"Give {wanted}, and only them.", wanted)
    if wanted == "series":
        return [_as_array(rows) for rows in ask.series]
    if wanted == "texts":
        return given[wanted]
    hub.check_texts(["" for _ in ask.pictures])

    def check(path: Path) -> None:
        header = read_header(path)
        require(not isinstance(header, str), f"The picture {header}.", "Give a file such as PNG or JPEG.")
        if isinstance(header, Header) and header.height * header.width > hub.limits.pixels:
            raise ApiError(413, f"The picture has more than {hub.limits.pixels:,} pixels.", "Give a smaller one.")

    return [await files.enter_async_context(kept(data, ".picture", "The picture", check)) for data in ask.pictures]


def _as_array(rows: list[list[float]]) -> Any:
    if not rows or not rows[0] or len({len(row) for row in rows}) > 1:
        raise ApiError(400, "A series is empty, or its steps have unequal lengths.", "Give rows of numbers.", "series")
    return np.array(rows, dtype=np.float32)
