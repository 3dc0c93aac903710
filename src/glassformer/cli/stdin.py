"""Lines of stdin, as the verbs that answer line by line read them."""

import codecs
import sys
from collections.abc import Iterator

from glassformer.data.counted import counted

BLOCK = 1 << 16  # bytes read at once: enough lines to sort by length
SHOWN = 5  # numbers of lines that are told


def stdin_lines() -> Iterator[list[str]]:
    """Lines of stdin as they come, split at line feeds only; a pause is answered, a file comes in blocks."""
    rest, mark = b"", codecs.BOM_UTF8
    read = getattr(sys.stdin.buffer, "read1", sys.stdin.buffer.read)
    n_lines, broken = 0, list[int]()
    while block := read(BLOCK):
        block, mark = block.removeprefix(mark), b""
        *whole, rest = (rest + block).split(b"\n")
        if whole:
            broken += _broken(whole, n_lines + 1)
            n_lines += len(whole)
            yield [_text(line) for line in whole]
    if rest:
        broken += _broken([rest], n_lines + 1)
        yield [_text(rest)]
    if broken:
        shown = ", ".join(map(str, broken[:SHOWN])) + (", …" if len(broken) > SHOWN else "")
        print(f"Not UTF-8, so read in part only: {counted(len(broken), 'line')} ({shown}).", file=sys.stderr)


def _broken(lines: list[bytes], first: int) -> list[int]:
    """The numbers of lines that are no UTF-8."""
    return [number for number, line in enumerate(lines, first) if not _is_utf_8(line)]


def _is_utf_8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="replace").removesuffix("\r")
