"""Train an encoder to fill blanks, the start for labels on little text."""

from pathlib import Path

from glassformer.tasks.fill import FILL, FillJob, FillRecipe
from glassformer.tasks.text import TextFiles
from glassformer.tasks.train_text import How, Where, train_text


def train_fill(
    files: TextFiles,
    recipe: FillRecipe,
    out: Path,
    resume: bool = False,
    device: str = "auto",
    quiet: bool = False,
    tensorboard: bool = False,
) -> bool:
    """Train in the folder `out`; False if the run was stopped before its end and can be taken up."""
    how = How(FILL, FillJob, "An encoder for blanks", "… ___ …")
    return train_text(how, files, recipe, Where(out, resume, device, quiet, tensorboard))
