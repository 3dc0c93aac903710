"""Recordings and pictures in requests: kept in files of our own naming for as long as they are used."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from glassformer.errors import UserError
from glassformer.serve.errors import ApiError


@asynccontextmanager
async def kept(file: BinaryIO | bytes, suffix: str, what: str, check: Callable[[Path], None]) -> AsyncIterator[Path]:
    """The path of a copy that passed the check; `what` stands for it in whatever is said to be wrong with it."""
    path = await asyncio.to_thread(_copy, BytesIO(file) if isinstance(file, bytes) else file, suffix)
    try:
        await asyncio.to_thread(check, path)
        yield path
    except UserError as error:
        raise ApiError(400, error.message.replace(str(path), what), error.hint) from None
    finally:
        with suppress(OSError):
            path.unlink()


def _copy(file: BinaryIO, suffix: str) -> Path:
    with tempfile.NamedTemporaryFile(prefix="glassformer-", suffix=suffix, delete=False) as copy:
        while part := file.read(1 << 20):
            copy.write(part)
    return Path(copy.name)
