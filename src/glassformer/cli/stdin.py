"""Lines of stdin, as the verbs that answer line by line read them."""

import codecs
import sys
from collections.abc import Iterator

BLOCK = 1 << 16  # bytes read at once: enough lines to sort by length


def stdin_lines() -> Iterator[list[str]]:
    """Lines of stdin as they come, split at line feeds only; a pause is answered, a file comes in blocks."""
    rest, mark = b"", codecs.BOM_UTF8
    read = getattr(sys.stdin.buffer, "read1", sys.stdin.buffer.read)
    while block := read(BLOCK):
        block, mark = block.removeprefix(mark), b""
        *whole, rest = (rest + block).split(b"\n")
        if whole:
            yield [_text(line) for line in whole]
    if rest:
        yield [_text(rest)]


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="replace").removesuffix("\r")
