"""OpenAI's /v1/completions and /v1/chat/completions."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from glassformer.data.documents import Message
from glassformer.serve.errors import ApiError
from glassformer.serve.hub import Hub
from glassformer.serve.models import Served
from glassformer.serve.openai_answers import FINISH, Events, Places, Tokens, new_id, tokens_of, usage
from glassformer.serve.openai_messages import ChatAsk, CompletionAsk, as_many
from glassformer.serve.score import score_prompt
from glassformer.serve.verbs import is_completer, prompt_ids
from glassformer.tasks.completer import Completer, Completion

# Kept by nobody, and passed on piece by piece by proxies that would gather it (nginx).
STREAMING = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def routes(hub: Hub) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["OpenAI"])

    @router.post("/completions", response_model=None)
    async def completions(ask: CompletionAsk, request: Request) -> dict[str, Any] | StreamingResponse:
        served = hub.find(ask.model, is_completer, "a language model")
        prompts = await prompt_ids(hub, served, as_many(ask.prompt))
        if ask.truncate_prompt_tokens is not None:
            prompts = [ids[-ask.truncate_prompt_tokens :] for ids in prompts]
        return await _completions(hub, request, served, ask, prompts)

    @router.post("/chat/completions", response_model=None)
    async def chat(ask: ChatAsk, request: Request) -> dict[str, Any] | StreamingResponse:
        ask.check()
        served = hub.find(ask.model, lambda s: s.can_talk, "a model with a chat template")
        hub.check_texts([message.text for message in ask.messages])
        prompt = await _talk(served, ask)
        return await _chat(hub, request, served, ask, prompt)

    return router


async def _completions(
    hub: Hub, request: Request, served: Served, ask: CompletionAsk, prompts: list[list[int]]
) -> dict[str, Any] | StreamingResponse:
    face = served.face
    assert isinstance(face, Completer)
    max_tokens = 16 if ask.max_tokens is None else ask.max_tokens
    drawn = max(ask.best_of or ask.n, ask.n) if max_tokens else ask.n
    _check(hub, ask, max_tokens, drawn)
    hub.check_tokens(served, prompts, max_tokens)
    options = ask.options(max(1, max_tokens), drawn, ask.logprobs or 0)
    n_prompt = sum(map(len, prompts))
    beginnings = [_shown(face, ids) if ask.echo else "" for ids in prompts for _ in range(ask.n)]
    if ask.stream:
        pieces = hub.stream(served, prompts, options)
        events = Events(served.name, False, ask.logprobs is not None, n_prompt, ask.wants_usage)
        return _streaming(events.lines(request.url.path, pieces, beginnings))
    found = await hub.complete(request, served, prompts, options) if max_tokens else [Completion() for _ in beginnings]
    n_answer = sum(len(answer.tokens) for answer in found)
    given = [Tokens() for _ in prompts]
    if ask.echo and ask.logprobs is not None:
        given = await _scored(hub, request, served, prompts, ask.logprobs)
    kept = [_best(found[i : i + drawn], ask.n) for i in range(0, len(found), drawn)]
    answers = [(i, answer) for i, best in enumerate(kept) for answer in best]
    choices = []
    for index, (i, answer) in enumerate(answers):
        begin = beginnings[index]
        logprobs = None
        if ask.logprobs is not None:
            logprobs = (given[i] + tokens_of(answer)).as_completion(Places(begin + answer.text))
        finish = FINISH[answer.finish]
        choices.append({"index": index, "text": begin + answer.text, "logprobs": logprobs, "finish_reason": finish})
    return {
        "id": new_id("cmpl"),
        "object": "text_completion",
        "created": int(time.time()),
        "model": served.name,
        "choices": choices,
        "usage": usage(n_prompt, n_answer),
    }


async def _chat(
    hub: Hub, request: Request, served: Served, ask: ChatAsk, prompt: list[int]
) -> dict[str, Any] | StreamingResponse:
    face = served.face
    assert isinstance(face, Completer)
    if ask.n > hub.limits.beam:
        raise ApiError(400, f"n is {ask.n}, but at most {hub.limits.beam} answers are made.", "Ask for fewer.", "n")
    room = min(hub.limits.tokens, face.context or hub.limits.tokens) - len(prompt)
    max_tokens = ask.max_completion_tokens or ask.max_tokens or max(1, room)
    options = ask.options(max_tokens, ask.n, (ask.top_logprobs or 0) if ask.logprobs else 0)
    if ask.stream:
        pieces = hub.stream(served, [prompt], options)
        events = Events(served.name, True, bool(ask.logprobs), len(prompt), ask.wants_usage)
        return _streaming(events.lines(request.url.path, pieces, [""] * ask.n))
    found = await hub.complete(request, served, [prompt], options)
    choices = [
        {
            "index": i,
            "message": {"role": "assistant", "content": answer.text, "refusal": None},
            "logprobs": tokens_of(answer).as_chat() if ask.logprobs else None,
            "finish_reason": FINISH[answer.finish],
        }
        for i, answer in enumerate(found)
    ]
    return {
        "id": new_id("chatcmpl"),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": served.name,
        "choices": choices,
        "usage": usage(len(prompt), sum(len(answer.tokens) for answer in found)),
    }


def _streaming(lines: Any) -> StreamingResponse:
    return StreamingResponse(lines, media_type="text/event-stream", headers=STREAMING)


def _check(hub: Hub, ask: CompletionAsk, max_tokens: int, drawn: int) -> None:
    if ask.suffix:
        raise ApiError(400, "A suffix is not offered here.", "Leave it out.", "suffix")
    if max_tokens == 0 and (not ask.echo or ask.stream):
        raise ApiError(400, "Nothing is asked for: max_tokens is 0.", "Ask for tokens, or for echo.", "max_tokens")
    if ask.best_of is not None and ask.best_of < ask.n:
        raise ApiError(400, f"best_of is {ask.best_of}, below n, which is {ask.n}.", "Give n or more.", "best_of")
    if drawn > hub.limits.beam:
        most = hub.limits.beam
        raise ApiError(400, f"{drawn} answers are asked for, but at most {most} are made.", "Ask for fewer.", "n")
    if ask.stream and drawn > ask.n:
        raise ApiError(400, "The best of several cannot be streamed.", "Leave out best_of or stream.", "best_of")
    if ask.stream and ask.echo and ask.logprobs is not None:
        raise ApiError(400, "Scores of the prompt are not streamed.", "Leave out echo, logprobs or stream.", "echo")


def _shown(face: Completer, ids: list[int]) -> str:
    return face.tokenizer.decode(ids)


async def _talk(served: Served, ask: ChatAsk) -> list[int]:
    messages: list[Message] = [
        {"role": "system" if m.role == "developer" else m.role, "content": m.text} for m in ask.messages
    ]
    return await asyncio.to_thread(served.talk, messages)


def _best(answers: Sequence[Completion], n: int) -> list[Completion]:
    """The likeliest by token."""
    if len(answers) == n:
        return list(answers)

    def mean(answer: Completion) -> float:
        return sum(answer.log_p) / max(1, len(answer.log_p))

    return sorted(answers, key=mean, reverse=True)[:n]


async def _scored(hub: Hub, request: Request, served: Served, prompts: list[list[int]], n_others: int) -> list[Tokens]:
    """How likely each token of the prompts was, after those before it."""
    face = served.face
    assert isinstance(face, Completer)

    def run(given: list[list[int]]) -> list[Tokens]:
        return [score_prompt(face, ids, n_others) for ids in given]

    return await hub.ask(request, served, ("score", n_others), prompts, run)
