"""Copies of young weights: at growing steps, within their room, and nothing of a run hangs on them."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.data import files
from glassformer.train import early
from glassformer.train.checkpoint import read_checkpoint
from glassformer.train.early import FOLDER, ROOM, is_due, keep_early, weights_files
from glassformer.train.loop import Trainer
from tests.train.toy import same, toy_trainer, weights


def test_small_models_are_kept_whenever_the_steps_have_doubled() -> None:
    assert [step for step in range(300) if is_due(step, 1000)] == [1, 16, 32, 64, 128, 256]


@given(st.integers(1, 10**9))
def test_all_copies_of_a_run_have_room(n_numbers: int) -> None:
    due = [step for k in range(21) if is_due(step := 1 << k, n_numbers)]
    assert 2 * n_numbers * len(due) <= ROOM
    assert not due or {1, 16} <= set(due)
    assert not any(is_due(step, n_numbers) for step in (0, 3, 17, 48))


def run_to(trainer: Trainer, step: int) -> None:
    """Stopped as by Ctrl-C."""
    whole = trainer._step

    def once() -> tuple[float, int, float]:
        found = whole()
        trainer.stop_requested = trainer.progress.step >= step
        return found

    trainer._step = once  # type: ignore[method-assign]
    trainer.run()


def test_a_run_keeps_them_also_where_it_is_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early, "FIRST", 4)
    for name in ("whole", "parts"):
        trainer = toy_trainer(tmp_path / name)
        if name == "parts":
            run_to(trainer, 7)
            trainer = toy_trainer(tmp_path / name)
            assert trainer.resume()
        trainer.run()
    kept = [sorted(path.name for path in (tmp_path / name / FOLDER).iterdir()) for name in ("whole", "parts")]
    assert kept[0] == kept[1]
    assert [int(name[8:16]) for name in kept[0]][:4] == [1, 4, 8, 16]
    for name in kept[0]:
        assert same(*(read_checkpoint(tmp_path / run / FOLDER / name).tensors for run in ("whole", "parts")))
    found = weights_files(tmp_path / "whole")
    assert list(found) == sorted(found)
    assert {path.parent.name for path in found.values()} == {FOLDER, "checkpoints"}


def test_they_are_the_weights_in_half_precision(tmp_path: Path) -> None:
    trainer = toy_trainer(tmp_path)
    keep_early(tmp_path, 64, trainer.moving)
    keep_early(tmp_path, 65, trainer.moving)
    [(step, path)] = weights_files(tmp_path).items()
    assert step == 64
    for name, tensor in read_checkpoint(path).tensors.items():
        assert tensor.dtype == torch.float16
        torch.testing.assert_close(tensor.float(), weights(trainer)[name], atol=1e-4, rtol=1e-3)
    keep_early(tmp_path, 1, trainer.moving)  # the beginning of another run
    assert list(weights_files(tmp_path)) == [1]


def test_a_full_disk_does_not_stop_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    trainer = toy_trainer(tmp_path)
    monkeypatch.setattr(files.os, "fsync", full)
    keep_early(tmp_path, 16, trainer.moving)
    assert weights_files(tmp_path) == {}
