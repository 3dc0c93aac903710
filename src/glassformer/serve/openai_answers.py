"""Answers in OpenAI's dialect: whole, and as events of a stream."""

import json
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from glassformer.serve.errors import as_api_error, in_words
from glassformer.serve.rows import Piece

PART = "\N{REPLACEMENT CHARACTER}"  # in the name of a token that is a part of a character
FINISH = {"end": "stop", "stop": "stop", "length": "length"}


def usage(n_prompt: int, n_answer: int) -> dict[str, int]:
    return {"prompt_tokens": n_prompt, "completion_tokens": n_answer, "total_tokens": n_prompt + n_answer}


def new_id(kind: str) -> str:
    return f"{kind}-{uuid.uuid4().hex}"


class Places:
    """Where tokens begin in their text; that of a stream grows.

    A part of a character has no letters of its own, a mark is not shown, and a text may begin without the space of its
    first token: so each token is looked for, near where it should be.
    """

    def __init__(self, text: str, at: int = 0, grows: bool = False) -> None:
        self.text, self.at, self.grows = text, at, grows
        self.n_hidden = 0  # parts of characters since the last token that was found

    def next(self, token: str) -> int:
        if PART in token:
            self.n_hidden += 1
            return self.at
        for shown in dict.fromkeys((token, token.removeprefix(" "))):
            place = self.text.find(shown, self.at, self.at + len(shown) + self.n_hidden + 1)
            if place >= 0 and shown:
                self.at, self.n_hidden = place + len(shown), 0
                return place
        place = self.at
        if self.grows and place + len(token) > len(self.text):  # held back, and shown later
            self.at += len(token)
        return place


@dataclass
class Tokens:
    """Tokens with their log-probabilities; the first of a prompt has none."""

    tokens: list[str] = field(default_factory=list)
    log_p: list[float | None] = field(default_factory=list)
    alternatives: list[list[tuple[str, float]]] = field(default_factory=list)

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(self.tokens + other.tokens, self.log_p + other.log_p, self.alternatives + other.alternatives)

    def as_completion(self, places: "Places") -> dict[str, Any]:
        found = [places.next(token) for token in self.tokens]
        tops = [_by_name(others) if others else None for others in self.alternatives] or None
        return {"tokens": self.tokens, "token_logprobs": self.log_p, "top_logprobs": tops, "text_offset": found}

    def as_chat(self) -> dict[str, Any]:
        rows = self.alternatives or [[] for _ in self.tokens]
        return {
            "content": [
                {**_token(token, p), "top_logprobs": [_token(*other) for other in others]}
                for token, p, others in zip(self.tokens, self.log_p, rows, strict=True)
            ],
            "refusal": None,
        }


def _by_name(others: list[tuple[str, float]]) -> dict[str, float]:
    """Of tokens that look alike, such as parts of characters, the likeliest."""
    found: dict[str, float] = {}
    for token, p in others:
        found.setdefault(token, p)
    return found


def _token(token: str, p: float | None) -> dict[str, Any]:
    # Of a part of a character the name does not tell which bytes it was.
    known = PART not in token
    return {"token": token, "logprob": p, "bytes": list(token.encode("utf-8", errors="replace")) if known else None}


def tokens_of(piece: Any) -> Tokens:
    """Of a piece or a whole completion."""
    return Tokens(list(piece.tokens), list(piece.log_p), list(piece.alternatives))


class Events:
    """The events of one streamed answer; `chat` has its own shape."""

    def __init__(self, model: str, chat: bool, with_logprobs: bool, n_prompt: int, wants_usage: bool) -> None:
        self.chat, self.with_logprobs = chat, with_logprobs
        self.n_prompt, self.n_answer, self.wants_usage = n_prompt, 0, wants_usage
        self.head = {
            "id": new_id("chatcmpl" if chat else "cmpl"),
            "object": "chat.completion.chunk" if chat else "text_completion",
            "created": int(time.time()),
            "model": model,
        }
        self.places: dict[int, Places] = {}

    async def lines(self, path: str, pieces: AsyncIterator[Piece], beginnings: list[str]) -> AsyncIterator[str]:
        """`beginnings` are what each answer begins with: the echoed prompt, if any."""
        try:
            for i, text in enumerate(beginnings):
                self.places[i] = Places(text, len(text), grows=True)
                if self.chat or text:
                    yield self._event(i, text, None, None, first=True)
            async for piece in pieces:
                self.n_answer += len(piece.tokens)
                if piece.text or piece.finish or (self.with_logprobs and piece.tokens):
                    logprobs = self._logprobs(piece) if self.with_logprobs else None
                    yield self._event(piece.row, piece.text, logprobs, FINISH.get(piece.finish or ""))
            if self.wants_usage:
                yield _data({**self.head, "choices": [], "usage": usage(self.n_prompt, self.n_answer)})
        except Exception as error:
            yield _data(in_words(path, as_api_error(error)))
        yield "data: [DONE]\n\n"

    def _event(self, row: int, text: str, logprobs: Any, finish: str | None, first: bool = False) -> str:
        choice: dict[str, Any] = {"index": row, "logprobs": logprobs, "finish_reason": finish}
        if self.chat:
            choice["delta"] = {"role": "assistant", "content": ""} if first else {"content": text} if text else {}
        else:
            choice["text"] = text
        extra = {"usage": None} if self.wants_usage else {}
        return _data({**self.head, "choices": [choice], **extra})

    def _logprobs(self, piece: Piece) -> dict[str, Any]:
        tokens = tokens_of(piece)
        if self.chat:
            return tokens.as_chat()
        places = self.places[piece.row]
        places.text += piece.text
        return tokens.as_completion(places)


def _data(event: dict[str, Any]) -> str:
    return f"data: {json.dumps(event, ensure_ascii=False)}\n\n"
