"""Documents for a language model: text files, folders of them, JSONL; plain or gzip; of any size, never held together.

A text file is one document, a line of JSONL another: a text, or a talk in messages. A long document comes in parts that
end at a line's end.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from glassformer.data.counted import counted
from glassformer.data.lines import LONGEST, check_text, opening, read_lines
from glassformer.errors import UserError, require

Message = dict[str, str]
PART = 2**18  # bytes of a part, about
TEXT = {".txt", ".md", ".rst", ".text", ".py", ".c", ".h", ".js", ".html", ".xml", ".csv", ".tsv", ".tex"}


@dataclass(frozen=True)
class DocumentFiles:
    """The files that hold the documents; made by `open_documents`."""

    paths: tuple[Path, ...]
    field: str = "text"


@dataclass(frozen=True)
class Part:
    """A piece of a document; `ends` if it is the last one. A talk is one document of messages, each with its role."""

    text: str
    ends: bool
    talk: tuple[Message, ...] | None = None


@dataclass(frozen=True)
class DocumentReport:
    """What the files hold."""

    n_files: int
    n_documents: int
    n_bytes: int
    n_characters: int
    n_broken: int  # characters that were no UTF-8

    def __str__(self) -> str:
        were = "were" if self.n_broken > 1 else "was"
        broken = f" {counted(self.n_broken, 'character')} {were} no UTF-8 and replaced." if self.n_broken else ""
        files, documents = counted(self.n_files, "file"), counted(self.n_documents, "document")
        return (
            f"{files}, {documents}, {counted(self.n_bytes, 'byte')}, {counted(self.n_characters, 'character')}.{broken}"
        )


def open_documents(paths: Iterable[str | Path], field: str = "text") -> DocumentFiles:
    """Find the files; a folder stands for all text files in it, in the order of their names."""
    files: list[Path] = []
    for path in map(Path, paths):
        files += _in_folder(path) if path.is_dir() else [path]
    require(bool(files), "No file was given.", "Give text files, folders of them, or JSONL files.")
    for file in files:
        check_text(file)
    return DocumentFiles(tuple(files), field)


def read_documents(files: DocumentFiles) -> Iterator[Part]:
    """All documents in parts, one file after the other; empty documents are left out."""
    for path in files.paths:
        parts = _jsonl(path, files.field) if _kind(path) == ".jsonl" else _text(path)
        yield from parts


def check_documents(files: DocumentFiles) -> DocumentReport:
    """Read all once and say what it is; a UserError if there is nothing to learn from."""
    n_documents = n_bytes = n_characters = n_broken = 0
    for part in read_documents(files):
        n_documents += part.ends
        n_bytes += len(part.text.encode("utf-8", errors="surrogatepass"))
        n_characters += len(part.text)
        n_broken += part.text.count("\N{REPLACEMENT CHARACTER}")
    names = ", ".join(map(str, files.paths[:3])) + (", …" if len(files.paths) > 3 else "")
    require(n_characters > 0, f"{names}: there is no text in it.", "Check the files.")
    require(
        n_broken <= 0.1 * n_characters,
        f"{names}: {n_broken / n_characters:.0%} of it is no UTF-8 text.",
        "Give text; other encodings can be converted with iconv.",
    )
    return DocumentReport(len(files.paths), n_documents, n_bytes, n_characters, n_broken)


def looks_like_text(path: Path) -> bool:
    """Whether the path is a folder of text files, or a file that is read as one long text and not as a table."""
    if path.is_dir():
        return any(p.is_file() and _kind(p) in TEXT for p in path.rglob("*"))
    return path.is_file() and _kind(path) in TEXT - {".csv", ".tsv"}


def _in_folder(folder: Path) -> list[Path]:
    files = sorted(p for p in folder.rglob("*") if p.is_file() and _kind(p) in TEXT | {".jsonl"} and p.stat().st_size)
    require(
        bool(files), f"{folder} holds no text file.", f"Known are {', '.join(sorted(TEXT))}, .jsonl, and .gz of them."
    )
    return files


def _kind(path: Path) -> str:
    suffixes = [s.lower() for s in path.suffixes]
    return suffixes[-2] if len(suffixes) > 1 and suffixes[-1] == ".gz" else suffixes[-1] if suffixes else ""


def _text(path: Path) -> Iterator[Part]:
    """A file as one document, a part at a time, with one part in hand to know the last."""
    waiting: str | None = None
    for text in _parts(path):
        if waiting is not None:
            yield Part(waiting, ends=False)
        waiting = text
    if waiting is not None:
        yield Part(waiting, ends=True)


def _parts(path: Path) -> Iterator[str]:
    rest = b""
    with opening(path) as file:
        while block := file.read(PART):
            whole, newline, rest = (rest + block).rpartition(b"\n")
            if len(rest) > LONGEST:  # a line without end is cut, but not inside a character
                cut = next(i for i in range(len(rest) - 1, -1, -1) if rest[i] & 0xC0 != 0x80)
                whole, newline, rest = whole + newline + rest[:cut], b"", rest[cut:]
            if whole or newline:
                yield _decoded(whole + newline)
    if rest:
        yield _decoded(rest)


def _decoded(data: bytes) -> str:
    return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="replace").replace("\r\n", "\n")


def _jsonl(path: Path, field: str) -> Iterator[Part]:
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            raise UserError(f"Line {number} of {path} is not JSON.", "Each line must be one JSON object.") from None
        text = value.get(field) if isinstance(value, dict) else None
        if text is None and isinstance(value, dict) and "messages" in value:
            yield _talk(value["messages"], number, path)
            continue
        if not isinstance(text, str):
            known = ", ".join(sorted(map(str, value))) if isinstance(value, dict) else type(value).__name__
            raise UserError(
                f"Line {number} of {path} has no text in the field {field!r} (it has {known}).",
                "Name the field with --field.",
            )
        if text:
            yield Part(text.encode("utf-8", errors="replace").decode(), ends=True)


def _talk(messages: object, number: int, path: Path) -> Part:
    """Messages as chat APIs write them: [{"role": "user", "content": "…"}, …]."""
    fits = isinstance(messages, list) and all(
        isinstance(m, dict) and isinstance(m.get("role"), str) and isinstance(m.get("content"), str) for m in messages
    )
    if not (fits and messages):
        raise UserError(
            f"The messages in line {number} of {path} are no talk.",
            'Write them as [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}].',
        )
    assert isinstance(messages, list)
    talk = tuple({"role": m["role"], "content": m["content"].encode("utf-8", "replace").decode()} for m in messages)
    return Part("\n".join(m["content"] for m in talk), ends=True, talk=talk)
