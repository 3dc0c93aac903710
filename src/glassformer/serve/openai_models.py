"""OpenAI's /v1/models and /v1/embeddings."""

import base64
from typing import Any

import numpy as np
from fastapi import APIRouter, Request

from glassformer.serve.errors import ApiError
from glassformer.serve.hub import Hub
from glassformer.serve.models import Served
from glassformer.serve.openai_messages import EmbeddingAsk, as_many
from glassformer.serve.verbs import embed, source_ids
from glassformer.tasks.embedder import Vectors


def routes(hub: Hub) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["OpenAI"])

    @router.get("/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [_shown(served) for served in hub.models.values()]}

    @router.get("/models/{name}")
    async def model(name: str) -> dict[str, Any]:
        return _shown(hub.find(name, lambda _: True, "a model"))

    @router.post("/embeddings")
    async def embeddings(ask: EmbeddingAsk, request: Request) -> dict[str, Any]:
        served = hub.find(ask.model, lambda s: s.reads_text, "a model that reads text")
        ids = await source_ids(hub, served, as_many(ask.input))
        vectors = await embed(hub, request, served, ids)
        if ask.dimensions not in (None, len(vectors[0])):
            n = len(vectors[0])
            raise ApiError(400, f"The model makes vectors of {n} numbers only.", "Leave it out.", "dimensions")
        n_tokens = sum(map(len, ids))
        hub.metrics.tokens(served.name, n_tokens, 0)
        data = [
            {"object": "embedding", "index": i, "embedding": _written(vector, ask.encoding_format)}
            for i, vector in enumerate(vectors)
        ]
        used = {"prompt_tokens": n_tokens, "total_tokens": n_tokens}
        return {"object": "list", "data": data, "model": served.name, "usage": used}

    return router


def _shown(served: Served) -> dict[str, Any]:
    return {
        "id": served.name,
        "object": "model",
        "created": served.created,
        "owned_by": "glassformer",
        "task": served.task,
    }


def _written(vector: Vectors, form: str) -> str | list[float]:
    if form == "base64":
        return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode("ascii")
    numbers: list[float] = vector.tolist()
    return numbers
