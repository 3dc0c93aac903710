"""Train a language model: new, from another one, or as narrow detours beside one."""

from pathlib import Path

from glassformer.tasks.complete import COMPLETE, CompleteJob, CompleteRecipe
from glassformer.tasks.text import TextFiles
from glassformer.tasks.train_text import How, Where, train_text


def train_complete(
    files: TextFiles,
    recipe: CompleteRecipe,
    out: Path,
    resume: bool = False,
    device: str = "auto",
    quiet: bool = False,
    tensorboard: bool = False,
) -> bool:
    """Train in the folder `out`; False if the run was stopped before its end and can be taken up."""
    how = How(COMPLETE, CompleteJob, "A language model", "…")
    return train_text(how, files, recipe, Where(out, resume, device, quiet, tensorboard))
