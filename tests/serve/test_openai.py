"""OpenAI's own client, unchanged, and answers that are those of the model alone."""

import base64
import math
from collections.abc import Iterator

import httpx
import numpy as np
import openai
import pytest
import torch

from glassformer.decode.complete_options import CompleteOptions
from glassformer.serve.models import Served
from glassformer.tasks.chat import Chat
from glassformer.tasks.completer import Completer


@pytest.fixture(scope="module")
def client(server: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture
def stories(models: dict[str, Served]) -> Completer:
    face = models["stories"].face
    assert isinstance(face, Completer)
    return face


def test_models(client: openai.OpenAI) -> None:
    assert {model.id for model in client.models.list()} == {"en-de", "stories", "talker", "blanks", "mood"}
    assert client.models.retrieve("stories").owned_by == "glassformer"
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("nothing")
    assert caught.value.code == "model_not_found"


def test_completions_are_those_of_the_command_line(client: openai.OpenAI, stories: Completer) -> None:
    prompts = ["the cat", "ein Hündchen läuft über", "1"]
    options = CompleteOptions(max_tokens=12, temperature=0.9, seed=3, n=2)
    wanted = [a.text for answers in stories.complete_all(prompts, options) for a in answers]
    said = client.completions.create(model="stories", prompt=prompts, max_tokens=12, temperature=0.9, seed=3, n=2)
    assert [choice.text for choice in said.choices] == wanted
    assert [choice.index for choice in said.choices] == list(range(6))
    assert said.usage is not None
    assert said.usage.prompt_tokens == sum(len(stories.prompt_ids(prompt)) for prompt in prompts)
    by_ids = client.completions.create(
        model="stories", prompt=[stories.prompt_ids(p) for p in prompts], max_tokens=12, temperature=0.9, seed=3, n=2
    )
    assert [choice.text for choice in by_ids.choices] == wanted
    one = client.completions.create(
        model="stories", prompt=stories.prompt_ids("1"), max_tokens=12, temperature=0.9, seed=3
    )
    assert one.choices[0].text == wanted[4]


def test_a_stream_is_the_same_in_pieces(client: openai.OpenAI) -> None:
    given = {"model": "stories", "prompt": ["the cat", "1"], "max_tokens": 20, "seed": 5, "stop": ["e"]}
    whole = client.completions.create(**given)
    texts, ends, used = {0: "", 1: ""}, {}, None
    for event in client.completions.create(**given, stream=True, stream_options={"include_usage": True}):
        for choice in event.choices:
            texts[choice.index] += choice.text
            if choice.finish_reason:
                ends[choice.index] = choice.finish_reason
        used = event.usage or used
    assert texts == {c.index: c.text for c in whole.choices}
    assert ends == {c.index: c.finish_reason for c in whole.choices}
    assert used == whole.usage
    assert not any("e" in text for text in texts.values())


@torch.inference_mode()
def test_log_probabilities_of_prompt_and_answer(client: openai.OpenAI, stories: Completer) -> None:
    said = client.completions.create(
        model="stories", prompt="the cat", max_tokens=4, temperature=0, echo=True, logprobs=3
    )
    [choice] = said.choices
    assert choice.text.startswith("the cat")
    assert choice.logprobs is not None
    ids = stories.prompt_ids("the cat")
    answer = stories.complete_all(["the cat"], CompleteOptions(max_tokens=4, temperature=0))[0][0]
    log_p = stories.model(torch.tensor([ids]))[0].log_softmax(-1)
    wanted = [float(row[i]) for row, i in zip(log_p, ids[1:], strict=False)] + answer.log_p
    assert choice.logprobs.token_logprobs[0] is None
    assert choice.logprobs.token_logprobs[1:] == pytest.approx(wanted, abs=1e-4)
    assert all(len(top) <= 3 for top in choice.logprobs.top_logprobs[1:])
    only = client.completions.create(model="stories", prompt="the cat", max_tokens=0, echo=True, logprobs=0)
    assert only.choices[0].text == "the cat"
    assert only.choices[0].logprobs.token_logprobs == choice.logprobs.token_logprobs[: len(ids)]


def test_of_a_long_prompt_the_last_tokens_are_read_if_asked(server: str, stories: Completer) -> None:
    ids = stories.prompt_ids("the cat sat on the mat")
    asked = {"model": "stories", "max_tokens": 4, "temperature": 0}
    whole, cut, last = (
        httpx.post(f"{server}/v1/completions", json=asked | given).json()
        for given in (
            {"prompt": [ids]},
            {"prompt": [ids], "truncate_prompt_tokens": 3},
            {"prompt": [ids[-3:]]},
        )
    )
    assert cut["choices"][0]["text"] == last["choices"][0]["text"]
    assert (whole["usage"]["prompt_tokens"], cut["usage"]["prompt_tokens"]) == (len(ids), 3)


def test_any_whole_number_is_a_seed(server: str) -> None:
    asked = {"model": "stories", "prompt": "the", "max_tokens": 8}
    texts = [
        httpx.post(f"{server}/v1/completions", json=asked | {"seed": seed}).json()["choices"][0]["text"]
        for seed in (-5, -5, 2**63 - 1)
    ]
    assert texts[0] == texts[1] != texts[2]


def test_a_prompt_alone_is_scored_within_the_limits(
    client: openai.OpenAI, stories: Completer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glassformer.serve.score.PART", 3)
    ids = stories.prompt_ids("the cat sat on the mat and the dog läuft über")
    assert len(ids) > 7
    given = {"model": "stories", "max_tokens": 0, "echo": True, "logprobs": 2}
    with torch.inference_mode():
        log_p = stories.model(torch.tensor([ids]))[0].log_softmax(-1)
    [choice] = client.completions.create(**given, prompt=ids).choices
    wanted = [float(row[i]) for row, i in zip(log_p, ids[1:], strict=False)]
    assert choice.logprobs.token_logprobs[1:] == pytest.approx(wanted, abs=1e-4)
    for row, top in zip(log_p, choice.logprobs.top_logprobs[1:], strict=False):
        assert max(top.values()) == pytest.approx(float(row.max()), abs=1e-4)
    pair = client.completions.create(**given, prompt=["the", "cat"], extra_body={"best_of": 4})
    assert [c.text for c in pair.choices] == ["the", "cat"]
    assert stories.context == 200
    assert client.completions.create(**given, prompt=[5] * 200).usage.prompt_tokens == 200
    for n, about in ((201, "sees only"), (9000, "tokens")):
        with pytest.raises(openai.BadRequestError, match=about):
            client.completions.create(**given, prompt=[5] * n)


def test_best_of_keeps_the_likeliest(client: openai.OpenAI) -> None:
    given = {"model": "stories", "prompt": "the", "max_tokens": 8, "seed": 2, "logprobs": 0}
    every = client.completions.create(**given, n=6).choices
    best = client.completions.create(**given, best_of=6).choices
    means = [sum(c.logprobs.token_logprobs) / max(1, len(c.logprobs.token_logprobs)) for c in every]
    assert best[0].text == every[means.index(max(means))].text


def test_talk_whole_and_streamed(client: openai.OpenAI, models: dict[str, Served]) -> None:
    face = models["talker"].face
    assert isinstance(face, Completer)
    options = CompleteOptions(max_tokens=9, temperature=0.7, seed=4)
    wanted = "".join(Chat(face, "Be brief.").answer("Hi", options))
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
    ]
    given = {"model": "talker", "messages": messages, "temperature": 0.7, "seed": 4, "max_completion_tokens": 9}
    said = client.chat.completions.create(**given, logprobs=True, top_logprobs=2)
    assert said.choices[0].message.content == wanted
    tokens = said.choices[0].logprobs.content
    assert len(tokens) == said.usage.completion_tokens
    assert all(len(token.top_logprobs) == 2 and math.exp(token.logprob) <= 1 for token in tokens)
    events = list(client.chat.completions.create(**given, stream=True, stream_options={"include_usage": True}))
    assert events[0].choices[0].delta.role == "assistant"
    assert "".join(e.choices[0].delta.content or "" for e in events if e.choices) == wanted
    assert events[-1].usage == said.usage
    assert client.chat.completions.create(model="talker", messages=messages[1:], seed=1).choices[0].finish_reason


def test_embeddings_as_floats_and_base64(client: openai.OpenAI, server: str, models: dict[str, Served]) -> None:
    texts = ["the cat", "ein Hündchen läuft", ""]
    wanted = models["mood"].embedder.embed(texts)
    said = client.embeddings.create(model="mood", input=texts)  # asks for base64 by itself
    np.testing.assert_allclose([row.embedding for row in said.data], wanted, atol=1e-6)
    plain = client.embeddings.create(model="mood", input=texts[0], encoding_format="float")
    np.testing.assert_allclose(plain.data[0].embedding, wanted[0], atol=1e-6)
    raw = httpx.post(f"{server}/v1/embeddings", json={"model": "mood", "input": "a", "encoding_format": "base64"})
    assert len(base64.b64decode(raw.json()["data"][0]["embedding"])) == 4 * wanted.shape[1]
    ids = models["mood"].loaded.tokenizer.encode_batch(texts[:2])
    for given, rows in ((ids, wanted[:2]), (ids[0], wanted[:1])):
        by_ids = client.embeddings.create(model="mood", input=given)
        np.testing.assert_allclose([row.embedding for row in by_ids.data], rows, atol=1e-6)
    assert by_ids.usage.prompt_tokens == len(ids[0])
    with pytest.raises(openai.BadRequestError, match="none of the model's"):
        client.embeddings.create(model="mood", input=[[9999999]])


@pytest.mark.parametrize(
    ("given", "param", "about"),
    [
        ({"model": "nothing"}, "model", "no model"),
        ({"model": "en-de"}, "model", "not a language model"),
        ({"max_tokens": -1}, "max_tokens", "greater"),
        ({"max_tokens": 10_000}, None, "tokens"),
        ({"temperature": 3}, "temperature", "less"),
        ({"n": 2, "best_of": 1}, "best_of", "best_of"),
        ({"n": 100}, "n", "answers"),
        ({"prompt": [9999999]}, "prompt", "token"),
        ({"prompt": []}, None, ""),
        ({"prompt": "the " * 300}, None, "sees only"),
        ({"suffix": "x"}, "suffix", "suffix"),
        ({"logit_bias": {"1": 1}}, "logit_bias", "logit_bias"),
        ({"stop": [""]}, None, "stop"),
        ({"seed": 2**70}, "seed", ""),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_errors_have_their_shape(
    server: str, given: dict[str, object], param: str | None, about: str, stream: bool
) -> None:
    body = {"model": "stories", "prompt": "the", "stream": stream} | given
    answer = httpx.post(f"{server}/v1/completions", json=body)
    assert answer.status_code in (400, 404)
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    assert about in error["message"]
    if param is not None:
        assert error["param"] == param


def test_an_error_in_mid_stream_is_told(
    client: openai.OpenAI, stories: Completer, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, n = Completer._take, iter(range(100))

    def breaks(self: Completer, *given: object) -> str:
        if next(n) == 3:
            raise RuntimeError("/secret/path")
        return take(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Completer, "_take", breaks)
    stream = client.completions.create(model="stories", prompt="the", max_tokens=50, temperature=0, stream=True)
    with pytest.raises(openai.APIError, match="went wrong") as caught:
        list(stream)
    assert "secret" not in str(caught.value)
    monkeypatch.undo()
    assert client.completions.create(model="stories", prompt="the", max_tokens=2).choices[0].text is not None
