"""Lists and objects in bodies: bounded, and given up at the first wrong part, as each error takes memory.

A small body may hold millions of parts, and each of them would be told of once for every type that it might have had.
How many texts are taken is for `limits` to say; what is here is more than any of them allows.
"""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic.fields import FieldInfo

MOST = 1_000_000  # of numbers, and of lists of them
MOST_TEXTS = 100_000
MOST_FIELDS = 100


def bounded(least: int = 1, most: int = MOST_TEXTS) -> FieldInfo:
    """What a list is annotated with."""
    info: FieldInfo = Field(min_length=least, max_length=most, fail_fast=True)
    return info


def few_fields(data: Any) -> Any:
    if isinstance(data, dict) and len(data) > MOST_FIELDS:
        raise ValueError("there are too many fields")
    return data


FewFields = BeforeValidator(few_fields)  # where fields that are unknown are refused

Ids = Annotated[list[int], bounded(most=MOST)]
Texts = Annotated[list[str], bounded()]
TextsOrIds = str | Ids | Texts | Annotated[list[Ids], bounded()]
