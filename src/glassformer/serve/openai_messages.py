"""The bodies of OpenAI's dialect. What is not offered but would change the answer is refused."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from glassformer.decode.complete_options import CompleteOptions
from glassformer.decode.options import MOST_SEED
from glassformer.serve.errors import ApiError
from glassformer.serve.lists import TextsOrIds, bounded

# Parameters of other servers that would change an answer.
NOT_OFFERED = (
    *("logit_bias", "tools", "functions", "structured_outputs", "guided_json", "guided_regex", "guided_choice"),
    *("ignore_eos", "min_tokens", "use_beam_search", "stop_token_ids", "bad_words", "allowed_token_ids"),
)


def as_many(given: str | list[int] | list[str] | list[list[int]]) -> list[Any]:
    """Texts or ids in whichever form they came, as a list of either."""
    return [given] if isinstance(given, str) or isinstance(given[0], int) else list(given)


class _Ask(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False, extra="allow")
    model: str

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:
        """To say nothing of something, or null, is the same."""
        return {k: v for k, v in data.items() if v is not None} if isinstance(data, dict) else data


class StreamOptions(BaseModel):
    include_usage: bool = False


class _Generating(_Ask):
    """What completions and talks have in common."""

    temperature: float = Field(1.0, ge=0, le=2)
    top_p: float = Field(1.0, gt=0, le=1)
    top_k: int = Field(0, ge=0, le=1_000_000)
    min_p: float = Field(0.0, ge=0, lt=1)
    frequency_penalty: float = Field(0.0, ge=-2, le=2)
    presence_penalty: float = Field(0.0, ge=-2, le=2)
    repetition_penalty: float = Field(1.0, gt=0, le=10)
    n: int = Field(1, ge=1, le=128)
    seed: int | None = Field(None, ge=-(2**63), lt=2**63)
    stop: str | Annotated[list[str], bounded(0)] | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None

    def options(self, max_tokens: int, n: int, alternatives: int) -> CompleteOptions:
        for name in NOT_OFFERED:
            if (self.model_extra or {}).get(name):
                raise ApiError(400, f"The parameter {name} is not offered here.", "Leave it out.", name)
        stop = [self.stop] if isinstance(self.stop, str) else self.stop or []
        if len(stop) > 16 or any(len(text) > 1000 for text in stop):
            raise ApiError(400, "There are too many or too long stop strings.", "Give up to 16.", "stop")
        return CompleteOptions(
            max_tokens=max_tokens,
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            frequency_penalty=self.frequency_penalty,
            presence_penalty=self.presence_penalty,
            repetition_penalty=self.repetition_penalty,
            stop=tuple(stop),
            seed=None if self.seed is None else self.seed % MOST_SEED,
            n=n,
            alternatives=alternatives,
        )

    @property
    def wants_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage


class CompletionAsk(_Generating):
    prompt: TextsOrIds
    max_tokens: int | None = Field(16, ge=0)
    best_of: int | None = Field(None, ge=1, le=128)
    echo: bool = False
    logprobs: int | None = Field(None, ge=0, le=20)
    suffix: str | None = None
    truncate_prompt_tokens: int | None = Field(None, ge=1, description="Read only so many, the last ones.")


class Part(BaseModel):
    """Of a message; those that are no text are named when they are refused."""

    type: str
    text: str | None = None


class ChatMessage(BaseModel):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | Annotated[list[Part], bounded(0)] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text or "" for part in self.content)
        return self.content or ""

    def check(self, param: str) -> None:
        if self.content is None and self.role != "assistant":
            raise ApiError(400, f"A message of the {self.role} has no content.", "Give a text.", param)
        for part in self.content if isinstance(self.content, list) else ():
            if part.type != "text" or part.text is None:
                what = "of type text without one" if part.type == "text" else f"of type {part.type[:40]!r}"
                raise ApiError(400, f"A part {what} is not read here.", "Send text.", param)


class ChatAsk(_Generating):
    messages: Annotated[list[ChatMessage], bounded()]
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    logprobs: bool | None = False
    top_logprobs: int | None = Field(None, ge=0, le=20)
    response_format: dict[str, Any] | None = None

    def check(self) -> None:
        for i, message in enumerate(self.messages):
            message.check(f"messages.{i}.content")
        if self.response_format and self.response_format.get("type") != "text":
            raise ApiError(400, "Only text is answered here.", "Leave out response_format.", "response_format")
        if self.top_logprobs and not self.logprobs:
            raise ApiError(400, "top_logprobs is given without logprobs.", "Set logprobs to true.", "top_logprobs")


class EmbeddingAsk(_Ask):
    input: TextsOrIds
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(None, ge=1)
