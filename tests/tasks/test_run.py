"""A model's card names its folder as a reader can use it, and does not tell where it lay."""

from pathlib import Path

import pytest

from glassformer import config
from glassformer.data.files import writing
from glassformer.errors import UserError
from glassformer.tasks.run import OURS, Finished, Recipe, Run, check_folder
from glassformer.train.loop import Validation
from glassformer.train.report import Report
from glassformer.train.settings import TrainSettings


@pytest.mark.parametrize(
    ("out", "title", "command"),
    [
        ("runs/dates", "dates", 'glassformer translate runs/dates "…"'),
        ("{here}/runs/dates", "dates", 'glassformer translate runs/dates "…"'),
        ("../elsewhere/dates", "dates", 'glassformer translate dates "…"'),
        ("{here}/../elsewhere/dates", "dates", 'glassformer translate dates "…"'),
        ("my runs/dates", "dates", "glassformer translate 'my runs/dates' \"…\""),
        (".", "here", 'glassformer translate . "…"'),
    ],
)
def test_the_card_has_a_command_that_works_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str, title: str, command: str
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    folder = Path(out.format(here=here))
    run = Run(folder, False, Report(folder, quiet=True), 0.0)
    run.write_card("A translator.", 'translate MODEL "…"', Finished(Validation(1.0, {}), {"validation": {}}))
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert card.startswith(f"# {title}\n")
    assert f"Use it: `{command}`\n" in card
    assert str(tmp_path) not in card


def test_a_run_that_was_killed_before_its_first_checkpoint_may_begin_again(tmp_path: Path) -> None:
    for name in OURS:
        (tmp_path / name).write_bytes(b"")
    assert (tmp_path / "tensorboard").exists()
    with writing(tmp_path / "tokenizer.json"):  # what lies there now is what a kill would leave
        assert len(list(tmp_path.iterdir())) == len(OURS) + 1
        check_folder(tmp_path, resume=True)
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(UserError, match=r"holds other files, such as letter\.txt"):
        check_folder(tmp_path, resume=True)


def test_what_never_began_is_said_to_begin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An automatic restart with --resume may follow a kill that came before anything was written."""
    for name in (None, ".lock", "data"):
        if name is not None:
            (tmp_path / name).touch()
        check_folder(tmp_path, resume=True)
        Run(tmp_path, True, Report(tmp_path), 0.0)
        assert ("to go on with: one begins." in capsys.readouterr().err.replace("\n", " ")) is (name != "data")


@pytest.mark.parametrize("resume", [False, True])
def test_a_model_without_a_run_is_not_gone_on_with(tmp_path: Path, resume: bool) -> None:
    (tmp_path / "settings.json").write_text("{}")
    with pytest.raises(UserError, match="is a finished model; there is no run to go on with") as refused:
        check_folder(tmp_path, resume)
    assert "--from" in str(refused.value.hint)
    (tmp_path / "checkpoints").mkdir()
    if resume:
        check_folder(tmp_path, resume)
    else:
        with pytest.raises(UserError, match="holds a run already") as refused:
            check_folder(tmp_path, resume)
        assert "--resume" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (Recipe(), r"with another version of Glassformer, which had no train\.clip\."),
        (Recipe(train=TrainSettings(clip=0.5)), r"with train\.clip = None \(now 0\.5\)\."),
        (Recipe(train=TrainSettings(seed=9)), r"with train\.seed = \d \(now 9\)\."),
    ],
)
def test_a_run_begun_before_a_setting_was_there(tmp_path: Path, now: Recipe, said: str) -> None:
    before = config.to_data(Recipe())
    del before["train"]["clip"]
    for name in ("data", "checkpoints"):
        (tmp_path / name).mkdir()
    (tmp_path / "recipe.toml").write_text(config.write_toml(before), encoding="utf-8")
    run = Run(tmp_path, True, Report(tmp_path, quiet=True), 0.0)
    run.prepared("an older one")
    with pytest.raises(UserError, match=said):
        run.is_prepared("a newer one", now)


def test_the_mark_of_other_data_goes_before_its_place_is_taken(tmp_path: Path) -> None:
    run = Run(tmp_path, False, Report(tmp_path, quiet=True), 0.0)
    run.prepared("one")
    assert run.is_prepared("one", Recipe())
    assert not run.is_prepared("another", Recipe())
    assert not run.is_prepared("one", Recipe())
