"""Recordings with their transcripts: a manifest (TSV, CSV, JSON lines), or a folder of sounds with a .txt beside each.

A line that cannot be used comes as a BadLine with its number; paths are seen from the manifest's folder. Deliberately
not here: what is inside the sounds (`audio`), and what they look like as a whole (`recordings_check`).
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from glassformer.data.audio import is_recording, is_there
from glassformer.data.layout import guess_layout, json_object, kind_of, split_rows
from glassformer.data.lines import check_text, fingerprint, sample_lines
from glassformer.data.pairs import BadLine, PairFiles, open_pairs, read_pairs
from glassformer.errors import UserError, require

_PATH_NAMES = "path file audio wav filename file_name wav_filename recording audio_filepath audio_path source"
PATHS = _PATH_NAMES.split()
TEXTS = ("text", "transcript", "sentence", "transcription", "words", "target")
CLIPS = "clips"  # the folder beside Common Voice's own lists
MOST = 10_000  # characters of a transcript


@dataclass(frozen=True)
class Recording:
    """A file with sound or vectors and what is said in it; lines count from 1, as do the files of a folder."""

    line: int
    path: Path
    text: str


@dataclass(frozen=True)
class RecordingFiles:
    """A manifest, or a folder; made by `open_recordings`."""

    path: Path
    pairs: PairFiles | None  # None: a folder

    @property
    def notes(self) -> tuple[str, ...]:
        return () if self.pairs is None else self.pairs.notes


def open_recordings(path: Path, source: str | None = None, target: str | None = None) -> RecordingFiles:
    """Look at a manifest or folder and say how to read it; `source` and `target` name the columns of path and text."""
    if path.is_dir():
        require(
            next(_sounds(path), None) is not None,
            f"The folder {path} holds no recordings.",
            "Put a .txt with the transcript beside each .wav, .flac, .ogg or .mp3.",
        )
        return RecordingFiles(path, None)
    check_text(path)
    require(
        not is_recording(path.name),
        f"{path} is a recording, but a list of recordings is wanted.",
        "Write a file with a path, a tab and the transcript on each line.",
    )
    if source is None and target is None:
        source, target = _guess_columns(path)
    return RecordingFiles(path, open_pairs([path], source, target))


def holds_recordings(path: Path) -> bool:
    """Whether this is a folder or manifest of recordings, and not data of another kind."""
    if path.is_dir():
        return next(_sounds(path), None) is not None
    if not path.is_file() or is_recording(path.name):
        return False
    try:
        files = open_recordings(path)
        first = [item for item, _ in zip(read_recordings(files), range(20), strict=False)]
    except UserError:
        return False
    named = [item for item in first if isinstance(item, Recording) and is_recording(item.path.name)]
    return 2 * len(named) > len(first)


def read_recordings(files: RecordingFiles) -> Iterator[Recording | BadLine]:
    """Every recording and every bad line, in order; whether the sound is there is not looked at."""
    if files.pairs is None:
        yield from _read_folder(files.path)
        return
    folder = files.path.parent
    for item in read_pairs(files.pairs):
        if isinstance(item, BadLine):
            yield item
            continue
        path, clip = folder / item.source, folder / CLIPS / item.source
        yield Recording(item.line, clip if not is_there(path) and is_there(clip) else path, _one_line(item.target))


def recordings_fingerprint(files: RecordingFiles) -> str:
    """Changes with the list, the transcripts, and the name or size of any recording."""
    digest = hashlib.sha256()
    if files.pairs is not None:
        digest.update(fingerprint([files.path]).encode())
    for item in read_recordings(files):
        if isinstance(item, Recording):
            size = item.path.stat().st_size if is_there(item.path) else -1
            digest.update(f"{item.path.name} {size} {item.text}\n".encode())
    return digest.hexdigest()


def _sounds(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and is_recording(path.name))


def _read_folder(folder: Path) -> Iterator[Recording | BadLine]:
    for number, path in enumerate(_sounds(folder), start=1):
        script = path.with_suffix(".txt")
        try:
            text = _one_line(script.read_text(encoding="utf-8-sig"))
        except FileNotFoundError:
            yield BadLine(number, f"has no transcript: {script.name} is missing")
        except (OSError, UnicodeDecodeError):
            yield BadLine(number, f"has a transcript that is not UTF-8: {script.name}")
        else:
            ok = 0 < len(text) <= MOST
            yield Recording(number, path, text) if ok else BadLine(number, f"has an empty or endless {script.name}")


def _one_line(text: str) -> str:
    """Line breaks and tabs are not spoken."""
    return " ".join(text.split())


def _guess_columns(path: Path) -> tuple[str | None, str | None]:
    """Names or numbers of the columns that hold path and text; nothing where the first two are meant."""
    lines = [line.decode("utf-8", errors="replace") for line in sample_lines(path, 50)]
    kind = kind_of(path, lines)
    if kind == "jsonl":
        first = next((record for record in map(json_object, lines) if record), {})
        return _by_name(list(first)) or (None, None)
    layout = guess_layout(path, None, None)
    n = layout.n_columns
    rows = [[cell.strip() for cell in row] for row in split_rows(kind, lines, layout.delimiter)]
    rows = [row for row in rows if any(row)]
    if rows and (found := _by_name(rows[0])) is not None:
        return found
    rows = [row for row in rows if len(row) == n]
    sounds = [sum(is_recording(row[column]) for row in rows) for column in range(n)]
    column = sounds.index(max(sounds))
    if 2 * max(sounds) < max(1, len(rows)) or (n == 2 and column == 0):
        return None, None
    return str(column + 1), str(n if column != n - 1 else n - 1)


def _by_name(names: list[str]) -> tuple[str, str] | None:
    paths = [name for wanted in PATHS for name in names if name.lower() == wanted]
    texts = [name for wanted in TEXTS for name in names if name.lower() == wanted]
    return (paths[0], texts[0]) if paths and texts else None
