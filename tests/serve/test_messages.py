"""Bodies that are wrong: what is said of them, and that little is said of much."""

from typing import Any

import httpx
import pytest
from pydantic import BaseModel, ValidationError

from glassformer.serve.look import LookAsk
from glassformer.serve.openai_messages import ChatAsk, CompletionAsk, EmbeddingAsk
from glassformer.serve.own_messages import ClassifyAsk, CompleteAsk, EmbedAsk, FillAsk, TranslateAsk

MANY = 2000
USER = {"role": "user", "content": "Hi"}


def cases() -> list[Any]:
    bad: list[list[Any]] = [[{}] * MANY, [[{}] * MANY] * MANY]
    fields: list[tuple[type[BaseModel], str, dict[str, Any]]] = [
        (CompletionAsk, "prompt", {"model": "m"}),
        (CompletionAsk, "stop", {"model": "m", "prompt": "a"}),
        (ChatAsk, "messages", {"model": "m"}),
        (EmbeddingAsk, "input", {"model": "m"}),
        (TranslateAsk, "texts", {}),
        (TranslateAsk, "phrases", {"texts": ["a"]}),
        (CompleteAsk, "prompts", {}),
        (FillAsk, "texts", {}),
        (EmbedAsk, "texts", {}),
        (LookAsk, "texts", {}),
        *((ClassifyAsk, name, {}) for name in ("texts", "series", "pictures")),
    ]
    found = [(ask, {**rest, name: values}) for ask, name, rest in fields for values in bad]
    wide = {str(i): i for i in range(MANY)}
    found += [(TranslateAsk, {"texts": ["a"], **wide}), (TranslateAsk, {"texts": ["a"], "options": wide})]
    found += [(CompleteAsk, {"prompts": ["a"], "options": {"stop": bad[0]}})]
    found += [(CompleteAsk, {"prompts": ["a"], "options": wide})]
    found += [(ChatAsk, {"model": "m", "messages": [{"role": "user", "content": values}]}) for values in bad]
    return [pytest.param(ask, body, id=f"{ask.__name__}-{i}") for i, (ask, body) in enumerate(found)]


@pytest.mark.parametrize(("ask", "body"), cases())
def test_of_many_wrong_parts_few_are_told(ask: type[BaseModel], body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        ask.model_validate(body)
    assert caught.value.error_count() < 20


def test_lists_end_somewhere() -> None:
    with pytest.raises(ValidationError, match="at most 100000 items"):
        CompletionAsk.model_validate({"model": "m", "prompt": ["a"] * 200_000})


@pytest.mark.parametrize(
    ("path", "change", "param", "about"),
    [
        ("completions", {"prompt": 5}, "prompt", "valid string; or Input should be a valid list"),
        ("completions", {"prompt": [1, "a"]}, "prompt.1", "valid integer"),
        ("completions", {"prompt": [[1], [{}]]}, "prompt.1.0", "valid integer"),
        ("completions", {"prompt": None}, "prompt", "Field required"),
        ("completions", {"stream_options": {"include_usage": "x"}}, "stream_options.include_usage", "boolean"),
        ("completions", {"min_tokens": 5}, "min_tokens", "min_tokens"),
        ("completions", {"ignore_eos": True}, "ignore_eos", "ignore_eos"),
        ("completions", {"use_beam_search": True}, "use_beam_search", "use_beam_search"),
        ("chat/completions", {"tools": [{"type": "function"}]}, "tools", "tools"),
        ("chat/completions", {"messages": [USER, {"role": "user"}]}, "messages.1.content", "no content"),
        ("chat/completions", {"messages": [USER, {"content": "a"}]}, "messages.1.role", "Field required"),
        (
            "chat/completions",
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "messages.0.content",
            "'image_url'",
        ),
        ("embeddings", {"input": {}}, "input", "valid string"),
    ],
)
def test_what_is_wrong_is_named_by_its_field(
    server: str, path: str, change: dict[str, Any], param: str, about: str
) -> None:
    whole = {
        "completions": {"model": "stories", "prompt": "a"},
        "chat/completions": {"model": "talker", "messages": [USER]},
        "embeddings": {"model": "mood", "input": "a"},
    }
    answer = httpx.post(f"{server}/v1/{path}", json=whole[path] | change)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["param"] == param
    assert about in error["message"]


def test_broken_json_is_no_field(server: str) -> None:
    head = {"Content-Type": "application/json"}
    error = httpx.post(f"{server}/v1/completions", content=b'{"model": "stories", }', headers=head).json()["error"]
    assert error["param"] is None
    assert "the body: JSON" in error["message"]


def test_what_changes_nothing_is_taken(server: str) -> None:
    quiet = {"min_tokens": 0, "ignore_eos": False, "logit_bias": {}, "user": "me", "stop": [], "tools": []}
    asked = {"model": "stories", "prompt": "a", "max_tokens": 1, **quiet}
    assert httpx.post(f"{server}/v1/completions", json=asked).status_code == 200


def test_an_answer_without_content_is_an_empty_one(server: str) -> None:
    def ask(content: str | None) -> Any:
        messages = [USER, {"role": "assistant", "content": content}, USER]
        given = {"model": "talker", "messages": messages, "max_tokens": 5, "seed": 1}
        answer = httpx.post(f"{server}/v1/chat/completions", json=given)
        assert answer.status_code == 200
        return answer.json()["choices"]

    assert ask(None) == ask("")
