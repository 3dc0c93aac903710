"""A model's card names its folder as a reader can use it, and does not tell where it lay."""

from pathlib import Path

import pytest

from glassformer.tasks.run import Finished, Run
from glassformer.train.loop import Validation
from glassformer.train.report import Report


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
