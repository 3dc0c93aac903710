"""What a classifier is given in a request: texts, series of vectors, or pictures."""

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

import numpy as np

from glassformer.data.picture_file import Header, read_header
from glassformer.errors import require
from glassformer.serve.errors import ApiError
from glassformer.serve.hub import Hub
from glassformer.serve.models import Served
from glassformer.serve.own_messages import ClassifyAsk
from glassformer.serve.uploads import kept
from glassformer.tasks.classifier import Classifier

FIELDS = {"text": "texts", "vectors": "series", "pictures": "pictures"}


async def what_it_reads(hub: Hub, served: Served, ask: ClassifyAsk, files: AsyncExitStack) -> list[Any]:
    """The inputs of the kind that the model reads; pictures are files until `files` is closed."""
    assert isinstance(served.face, Classifier)
    wanted = FIELDS[served.face.input]
    given: dict[str, list[Any]] = {name: list(getattr(ask, name)) for name in FIELDS.values()}
    if not given[wanted] or sum(map(bool, given.values())) > 1:
        raise ApiError(400, f"The model {served.name!r} reads {wanted}.", f"Give {wanted}, and only them.", wanted)
    if wanted == "series":
        return [_as_array(rows) for rows in ask.series]
    if wanted == "texts":
        return given[wanted]
    hub.check_texts(["" for _ in ask.pictures])
    return [await files.enter_async_context(kept_picture(hub, data)) for data in ask.pictures]


def kept_picture(hub: Hub, data: bytes) -> AbstractAsyncContextManager[Path]:
    """A picture as a file, if it is one and not too large."""

    def check(path: Path) -> None:
        header = read_header(path)
        require(not isinstance(header, str), f"The picture {header}.", "Give a file such as PNG or JPEG.")
        if isinstance(header, Header) and header.height * header.width > hub.limits.pixels:
            raise ApiError(413, f"The picture has more than {hub.limits.pixels:,} pixels.", "Give a smaller one.")

    return kept(data, ".picture", "The picture", check)


def _as_array(rows: list[list[float]]) -> Any:
    if not rows or not rows[0] or len({len(row) for row in rows}) > 1:
        raise ApiError(400, "A series is empty, or its steps have unequal lengths.", "Give rows of numbers.", "series")
    with np.errstate(over="ignore"):
        series = np.array(rows, dtype=np.float32)
    if not np.isfinite(series).all():
        raise ApiError(400, "A series holds a number that is too large.", "Give numbers up to 3e38.", "series")
    return series
