"""Which files a model was saved with: one that was altered, or is of another model, is told of."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from glassformer.errors import require


def checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()[:32]


def checksums(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Of those of the files that are there."""
    return {name: checksum(folder / name) for name in names if (folder / name).exists()}


def check_unaltered(folder: Path, known: Mapping[str, str]) -> None:
    found = checksums(folder, [name for name in known if Path(name).name == name])
    altered = [name for name, value in known.items() if found.get(name) != value]
    require(
        not altered,
        f"{folder} has another {' and '.join(altered)} than it was saved with: altered, damaged or of another model.",
        'Copy the whole folder again. If you changed it yourself, take "checksums" out of settings.json.',
    )
