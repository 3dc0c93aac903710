"""Batches side by side in processes are batches one after the other, to the bit."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from glassformer.errors import UserError
from glassformer.train import helpers
from glassformer.train.settings import TrainSettings
from tests.train.test_loop import weights
from tests.train.toy import toy_job, toy_trainer

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="helpers are for Linux")


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def run(folder: Path, n_threads: int, **changes: Any) -> Any:
    torch.set_num_threads(n_threads)
    trainer = toy_trainer(folder, **{"steps": 12, "validations": 3, **changes})
    trainer.run()
    return trainer


@pytest.mark.parametrize(("k", "n_threads"), [(2, 2), (3, 3), (3, 2)])
def test_side_by_side_is_one_after_the_other(tmp_path: Path, k: int, n_threads: int) -> None:
    alone = run(tmp_path / "alone", 1, accumulate=k)
    together = run(tmp_path / "together", n_threads, accumulate=k)
    assert torch.get_num_threads() == n_threads  # given back
    for name, tensor in weights(alone).items():
        assert torch.equal(tensor, weights(together)[name]), name
    assert alone.progress.n_tokens == together.progress.n_tokens


def test_several_batches_each_are_summed_in_another_order(tmp_path: Path) -> None:
    alone = run(tmp_path / "alone", 1, accumulate=5)
    together = run(tmp_path / "together", 3, accumulate=5)
    for name, tensor in weights(alone).items():
        torch.testing.assert_close(tensor, weights(together)[name], rtol=1e-4, atol=1e-5)


def test_a_stopped_run_goes_on_to_the_bit(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole", 2, accumulate=2)
    torch.set_num_threads(2)
    broken = toy_trainer(tmp_path / "broken", steps=12, validations=3, accumulate=2)
    toy_job(broken).after_loss = lambda n: setattr(broken, "stop_requested", n == 5)
    broken.run()
    assert not broken.progress.finished
    resumed = toy_trainer(tmp_path / "broken", steps=12, validations=3, accumulate=2)
    assert resumed.resume()
    resumed.run()
    for name, tensor in weights(whole).items():
        assert torch.equal(tensor, weights(resumed)[name]), name


def test_other_seeds_draw_otherwise(tmp_path: Path) -> None:
    one, other = (weights(run(tmp_path / str(seed), 2, accumulate=2, seed=seed)) for seed in (1, 2))
    assert any(not torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(("threads", "accumulate", "expected"), [(1, 4, 1), (2, 1, 1), (2, 4, 2), (3, 3, 3), (8, 3, 1)])
def test_how_many(threads: int, accumulate: int, expected: int) -> None:
    torch.set_num_threads(threads)
    assert helpers.n_processes(torch.nn.Linear(1, 1), accumulate) == expected


@pytest.mark.parametrize(
    ("threads", "tokens", "asked", "expected"),
    [
        (2, 2048, None, (2, 1024)),
        (4, 2048, None, (4, 512)),
        (3, 2048, None, (3, 682)),
        (1, 2048, None, (1, 2048)),
        (8, 2048, None, (1, 2048)),  # too small each
        (2, 1000, None, (1, 1000)),
        (2, 2048, 1, (1, 2048)),  # as was asked for
        (2, 2048, 3, (3, 2048)),
    ],
)
def test_a_batch_is_cut_for_the_cores(
    threads: int, tokens: int, asked: int | None, expected: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_num_threads(threads)
    settings = TrainSettings(batch_tokens=tokens, accumulate=asked)
    cut = helpers.for_each_core(settings, torch.device("cpu"))
    assert (cut.n_batches, cut.batch_tokens) == expected
    assert helpers.for_each_core(settings, torch.device("cuda")).batch_tokens == tokens
    monkeypatch.setattr(sys, "platform", "darwin")
    assert helpers.for_each_core(settings, torch.device("cpu")).batch_tokens == tokens


def test_no_part_is_smaller_than_a_row() -> None:
    torch.set_num_threads(2)
    settings = TrainSettings(batch_tokens=4096)
    assert helpers.for_each_core(settings, torch.device("cpu"), least=2048).n_batches == 2
    assert helpers.for_each_core(settings, torch.device("cpu"), least=2049).n_batches == 1


def test_what_a_helper_fails_at_is_said(tmp_path: Path) -> None:
    torch.set_num_threads(2)
    trainer, here = toy_trainer(tmp_path, steps=4, accumulate=2), os.getpid()
    load = toy_job(trainer).load

    def failing(planned: Any) -> Any:
        if os.getpid() != here:
            raise ValueError("no such page")
        return load(planned)

    toy_job(trainer).load = failing  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="no such page"):
        trainer.run()
    assert trainer.helpers.helpers == []


def test_a_helper_that_is_killed_is_missed(tmp_path: Path) -> None:
    torch.set_num_threads(2)
    trainer, here = toy_trainer(tmp_path, steps=4, accumulate=2), os.getpid()
    load = toy_job(trainer).load

    def killing(planned: Any) -> Any:
        if os.getpid() == here:
            os.kill(trainer.helpers.helpers[0].pid, signal.SIGKILL)
        return load(planned)

    toy_job(trainer).load = killing  # type: ignore[method-assign]
    with pytest.raises(UserError, match="is gone"):
        trainer.run()


def test_helpers_end_with_the_run(tmp_path: Path) -> None:
    torch.set_num_threads(3)
    trainer, here = toy_trainer(tmp_path, steps=2, accumulate=3), os.getpid()
    pids: set[int] = set()

    def note(_: int) -> None:
        if os.getpid() == here:
            pids.update(helper.pid for helper in trainer.helpers.helpers)

    toy_job(trainer).after_loss = note
    trainer.run()
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
