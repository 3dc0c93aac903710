"""Small copies of young weights, for the eye only: by them `look --training` shows how attention formed.

It forms early, while the validated weights that a run keeps are late ones. So after 1, 16, 32, 64 … steps a copy in
half precision is put aside. All of a run's copies have ROOM; of a larger model there are fewer, of a very large one
none. Nothing that the run computes depends on them.
"""

import contextlib
import re
import shutil
from pathlib import Path

from glassformer.errors import UserError
from glassformer.train.checkpoint import write_checkpoint
from glassformer.train.run_files import Moving

FOLDER = "early"
ROOM = 128 * 2**20  # bytes
FIRST, DOUBLINGS = 16, 16  # of steps: up to a million


def is_due(step: int, n_numbers: int) -> bool:
    """Whether a model of so many numbers is to be kept after this step."""
    n_files = ROOM // (2 * max(1, n_numbers))
    if n_files < 3:
        return False
    stride = -(-DOUBLINGS // (n_files - 2))  # doublings from one copy to the next
    doublings = (step // FIRST).bit_length() - 1  # −1 before the first
    return step == 1 or (doublings >= 0 and step == FIRST << doublings and doublings % stride == 0)


def keep_early(run: Path, step: int, moving: Moving) -> None:
    """Put a copy aside if it is due; where it cannot be written, there is none."""
    if step & (step - 1):  # no power of two: nearly always
        return
    if step == 1:  # a run that was killed and begun anew may have left others
        shutil.rmtree(run / FOLDER, ignore_errors=True)
    weights = moving.weights
    if not is_due(step, sum(t.numel() for t in weights.values())):
        return
    with contextlib.suppress(UserError):
        halves = {name: t.detach().half() for name, t in weights.items()}
        write_checkpoint(run / FOLDER / f"weights-{step:08d}.safetensors", halves, {"step": step})


def weights_files(run: Path) -> dict[int, Path]:
    """All weights of a run by their step, early and validated ones."""
    found = {}
    for folder in (FOLDER, "checkpoints"):  # of the same step, the whole precision
        for path in (run / folder).glob("weights-*.safetensors"):
            if match := re.fullmatch(r"weights-(\d{8,})\.safetensors", path.name):
                found[int(match[1])] = path
    return dict(sorted(found.items()))
