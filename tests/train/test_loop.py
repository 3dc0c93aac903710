"""The loop does what its settings say: adding up batches, planning by time, stopping early, keeping the best."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from glassformer.errors import UserError
from glassformer.train import loop, plan
from glassformer.train.average import mean_of
from glassformer.train.checkpoint import read_checkpoint
from glassformer.train.finish import choose_weights, draw_losses
from glassformer.train.helpers import Helpers
from glassformer.train.loop import Trainer, Validation
from glassformer.train.report import Report, read_metrics
from glassformer.train.run_files import Progress
from glassformer.train.settings import VALIDATIONS, TrainSettings
from tests.train.toy import N_BATCHES, same, toy_job, toy_trainer, weights


class FakeClock:
    """Time that passes only when work is done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        for module in (loop, plan):
            monkeypatch.setattr(module.time, "monotonic", lambda: self.now)

    def charge(self, trainer: Trainer, a_batch: float, a_validation: float) -> None:
        job = toy_job(trainer)
        validate = job.validate

        def slow_validate() -> Validation:
            self.now += a_validation
            return validate()

        def slow_loss(_: int) -> None:
            self.now += a_batch

        job.after_loss, job.validate = slow_loss, slow_validate  # type: ignore[method-assign]


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("clip", [0.0, 0.05])
def test_accumulated_batches_equal_one_large_batch(tmp_path: Path, k: int, clip: float) -> None:
    changes: dict[str, Any] = {"double": True, "steps": 10, "validations": 1, "clip": clip}
    parts = toy_trainer(tmp_path / "parts", accumulate=k, **changes)
    whole = toy_trainer(tmp_path / "whole", **changes)
    for trainer in (parts, whole):
        toy_job(trainer).model.dropout.p = 0.0  # type: ignore[union-attr, assignment]
    job, stream = toy_job(whole), itertools.chain.from_iterable(map(toy_job(parts).plan_epoch, itertools.count()))
    small = toy_job(parts).load

    def joined(_: object) -> Any:
        batches = [small(next(stream)) for _ in range(k)]
        assert len({len(ids) for ids, _ in batches}) > 1 or k == 2  # unequal, or the test would show little
        return tuple(torch.cat(side) for side in zip(*batches, strict=True))

    job.load = joined  # type: ignore[method-assign]
    parts.run()
    whole.run()
    for name, tensor in weights(parts).items():
        torch.testing.assert_close(tensor, weights(whole)[name], rtol=1e-12, atol=1e-12)


def test_learns(tmp_path: Path) -> None:
    trainer = toy_trainer(tmp_path, steps=150)
    before = trainer.validated(None).score
    trainer.run()
    assert trainer.validated(None).score > before / 4


def test_learns_with_bf16_products(tmp_path: Path) -> None:
    trainer = toy_trainer(tmp_path, steps=150, precision="bf16", minutes=0.05)
    before = trainer.validated(None).score
    trainer.run()
    assert trainer.validated(None).score > before
    assert all(p.dtype == torch.float32 for p in trainer.job.model.parameters())


@pytest.mark.parametrize(("minutes", "filled", "validations"), [(1.0, 0.75, 2), (5.0, 0.9, 4)])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_minutes_are_filled_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minutes: float, filled: float, validations: int, accumulate: int
) -> None:
    clock = FakeClock(monkeypatch)
    trainer = toy_trainer(tmp_path, minutes=minutes, accumulate=accumulate, steps=None)
    clock.charge(trainer, 1.0, 2.0)
    progress = trainer.run()
    choose_weights(trainer)
    assert filled * minutes * 60 <= clock.now <= minutes * 60  # what is left was kept for the ending
    assert progress.finished
    assert progress.step == progress.n_steps  # so the schedule ended too
    assert validations <= len([e for e in read_metrics(tmp_path / "metrics.jsonl") if "valid_loss" in e]) <= 7


def test_steps_and_minutes_end_with_what_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(monkeypatch)
    trainer = toy_trainer(tmp_path, minutes=5.0, steps=4)
    clock.charge(trainer, 1.0, 2.0)
    assert trainer.run().step == 4
    assert clock.now < 60


def test_slow_validation_takes_a_tenth_of_the_time_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(monkeypatch)
    trainer = toy_trainer(tmp_path, minutes=10.0, steps=None, validations=20)
    clock.charge(trainer, 0.5, 10.0)
    progress = trainer.run()
    assert progress.validating <= 0.12 * clock.now + 10
    assert progress.step * 0.5 >= 0.7 * 600


def test_minutes_follow_a_machine_that_slows_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(monkeypatch)
    trainer = toy_trainer(tmp_path, minutes=5.0, validations=10, steps=None)
    clock.charge(trainer, 0.5, 1.0)
    quick = toy_job(trainer).after_loss

    def slower(n: int) -> None:
        quick(n)
        clock.now += 0.75 if clock.now > 60 else 0.0

    toy_job(trainer).after_loss = slower
    trainer.run()
    assert 240 <= clock.now <= 320


def test_preparation_is_not_taken_for_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(monkeypatch)
    trainer = toy_trainer(tmp_path, minutes=5.0, steps=None)
    clock.charge(trainer, 0.5, 0.0)
    clock.now = trainer.progress.seconds = 30.0
    planned: list[int] = []
    monkeypatch.setattr(trainer.report, "validation", lambda p, found, lr: planned.append(p.n_steps))
    trainer.run()
    assert len(planned) > 3
    assert max(planned) <= 1.06 * min(planned)  # the first plan can only guess the optimizer's share


def test_time_left_leaves_preparation_out(tmp_path: Path) -> None:
    report = Report(tmp_path, quiet=True)
    report.recent = [(0.0, 1.0, 1)]
    described = report._describe(Progress(step=10, n_steps=100, seconds=50.0, preparing=40.0), 0.1)
    assert described.endswith("1:30 left")  # a second a step


@pytest.mark.parametrize(
    ("steps", "validations", "wanted"),
    [
        (20, VALIDATIONS, [5, 10, 15, 20]),  # not at every step, where nothing was asked for
        (3, VALIDATIONS, [3]),
        (90, VALIDATIONS, list(range(6, 91, 6))),
        (20, 10, list(range(2, 21, 2))),
        (4, 4, [1, 2, 3, 4]),
        (7, 4, [2, 4, 6, 7]),
    ],
)
def test_validations_are_spread_over_the_steps(tmp_path: Path, steps: int, validations: int, wanted: list[int]) -> None:
    toy_trainer(tmp_path, steps=steps, validations=validations).run()
    assert [e["step"] for e in read_metrics(tmp_path / "metrics.jsonl") if "valid_loss" in e] == wanted


def test_too_few_minutes_still_make_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(monkeypatch)
    trainer = toy_trainer(tmp_path, minutes=0.001)
    clock.charge(trainer, 0.5, 2.0)
    assert trainer.run().finished
    assert trainer.progress.step == 1


def test_measuring_changes_nothing(tmp_path: Path) -> None:
    trainer = toy_trainer(tmp_path)
    before, state = weights(trainer), torch.get_rng_state()
    assert plan.measure_step(trainer.job, trainer.settings, Helpers(trainer.job, trainer.settings)) > 0
    assert same(weights(trainer), before)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(p.grad is None for p in trainer.job.model.parameters())


def test_patience_ends_the_run(tmp_path: Path) -> None:
    trainer = toy_trainer(tmp_path, [1, 3, 2, 2.5, 3, 9], steps=60, validations=10, patience=3)
    progress = trainer.run()
    assert progress.finished
    assert progress.step == 30  # 3 at the second validation, nothing above it in the three after that


def test_without_patience_it_goes_on(tmp_path: Path) -> None:
    assert toy_trainer(tmp_path, [9.0, *range(8)], steps=60, validations=6).run().step == 60


SCORES = [5.0, 9.0, 1.0, 7.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("average_of", "average", "kept", "members"),
    [("best", 3, [4, 8, 16], [4, 8, 16]), ("last", 3, [8, 16, 20, 24], [16, 20, 24]), ("best", 1, [8], [8])],
)
def test_weights_kept_and_averaged(
    tmp_path: Path, average_of: str, average: int, kept: list[int], members: list[int]
) -> None:
    scores = [*SCORES, 100.0]  # the last is the mean's
    trainer = toy_trainer(tmp_path, scores, validations=6, average=average, average_of=average_of)
    trainer.run()
    assert [step for step, _ in trainer.progress.saved] == kept
    models = [read_checkpoint(trainer.files.weights_file(step)).tensors for step in members]
    _, how = choose_weights(trainer)
    assert same(weights(trainer), mean_of(models))
    steps = ", ".join(map(str, members))
    assert how == (f"the mean of steps {steps}" if len(members) > 1 else f"of step {steps}")


@pytest.mark.parametrize("average_of", ["best", "last"])
def test_mean_that_is_worse_is_not_taken(tmp_path: Path, average_of: str) -> None:
    trainer = toy_trainer(tmp_path, [*SCORES, 8.9, 9.0], validations=6, average=3, average_of=average_of)
    trainer.run()
    found, how = choose_weights(trainer)
    assert (found.score, how) == (9.0, "of step 8")
    assert same(weights(trainer), read_checkpoint(trainer.files.weights_file(8)).tensors)


@pytest.mark.parametrize(("mean_loss", "taken"), [(0.9, True), (1.1, False)])
def test_mean_close_to_the_luckiest_wins_by_its_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mean_loss: float, taken: bool
) -> None:
    trainer = toy_trainer(tmp_path, SCORES, validations=6, average=3)
    trainer.run()
    answers = [Validation(8.99, {"valid_loss": mean_loss}), *[Validation(9.0, {"valid_loss": 1.0})] * 2]
    monkeypatch.setattr(trainer, "validated", lambda _: answers.pop(0))
    _, how = choose_weights(trainer)
    assert how == ("the mean of steps 4, 8, 16" if taken else "of step 8")
    members = [read_checkpoint(trainer.files.weights_file(step)).tensors for step in ([4, 8, 16] if taken else [8])]
    assert same(weights(trainer), mean_of(members))


@pytest.mark.parametrize(
    ("mean", "best", "taken"),
    [
        ({"valid_loss": 4.21}, {"valid_loss": 4.0}, False),
        ({"valid_loss": 3.9}, {"valid_loss": 4.0}, True),
        ({}, {}, True),  # nothing tells them apart: a mean is the less lucky
    ],
)
def test_of_equal_scores_the_loss_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mean: dict[str, float], best: dict[str, float], taken: bool
) -> None:
    trainer = toy_trainer(tmp_path, [0.0] * 6, validations=6, average=3)
    trainer.run()
    answers = [Validation(0.0, mean), *[Validation(0.0, best)] * 2]
    monkeypatch.setattr(trainer, "validated", lambda _: answers.pop(0))
    found, how = choose_weights(trainer)
    assert (found.metrics, how.startswith("the mean")) == (mean if taken else best, taken)


@pytest.mark.parametrize("score", [8.99, 9.0])
def test_without_a_loss_a_mean_must_not_score_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, score: float
) -> None:
    trainer = toy_trainer(tmp_path, SCORES, validations=6, average=3)
    trainer.run()
    answers = [Validation(score, {}), *[Validation(9.0, {})] * 2]
    monkeypatch.setattr(trainer, "validated", lambda _: answers.pop(0))
    assert choose_weights(trainer)[1].startswith("the mean") is (score == 9.0)


@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_validation_leaves_the_training_weights(tmp_path: Path, ema: float) -> None:
    often = toy_trainer(tmp_path / "often", ema=ema, validations=24)
    often.run()
    seldom = toy_trainer(tmp_path / "seldom", ema=ema, validations=1)
    seldom.run()
    assert same(weights(often), weights(seldom))
    assert toy_job(often).losses == toy_job(seldom).losses


def test_weights_come_back_when_validation_fails(tmp_path: Path) -> None:
    trainer = toy_trainer(tmp_path)
    before = weights(trainer)

    def broken() -> Validation:
        raise RuntimeError("validation")

    toy_job(trainer).validate = broken  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="validation"):
        trainer.validated({name: t + 1 for name, t in before.items()})
    assert same(weights(trainer), before)


def test_running_mean_is_what_is_validated_and_kept(tmp_path: Path) -> None:
    trainer = toy_trainer(tmp_path, ema=0.9, validations=1)
    trainer.run()
    assert trainer.moving.mean is not None
    kept = read_checkpoint(trainer.files.weights_file(24)).tensors
    assert same(kept, trainer.moving.mean.tensors)
    assert not same(kept, weights(trainer))


@pytest.mark.parametrize("step", [1, 13])
def test_loss_that_is_no_number_is_said(tmp_path: Path, step: int) -> None:
    trainer = toy_trainer(tmp_path)

    def spoil(n: int) -> None:
        if n == step:
            toy_job(trainer).n_tokens = lambda _: float("nan")  # type: ignore[method-assign, assignment, return-value]

    toy_job(trainer).after_loss = spoil
    with pytest.raises(UserError) as caught:
        trainer.run()
    assert f"The loss is nan at step {step + 1}: training has lost its way." in caught.value.message
    assert "--set train.lr=0.007" in caught.value.hint
    assert "another --out" in caught.value.hint  # the same run refuses another learning rate


def test_gradient_that_is_no_number_spoils_no_weights(tmp_path: Path) -> None:
    trainer = toy_trainer(tmp_path)
    before = weights(trainer)
    trainer.job.model.answer.weight.register_hook(lambda g: g * float("inf"))  # type: ignore[union-attr, operator]
    with pytest.raises(UserError, match=r"The gradient is (nan|inf) at step 1"):
        trainer.run()
    assert same(weights(trainer), before)


def test_metrics(tmp_path: Path) -> None:
    trainer = toy_trainer(tmp_path)
    trainer.run()
    entries = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    training, validation = ([e for e in entries if key in e] for key in ("loss", "valid_loss"))
    assert [e["step"] for e in training] == [e["step"] for e in validation] == [6, 12, 18, 24]
    assert set(training[0]) == {"step", "epoch", "seconds", "loss", "lr", "gradient_norm", "tokens_per_second"}
    assert all(e["gradient_norm"] > 0 for e in training)
    assert set(validation[0]) == {"step", "epoch", "seconds", "valid_loss", "samples"}
    assert [e["epoch"] for e in validation] == [0, 1, 2, 3]
    losses, sizes = toy_job(trainer).losses, [3, 4, 5, 6, 7]
    n_tokens = sum(sizes[p % 5] for p in toy_job(trainer).plan_epoch(0)[:6])
    assert training[0]["loss"] == pytest.approx(sum(losses[:6]) / n_tokens)
    draw_losses(tmp_path / "metrics.jsonl", tmp_path / "losses.png")
    assert (tmp_path / "losses.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_metrics_of_lost_steps_and_cut_lines_go(tmp_path: Path) -> None:
    lines = ['{"step": 3, "loss": 1.0}', '{"step": 9, "loss": 2.0}', "[]", '{"step": 4, "lo']
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines))
    report = Report(tmp_path, quiet=True)
    report.begin(Progress(step=3))
    report.log({"step": 4, "loss": 3.0})
    assert [e["step"] for e in read_metrics(tmp_path / "metrics.jsonl")] == [3, 4]
    assert (tmp_path / "metrics.jsonl").read_text().count("\n") == 2


def test_picture_of_nothing(tmp_path: Path) -> None:
    draw_losses(tmp_path / "metrics.jsonl", tmp_path / "losses.png")
    assert (tmp_path / "losses.png").exists()


def test_report_outlives_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = Report(tmp_path / "run")
    (tmp_path / "run").write_text("a file in its place")
    report.log({"step": 1})
    report.log({"step": 2})
    assert capsys.readouterr().err.count("could not be written") == 1


def test_folder_that_vanishes_is_made_again(tmp_path: Path) -> None:
    report = Report(tmp_path / "run", quiet=True)
    report.log({"step": 1})
    (tmp_path / "run" / "metrics.jsonl").unlink()
    (tmp_path / "run").rmdir()
    report.log({"step": 2})
    assert read_metrics(tmp_path / "run" / "metrics.jsonl") == [{"step": 2}]


def test_long_and_wild_samples_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample = "a\x1b[2J\nb " + "ü" * 500
    Report(tmp_path).validation(Progress(step=1), Validation(0, {"bleu": 1.0}, [sample]), 0.1)
    shown = capsys.readouterr().err.splitlines()[-1]
    assert len(shown) == 120
    assert shown.startswith("    a [2J b üü")
    assert shown.endswith("…")
    assert read_metrics(tmp_path / "metrics.jsonl")[-1]["samples"] == [sample]


def test_dropout_grows_with_the_epochs(tmp_path: Path) -> None:
    trainer = toy_trainer(tmp_path, dropout_epochs=3, steps=4 * N_BATCHES)
    dropout: Any = toy_job(trainer).model.dropout
    seen: dict[int, set[float]] = {}

    def look(_: int) -> None:
        seen.setdefault(trainer.progress.epoch, set()).add(round(dropout.strength, 6))

    toy_job(trainer).after_loss = look
    trainer.run()
    assert seen == {0: {0.333333}, 1: {0.666667}, 2: {1.0}, 3: {1.0}}


@pytest.mark.parametrize(("used", "step", "finished"), [(550.0, 40, True), (580.0, 40, True), (0.0, 0, False)])
def test_no_step_is_planned_when_no_time_is_left(used: float, step: int, finished: bool) -> None:
    """Ten minutes, validations of fifteen seconds; only the first step is made whatever it takes."""
    settings = TrainSettings(minutes=10.0 if step else 0.01)
    progress = Progress(step=step, seconds=used)
    plan.plan_steps(progress, settings, 1.0, 15.0)
    assert (progress.n_steps == step) == finished
    assert progress.n_steps <= max(step, 1)


def test_a_run_ends_with_the_validation_after_which_no_time_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock(monkeypatch)
    trainer = toy_trainer(tmp_path, minutes=10.0, steps=None)
    clock.charge(trainer, 1.0, 15.0)
    job, p = toy_job(trainer), trainer.progress
    slow = job.after_loss

    def late(n: int) -> None:
        slow(n)
        if p.step + 1 == p.next_validation:  # the machine slept
            clock.now = 535.0

    job.after_loss = late
    trainer.run()
    assert p.finished
    assert p.seconds == 550
    assert [e["step"] for e in read_metrics(tmp_path / "metrics.jsonl") if "valid_loss" in e] == [p.step]
    again = toy_trainer(tmp_path, minutes=10.0, steps=None)
    assert again.resume()
    assert again.run().step == p.step == p.n_steps
    choose_weights(trainer)
    assert clock.now <= 600
