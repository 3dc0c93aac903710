"""Proofs on this machine that a model gives the same numbers and answers by every way to them."""

from pathlib import Path

from glassformer.exchange.proof import Check
from glassformer.tasks.built_in import find_model
from glassformer.tasks.model_dir import load_model
from glassformer.verify.answers import check_answers
from glassformer.verify.passes import check_passes

__all__ = ["Check", "verify"]


def verify(model: str | Path) -> list[Check]:
    """All that can be checked of a model directory, or of a built-in model."""
    loaded = load_model(find_model(model))
    checks = check_passes(loaded.model)
    # Weights that are no numbers have no answers to compare.
    return [*checks, *check_answers(loaded)] if checks[0].passed else checks
