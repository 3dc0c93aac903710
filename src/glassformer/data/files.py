"""Files that are whole or not there: written beside their place, flushed, then moved into it."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from glassformer.errors import UserError


@contextlib.contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """A file that takes its place only when all was written and reached the disk."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_directory(path.parent)
    except OSError as error:
        raise UserError(
            f"{path} could not be written: {error.strerror or error}.", "Free some space or choose another folder."
        ) from error
    finally:
        with contextlib.suppress(OSError):  # what went wrong before matters more
            temporary.unlink(missing_ok=True)


def is_unfinished(name: str) -> bool:
    """Whether a name is that of a file that was being written when the power went."""
    return name.startswith(".") and name.endswith(".part")


def write_text(path: Path, text: str) -> None:
    with writing(path) as file:
        file.write(text.encode("utf-8"))


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """No two processes work in one folder at once; the lock ends with the process, however that ends."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"Another process is at work in {folder}.", "Wait for it, or give another --out.") from None
        yield


def _sync_directory(path: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
