"""Our own interface: /api/… for every verb. Elsewhere: /api/look (`look`), /api/transcribe (`openai_audio`)."""

from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request

from glassformer.serve import verbs
from glassformer.serve.classify import what_it_reads
from glassformer.serve.errors import ApiError
from glassformer.serve.hub import Hub
from glassformer.serve.look import reads_files, reads_texts
from glassformer.serve.models import Served
from glassformer.serve.own_messages import ClassifyAsk, CompleteAsk, EmbedAsk, FillAsk, TranslateAsk
from glassformer.tasks.classifier import Classifier
from glassformer.tasks.completer import Completer
from glassformer.tasks.filler import Filler

Said = dict[str, Any]


def routes(hub: Hub) -> APIRouter:
    router = APIRouter(prefix="/api", tags=["Glassformer"])

    @router.get("/models")
    async def models() -> list[Said]:
        """What is served."""
        return [_shown(served) for served in hub.models.values()]

    @router.post("/translate")
    async def translate(ask: TranslateAsk, request: Request) -> Said:
        """The best translations of each text."""
        return await _translate(hub, request, ask)

    @router.post("/complete")
    async def complete(ask: CompleteAsk, request: Request) -> Said:
        """Texts that go on; /v1/completions gives them as they come."""
        return await _complete(hub, request, ask)

    @router.post("/fill")
    async def fill(ask: FillAsk, request: Request) -> Said:
        """The best words for each blank (___)."""
        served = hub.find(ask.model, lambda s: isinstance(s.face, Filler), "a model for blanks")
        found = await verbs.fill(hub, request, served, ask.texts, ask.top)
        return {"model": served.name, "answers": [asdict(filled) for filled in found]}

    @router.post("/classify")
    async def classify(ask: ClassifyAsk, request: Request) -> Said:
        """The label of each text, pair of texts, series or picture, and how likely it is."""
        return await _classify(hub, request, ask)

    @router.post("/embed")
    async def embed(ask: EmbedAsk, request: Request) -> Said:
        """One vector for each text."""
        served = hub.find(ask.model, lambda s: s.reads_text, "a model that reads text")
        ids = await verbs.source_ids(hub, served, ask.texts)
        found = await verbs.embed(hub, request, served, ids, ask.pooling, ask.normalise)
        return {"model": served.name, "vectors": [vector.tolist() for vector in found]}

    return router


def _shown(served: Served) -> Said:
    about = {"name": served.name, "task": served.task, "title": served.title, "languages": served.languages}
    face = served.face
    # What a classifier judges, so that a page knows what to ask for.
    reads: Said = {"input": face.input, "n_texts": face.n_texts} if isinstance(face, Classifier) else {}
    if isinstance(face, Completer):
        reads["context"] = face.context
    return {**about, "chat": served.can_talk, "look": reads_texts(served) or reads_files(served), **reads}


async def _translate(hub: Hub, request: Request, ask: TranslateAsk) -> Said:
    served = hub.find(ask.model, verbs.is_translator, "a translator")
    found = await verbs.translate(hub, request, served, ask.texts, ask.options, ask.prefix, ask.phrases, ask.details)
    kept = ("text", "score", "source_tokens", "tokens", "alignment")[: 5 if ask.details else 2]
    answers = [[{name: getattr(each, name) for name in kept} for each in best] for best in found]
    return {"model": served.name, "translations": answers}


async def _complete(hub: Hub, request: Request, ask: CompleteAsk) -> Said:
    options = ask.options
    served = hub.find(ask.model, verbs.is_completer, "a language model")
    if options.slide or options.n > hub.limits.beam or options.alternatives > 100:
        raise ApiError(400, "slide, so many answers or so many alternatives are not offered here.", "Ask for less.")
    prompts = await verbs.prompt_ids(hub, served, ask.prompts)
    found = [asdict(answer) for answer in await hub.complete(request, served, prompts, options)]
    grouped = [found[i : i + options.n] for i in range(0, len(found), options.n)]
    return {"model": served.name, "completions": grouped}


async def _classify(hub: Hub, request: Request, ask: ClassifyAsk) -> Said:
    served = hub.find(ask.model, lambda s: isinstance(s.face, Classifier), "a classifier")
    async with AsyncExitStack() as files:
        found = await verbs.classify(hub, request, served, await what_it_reads(hub, served, ask, files))
    answers = [{"label": each.label, "probabilities": dict(each.probabilities)} for each in found]
    return {"model": served.name, "answers": answers}
