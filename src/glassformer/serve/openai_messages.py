"""The bodies of OpenAI's dialect. What is not offered but would change the answer is refused."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from glassformer.decode.complete_options import CompleteOptions
from glassformer.serve.errors import ApiError

Ids = Annotated[list[int], Field(min_length=1)]


def as_many(given: str | list[int] | list[str] | list[list[int]]) -> list[Any]:
    """Texts or ids in whichever form they came, as a list of either."""
    return [given] if isinstance(given, str) or isinstance(given[0], int) else list(given)


class _Ask(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False, extra="ignore")
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
    seed: int | None = Field(None, ge=0, lt=2**62)
    stop: str | list[str] | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    logit_bias: dict[str, float] | None = None

    def options(self, max_tokens: int, n: int, alternatives: int) -> CompleteOptions:
        if self.logit_bias:
            raise ApiError(400, "logit_bias is not offered here.", "Leave it out.", "logit_bias")
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
            seed=self.seed,
            n=n,
            alternatives=alternatives,
        )

    @property
    def wants_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage


class CompletionAsk(_Generating):
    prompt: str | Ids | Annotated[list[str], Field(min_length=1)] | Annotated[list[Ids], Field(min_length=1)]
    max_tokens: int | None = Field(16, ge=0)
    best_of: int | None = Field(None, ge=1, le=128)
    echo: bool = False
    logprobs: int | None = Field(None, ge=0, le=20)
    suffix: str | None = None


class TextPart(BaseModel):
    type: Literal["text"]
    text: str


class ChatMessage(BaseModel):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[TextPart]

    @property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)


class ChatAsk(_Generating):
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    logprobs: bool | None = False
    top_logprobs: int | None = Field(None, ge=0, le=20)
    tools: list[Any] | None = None
    functions: list[Any] | None = None
    response_format: dict[str, Any] | None = None

    def check(self) -> None:
        asked = {"tools": self.tools, "functions": self.functions}
        for name, value in asked.items():
            if value:
                raise ApiError(400, f"{name} are not offered here.", "Leave them out.", name)
        if self.response_format and self.response_format.get("type") != "text":
            raise ApiError(400, "Only text is answered here.", "Leave out response_format.", "response_format")


class EmbeddingAsk(_Ask):
    input: str | Ids | Annotated[list[str], Field(min_length=1)] | Annotated[list[Ids], Field(min_length=1)]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(None, ge=1)
