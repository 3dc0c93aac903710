"""The bodies of our own interface. What is unknown in them is refused; options are those of the command line."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Base64Bytes, BaseModel, ConfigDict, Field, model_validator

from glassformer.decode.complete_options import CompleteOptions
from glassformer.decode.options import DecodeOptions
from glassformer.model.settings import Pooling
from glassformer.serve.lists import MOST, FewFields, Texts, bounded, few_fields

STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)

Name = Annotated[str | None, Field(description="A name of /api/models; without it, the first model that can do it.")]

Steps = Annotated[list[Annotated[list[float], bounded(0, MOST)]], bounded(0, MOST)]


@dataclass(frozen=True, kw_only=True)
class SearchOptions(DecodeOptions):
    __pydantic_config__: ClassVar[ConfigDict] = STRICT


@dataclass(frozen=True, kw_only=True)
class TextOptions(CompleteOptions):
    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    stop: Annotated[tuple[str, ...], bounded(0)] = ()


class Ask(BaseModel):
    model_config = STRICT
    model: Name = None

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, data: Any) -> Any:
        return few_fields(data)


class TranslateAsk(Ask):
    texts: Texts
    options: Annotated[SearchOptions, FewFields] = SearchOptions()
    prefix: str = ""
    phrases: Annotated[tuple[str, ...], bounded(0)] = ()
    details: bool = Field(False, description="Tokens and alignment too.")


class CompleteAsk(Ask):
    prompts: Texts
    options: Annotated[TextOptions, FewFields] = TextOptions()


class FillAsk(Ask):
    texts: Texts
    top: int = Field(5, ge=1, le=100)


class ClassifyAsk(Ask):
    texts: Annotated[list[str | Annotated[list[str], bounded(2, 2)]], bounded(0)] = []
    series: Annotated[list[Steps], bounded(0)] = Field(
        [], description="For models of vectors: rows of numbers, one a step."
    )
    pictures: Annotated[list[Base64Bytes], bounded(0)] = Field(
        [], description="For models of pictures: files such as PNG, in base64."
    )


class EmbedAsk(Ask):
    texts: Texts
    pooling: Pooling | None = None
    normalise: bool | None = None
