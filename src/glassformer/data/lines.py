"""Lines of text files as bytes: plain or gzip, with or without byte order mark, of any length, never held together."""

import contextlib
import gzip
import hashlib
import io
import unicodedata
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from glassformer.data.counted import counted
from glassformer.errors import UserError, require

LONGEST = 2**20  # bytes of a line that are read; what lies beyond is skipped, so that no line can fill the memory
_RARE = 100  # lone CRs for each LF: with more, CRs end the lines
_BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


@contextlib.contextmanager
def opening(path: Path) -> Iterator[BinaryIO]:
    """The unpacked bytes of a file, whatever its name says."""
    try:
        with path.open("rb") as file:
            if file.peek(2)[:2] == _GZIP:
                with gzip.GzipFile(fileobj=file) as packed, io.BufferedReader(packed, 2**16) as unpacked:
                    yield unpacked
            else:
                yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path} is a damaged gzip file ({error}).", "Copy it again.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from None


def read_lines(path: Path) -> Iterator[bytes]:
    """Lines without their \\n, the only thing that ends one; a line of more than LONGEST bytes comes cut short."""
    with opening(path) as file:
        line = file.readline(LONGEST + 1).removeprefix(_BOM)
        while line:
            yield line.removesuffix(b"\n")
            while line and not line.endswith(b"\n"):
                line = file.readline(LONGEST)
            line = file.readline(LONGEST + 1)


def sample_lines(path: Path, most: int = 1000) -> list[bytes]:
    """The first lines, about a megabyte at most."""
    lines: list[bytes] = []
    size = 0
    for line in read_lines(path):
        lines.append(line)
        size += len(line)
        if len(lines) == most or size > LONGEST:
            break
    return lines


def count_lines(path: Path) -> int:
    """Number of lines; the last one may lack its newline."""
    n, last = 0, b"\n"
    with opening(path) as file:
        while block := file.read(2**20):
            n += block.count(b"\n")
            last = block[-1:]
    return n + (last != b"\n")


def check_text(path: Path) -> None:
    """Refuse what is no file, or a file that holds no text."""
    require(path.exists(), f"There is no file {path}.", "Check the name.")
    require(not path.is_dir(), f"{path} is a folder, not a file.", "Name the file in it.")
    require(path.is_file(), f"{path} is a pipe or a device, but the data is read several times.", "Save it as a file.")
    with opening(path) as file:
        start = file.read(2)
    require(start != b"", f"{path} is empty.", "Check that it was written to the end.")
    require(start not in _UTF_16, f"{path} is UTF-16, not UTF-8.", "Convert it: iconv -f UTF-16 -t UTF-8 OLD > NEW.")
    lines = [line for line in sample_lines(path) if line.decode("utf-8", errors="replace").strip()]
    require(bool(lines), f"{path} holds nothing but empty lines.", "Check that it was written to the end.")
    n_bad = sum(not _is_text(line) for line in lines)
    require(
        n_bad * 2 <= len(lines),
        f"{path} is not UTF-8 text: {n_bad:,} of its first {counted(len(lines), 'line')} cannot be read.",
        "If it is text of another encoding, convert it, say iconv -f LATIN1 -t UTF-8 OLD > NEW.",
    )


def check_line_ends(path: Path) -> None:
    """Refuse a file whose lines end in CR, as on old Macs: it would be one long line."""
    lines = sample_lines(path)
    n_lone = sum(line.rstrip(b"\r").count(b"\r") for line in lines)
    require(
        n_lone <= _RARE * (len(lines) - 1),
        f"The lines of {path} end in CR (\\r), not in LF (\\n), so it reads as {counted(len(lines), 'line')}.",
        r"Convert them: tr '\r' '\n' < OLD > NEW.",
    )


def fingerprint(paths: Iterable[Path]) -> str:
    """SHA-256 of the unpacked contents, so that packing a file changes nothing."""
    total = hashlib.sha256()
    for path in paths:
        digest = hashlib.sha256()
        with opening(path) as file:
            while block := file.read(2**20):
                digest.update(block)
        total.update(digest.digest())
    return total.hexdigest()


def _is_text(line: bytes) -> bool:
    if b"\0" in line:
        return False
    try:
        line[:LONGEST].decode("utf-8")
    except UnicodeDecodeError as error:
        return error.end == LONGEST == len(line[:LONGEST])  # a long line cut within a character
    return True


def text_hash(text: str) -> int:
    """Eight bytes that stand for a text without regard to case, width and spacing; the same on every machine."""
    plain = " ".join((text if text.isascii() else unicodedata.normalize("NFKC", text)).casefold().split())
    return int.from_bytes(hashlib.blake2b(plain.encode("utf-8"), digest_size=8).digest(), "little")
