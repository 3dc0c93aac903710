"""LibreTranslate's dialect: JSON, form or query string in; errors as {"error": "…"}.

A language is told by its model: the one that is surest of its translation has understood the text.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from starlette.datastructures import ImmutableMultiDict

from glassformer.decode.options import DecodeOptions
from glassformer.serve.errors import ApiError
from glassformer.serve.guard import key_in
from glassformer.serve.hub import Hub
from glassformer.serve.models import Served
from glassformer.serve.verbs import is_translator, translate
from glassformer.tasks.translator import Translation

# Names for people; any other code stands for itself.
NAMES = {
    **{"ar": "Arabic", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English"},
    **{"es": "Spanish", "fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian"},
    **{"it": "Italian", "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese"},
    **{"ru": "Russian", "sv": "Swedish", "tr": "Turkish", "uk": "Ukrainian", "zh": "Chinese"},
}
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
Q = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
CODE = {"type": "string", "example": "en"}


def routes(hub: Hub) -> APIRouter:
    router = APIRouter(tags=["LibreTranslate"])
    asked = {"q": Q, "source": CODE, "target": CODE, "alternatives": {"type": "integer", "minimum": 0}}

    @router.post("/translate", openapi_extra=_described(asked, ["q", "source", "target"]))
    async def translate_(request: Request) -> dict[str, Any]:
        """q, source, target; and format, alternatives, api_key."""
        given = await _parameters(request)
        _check_key(hub, request, given)
        return await _translate(hub, request, given)

    @router.post("/detect", openapi_extra=_described({"q": Q}, ["q"]))
    async def detect(request: Request) -> list[dict[str, Any]]:
        given = await _parameters(request)
        _check_key(hub, request, given)
        text = _texts(given)[0]
        if not text.strip():
            raise ApiError(400, "There is no text to tell the language of.", "Give q.")
        greedy = DecodeOptions(beam=1)
        found = {}
        for source, served in {pair[0]: served for pair, served in _pairs(hub).items()}.items():
            [[best]] = await translate(hub, request, served, [text], greedy)
            found[source] = _confidence(best)
        return [
            {"confidence": confidence, "language": code}
            for code, confidence in sorted(found.items(), key=lambda pair: -pair[1])
        ]

    @router.get("/languages")
    async def languages() -> list[dict[str, Any]]:
        targets: dict[str, list[str]] = {}
        for source, target in _pairs(hub):
            targets.setdefault(source, []).append(target)
            targets.setdefault(target, [])
        return [
            {"code": code, "name": NAMES.get(code, code), "targets": sorted(known)}
            for code, known in sorted(targets.items())
        ]

    @router.get("/frontend/settings")
    async def settings() -> dict[str, Any]:
        pairs = list(_pairs(hub)) or [("auto", "auto")]
        source, target = ({"code": code, "name": NAMES.get(code, code)} for code in pairs[0])
        return {
            "apiKeys": bool(hub.keys),
            "charLimit": hub.limits.characters,
            "frontendTimeout": 500,
            "keyRequired": bool(hub.keys),
            "language": {"source": source, "target": target},
            "suggestions": False,
            "supportedFilesFormat": [],
        }

    return router


def _described(asked: dict[str, Any], needed: list[str]) -> dict[str, Any]:
    """What is read by hand below, as OpenAPI tells it."""
    schema = {"type": "object", "properties": {**asked, "api_key": {"type": "string"}}, "required": needed}
    kinds = ("application/json", FORMS[0])
    return {"requestBody": {"content": {kind: {"schema": schema} for kind in kinds}, "required": True}}


async def _translate(hub: Hub, request: Request, given: Mapping[str, Any]) -> dict[str, Any]:
    source, target = _code(given, "source"), _code(given, "target")
    if given.get("format", "text") != "text":
        raise ApiError(400, "Only the format text is translated here.", "Leave out format, or say text.")
    texts, n_more = _texts(given), _alternatives(given, hub.limits.beam - 1)
    models = {s: served for (s, t), served in _pairs(hub).items() if t == target and source in ("auto", s)}
    if not models:
        raise ApiError(400, f"No model here translates from {source[:20]} to {target[:20]}.", _what_else(hub))
    options = DecodeOptions(beam=max(4, n_more + 1), nbest=n_more + 1)
    found = {code: await translate(hub, request, served, texts, options) for code, served in models.items()}
    best = [max(models, key=lambda code: found[code][i][0].score) for i in range(len(texts))]
    answers = [found[code][i] for i, code in enumerate(best)]
    said: dict[str, list[Any]] = {"translatedText": [answer[0].text for answer in answers]}
    if n_more:
        said["alternatives"] = [[other.text for other in answer[1:]] for answer in answers]
    if source == "auto":
        said["detectedLanguage"] = [
            {"confidence": _confidence(answer[0]), "language": code} for answer, code in zip(answers, best, strict=True)
        ]
    return dict(said) if isinstance(given["q"], list) else {name: value[0] for name, value in said.items()}


def _pairs(hub: Hub) -> dict[tuple[str, str], Served]:
    """Which model translates from which language into which; of several the first."""
    found: dict[tuple[str, str], Served] = {}
    for served in hub.models.values():
        if is_translator(served) and served.languages is not None:
            found.setdefault(served.languages, served)
    return found


def _what_else(hub: Hub) -> str:
    """What to do where no model fits: perhaps one would, if its languages were known."""
    unknown = [name for name, served in hub.models.items() if is_translator(served) and served.languages is None]
    if not unknown:
        return "See /languages."
    return f"See /languages. What {unknown[0]} translates is said by starting with --languages {unknown[0]}=en,de."


def _confidence(best: Translation) -> float:
    """In per cent: the probability of a token of the translation, as a geometric mean."""
    return round(100 * math.exp(min(0.0, best.score)), 1)


async def _parameters(request: Request) -> dict[str, Any]:
    given = _fields(request.query_params)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in FORMS:
        given |= _fields(await request.form(max_files=0, max_part_size=1 << 24))
    elif kind == "application/json":
        try:
            data = json.loads(await request.body())
        except (ValueError, RecursionError):
            raise ApiError(400, "The body is not JSON.", "Send an object with q, source and target.") from None
        if not isinstance(data, dict):
            raise ApiError(400, "The body is no JSON object.", "Send one with q, source and target.")
        given |= {name: value for name, value in data.items() if value is not None}  # null says nothing
    elif kind or await request.body():
        raise ApiError(415, f"Bodies of type {kind[:60] or 'none'} are not read.", f"Send JSON or {FORMS[0]}.")
    return given


def _fields(given: ImmutableMultiDict[str, Any]) -> dict[str, Any]:
    """Several texts may come as several fields of the same name."""
    found = {name: given.getlist(name) for name in given}
    return {name: values if name == "q" and len(values) > 1 else values[0] for name, values in found.items()}


def _check_key(hub: Hub, request: Request, given: Mapping[str, Any]) -> None:
    key = given.get("api_key")
    if not (hub.knows_key(key_in(request.headers)) or (isinstance(key, str) and hub.knows_key(key))):
        raise ApiError(403, "The API key is missing or wrong.", "Ask who runs this server for one.")


def _texts(given: Mapping[str, Any]) -> list[str]:
    q = given.get("q")
    texts: list[Any] = q if isinstance(q, list) else [q]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise ApiError(400, "The parameter q is missing or no text.", "Give a text or a list of texts.")
    return texts


def _code(given: Mapping[str, Any], name: str) -> str:
    code = given.get(name)
    if not isinstance(code, str) or not code.isascii() or not code:
        raise ApiError(400, f"The parameter {name} is missing or no language.", "See /languages.")
    return code


def _alternatives(given: Mapping[str, Any], most: int) -> int:
    text = str(given.get("alternatives", 0))
    if not text.isdecimal() or len(text) > 9 or int(text) > most:
        raise ApiError(400, "The parameter alternatives is no number, or too large.", f"Give 0 to {most}.")
    return int(text)
