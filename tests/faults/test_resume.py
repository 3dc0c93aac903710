"""A run that was stopped anywhere ends like the one that was never stopped; damaged files never spoil one."""

import errno
import functools
import os
import random
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor

from glassformer.data import files
from glassformer.errors import UserError
from glassformer.train.checkpoint import read_checkpoint
from glassformer.train.finish import choose_weights
from glassformer.train.loop import Trainer
from glassformer.train.report import Report, read_metrics
from tests.train.toy import same, toy_job, toy_trainer, weights

Kind = dict[str, Any]
KINDS: dict[str, Kind] = {
    "plain": {},
    "running_mean": {"ema": 0.9, "average_of": "last", "average": 2},
    "accumulated": {"accumulate": 2, "ema": 0.5, "weight_decay": 0.1},
    "paper": {"schedule": "paper", "clip": 0.1, "average": 1, "patience": 9},
}
Unbroken = tuple[list[float], dict[str, Tensor], dict[str, Tensor]]


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def saying(said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Report, "say", lambda _, text: said.append(text))


@functools.cache
def unbroken(kind: str) -> Unbroken:
    """Losses, last weights and chosen weights of a run in one go."""
    with tempfile.TemporaryDirectory() as folder:
        trainer = toy_trainer(Path(folder), **KINDS[kind])
        trainer.run()
        last = weights(trainer)
        choose_weights(trainer)
        return toy_job(trainer).losses, last, weights(trainer)


def stop_after(trainer: Trainer, n_losses: int) -> None:
    def stop(n: int) -> None:
        trainer.stop_requested |= n >= n_losses

    toy_job(trainer).after_loss = stop


def run_part(folder: Path, kind: str, stop: int, resume: bool) -> Trainer:
    trainer = toy_trainer(folder, **KINDS[kind])
    stop_after(trainer, stop)
    assert trainer.resume() is resume
    trainer.run()
    return trainer


def ends_like_unbroken(folder: Path, kind: str) -> None:
    trainer = run_part(folder, kind, 10**9, True)
    assert trainer.progress.finished
    losses, last, chosen = unbroken(kind)
    assert toy_job(trainer).losses == losses[len(losses) - len(toy_job(trainer).losses) :]
    assert same(weights(trainer), last)
    choose_weights(trainer)
    assert same(weights(trainer), chosen)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stops", [[1], [5, 1, 1], [6], [7, 12], [23]])
def test_stopped_and_taken_up(tmp_path: Path, kind: str, stops: list[int]) -> None:
    losses: list[float] = []
    for i, stop in enumerate(stops):
        trainer = run_part(tmp_path, kind, stop, i > 0)
        losses += toy_job(trainer).losses
        assert not trainer.progress.finished
    assert losses == unbroken(kind)[0][: len(losses)]
    ends_like_unbroken(tmp_path, kind)


def test_finished_run_does_nothing(tmp_path: Path) -> None:
    run_part(tmp_path, "plain", 10**9, False)
    before = snapshot(tmp_path)
    trainer = run_part(tmp_path, "plain", 10**9, True)
    assert toy_job(trainer).losses == []
    assert snapshot(tmp_path) == before
    assert same(weights(trainer), unbroken("plain")[1])


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_nothing_to_take_up(tmp_path: Path) -> None:
    assert toy_trainer(tmp_path / "none").resume() is False


def test_metrics_tell_each_step_once(tmp_path: Path) -> None:
    run_part(tmp_path, "plain", 14, False)
    for path in (tmp_path / "checkpoints").glob("run-00000014*"):
        path.unlink()
    run_part(tmp_path, "plain", 10**9, True)
    entries = read_metrics(tmp_path / "metrics.jsonl")
    assert [e["step"] for e in entries if "valid_loss" in e] == [6, 12, 18, 24]
    assert [e["step"] for e in entries] == sorted(e["step"] for e in entries)


@pytest.mark.parametrize("change", [{"identity": "other"}, {"double": True, "identity": "other"}])
def test_other_run_is_refused(tmp_path: Path, change: Kind) -> None:
    run_part(tmp_path, "plain", 8, False)
    before = snapshot(tmp_path)
    with pytest.raises(UserError) as caught:
        toy_trainer(tmp_path, **change).resume()
    assert f"The run in {tmp_path} was begun with other data, model or settings." in caught.value.message
    assert "another --out" in caught.value.hint
    assert snapshot(tmp_path) == before


def test_other_model_of_the_same_name_is_refused(tmp_path: Path) -> None:
    run_part(tmp_path, "plain", 8, False)
    trainer = toy_trainer(tmp_path)
    toy_job(trainer).model.answer = torch.nn.Linear(6, 9)
    with pytest.raises(UserError, match="other data, model or settings"):
        trainer.resume()


def test_two_runs_and_their_weights_are_kept(tmp_path: Path) -> None:
    run_part(tmp_path, "paper", 20, False)
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert [name for name in names if name.startswith("run")] == [f"run-000000{n}.safetensors" for n in (18, 20)]
    needed = {
        f"weights-{step:08d}.safetensors"
        for name in names
        if name.startswith("run")
        for step, _ in read_checkpoint(tmp_path / "checkpoints" / name).state["progress"]["saved"]
    }
    assert {name for name in names if name.startswith("weights")} == needed


def newest(folder: Path, what: str = "run") -> Path:
    return max((folder / "checkpoints").glob(f"{what}-*.safetensors"))


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def text(path: Path) -> None:
    path.write_text("this is no checkpoint")


def foreign(path: Path) -> None:
    save_file({"a": torch.ones(3)}, path)


def weights_in_place(path: Path) -> None:
    shutil.copy(newest(path.parent.parent, "weights"), path)


def folder_in_place(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("damage", [truncate, empty, text, foreign, weights_in_place, folder_in_place, Path.unlink])
@pytest.mark.parametrize("kind", ["plain", "running_mean"])
@pytest.mark.usefixtures("saying")
def test_damaged_newest_run(tmp_path: Path, said: list[str], damage: Callable[[Path], None], kind: str) -> None:
    run_part(tmp_path, kind, 15, False)
    path = newest(tmp_path)
    assert path.name == "run-00000015.safetensors"
    damage(path)
    ends_like_unbroken(tmp_path, kind)
    assert damage is Path.unlink or any(str(path) in line and "Looking for the one before." in line for line in said)


@pytest.mark.parametrize("damage", [truncate, empty, foreign, Path.unlink])
@pytest.mark.usefixtures("saying")
def test_damaged_newest_weights(tmp_path: Path, said: list[str], damage: Callable[[Path], None]) -> None:
    """The run before the one that saved them makes them again."""
    run_part(tmp_path, "plain", 12, False)
    path = newest(tmp_path, "weights")
    assert path.name == "weights-00000012.safetensors"
    damage(path)
    ends_like_unbroken(tmp_path, "plain")
    assert any(str(path) in line for line in said)


@pytest.mark.usefixtures("saying")
def test_damaged_weights_that_no_run_can_make_again(tmp_path: Path, said: list[str]) -> None:
    run_part(tmp_path, "plain", 10**9, False)
    for path in (tmp_path / "checkpoints").glob("weights-*"):
        truncate(path)
    trainer = run_part(tmp_path, "plain", 10**9, True)
    assert said[-1] == "The damaged weights are left out of the mean at the end."
    _, how = choose_weights(trainer)
    assert how == "of step 24"
    assert same(weights(trainer), unbroken("plain")[1])


@pytest.mark.usefixtures("saying")
def test_all_damaged_begins_anew(tmp_path: Path, said: list[str]) -> None:
    run_part(tmp_path, "plain", 15, False)
    for path in (tmp_path / "checkpoints").glob("run-*"):
        truncate(path)
    trainer = run_part(tmp_path, "plain", 10**9, False)
    assert len([line for line in said if "Looking for the one before." in line]) == 2
    assert same(weights(trainer), unbroken("plain")[1])


@pytest.mark.usefixtures("saying")
def test_damaged_later_run_does_not_displace_good_ones(tmp_path: Path) -> None:
    run_part(tmp_path, "plain", 8, False)
    text(tmp_path / "checkpoints" / "run-99999999.safetensors")
    (tmp_path / "checkpoints" / "run-old.safetensors").write_text("not ours")
    run_part(tmp_path, "plain", 1, True)
    runs = sorted(path.name for path in (tmp_path / "checkpoints").glob("run-*"))
    assert runs == ["run-00000008.safetensors", "run-00000009.safetensors", "run-old.safetensors"]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    folder = tmp_path_factory.mktemp("stopped")
    run_part(folder, "running_mean", 15, False)
    return folder, newest(folder).read_bytes()


def refused_or_equal(path: Path, whole: bytes, changed: bytes) -> None:
    """A changed file never passes for another state of the run."""
    path.write_bytes(changed)
    try:
        found = read_checkpoint(path)
    except UserError:
        return
    path.write_bytes(whole)
    expected = read_checkpoint(path)
    assert found.state == expected.state
    assert same(found.tensors, expected.tensors)


@given(data=st.data())
@settings(max_examples=150)
def test_flipped_byte_is_found(stopped: tuple[Path, bytes], data: st.DataObject) -> None:
    folder, whole = stopped
    header = int.from_bytes(whole[:8], "little") + 8
    place = data.draw(st.one_of(st.integers(0, header - 1), st.integers(0, len(whole) - 1)))
    flip = data.draw(st.integers(1, 255))
    changed = whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :]
    refused_or_equal(folder / "flipped", whole, changed)


@given(st.floats(0, 1, exclude_max=True))
def test_truncated_file_is_found(stopped: tuple[Path, bytes], share: float) -> None:
    folder, whole = stopped
    (folder / "cut").write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(UserError, match="is damaged"):
        read_checkpoint(folder / "cut")


@pytest.mark.slow
def test_every_byte_of_the_header_flipped(stopped: tuple[Path, bytes]) -> None:
    folder, whole = stopped
    for place in range(int.from_bytes(whole[:8], "little") + 8):
        for flip in (1, 2, 4, 8, 16, 32, 64, 128, 255):
            changed = whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :]
            refused_or_equal(folder / "flipped", whole, changed)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.usefixtures("saying")
def test_truncated_anywhere_falls_back(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    run_part(tmp_path, "accumulated", chance.randint(14, 40), False)
    os.truncate(newest(tmp_path), chance.randrange(newest(tmp_path).stat().st_size))
    ends_like_unbroken(tmp_path, "accumulated")


@pytest.mark.parametrize("n_writes", [1, 2, 3, 4])
def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_writes: int) -> None:
    """The disk is full at the n-th file after step 8: one sentence, and the run goes on once there is room."""
    run_part(tmp_path, "plain", 8, False)
    left = n_writes
    sync = os.fsync

    def full(handle: int) -> None:
        nonlocal left
        left -= 0 if stat.S_ISDIR(os.fstat(handle).st_mode) else 1
        if left <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", full)
        with pytest.raises(UserError) as caught:
            run_part(tmp_path, "plain", 10**9, True)
    assert "could not be written: No space left on device." in caught.value.message
    assert "Free some space" in caught.value.hint
    assert not list(tmp_path.rglob("*.part"))
    for path in (tmp_path / "checkpoints").iterdir():
        read_checkpoint(path)  # all that is there is whole
    ends_like_unbroken(tmp_path, "plain")


def test_parts_of_a_killed_run_are_swept(tmp_path: Path) -> None:
    run_part(tmp_path, "plain", 8, False)
    part = tmp_path / "checkpoints" / ".run-00000009.safetensors.12345.part"
    part.write_bytes(b"half")
    run_part(tmp_path, "plain", 1, True)
    assert not part.exists()
