"""What the README says is so: its files exist, its verbs exist, its Python runs."""

import re
from pathlib import Path

import pytest
import typer

from glassformer.cli.main import app

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_it_is_short() -> None:
    assert README.count("\n") < 250


def test_the_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert code is not None
    names: dict[str, object] = {}
    exec(code.group(1), names)
    assert capsys.readouterr().out.strip() == "['Wo ist der Bahnhof?']"
    assert tuple(names["scores"].shape) == (1, 2, 8000)  # type: ignore[attr-defined]


def test_every_verb_is_in_the_table_and_every_row_is_a_verb() -> None:
    rows = set(re.findall(r"^\| `(\w+)", README, re.MULTILINE))
    assert rows == set(typer.main.get_group(app).commands)


@pytest.mark.parametrize("name", re.findall(r"\| `([a-z_]+/[a-z_]+\.py)`", README))
def test_a_place_that_is_named_is_there(name: str) -> None:
    assert (ROOT / "src" / "glassformer" / name).exists()


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", README))
def test_a_link_leads_somewhere(link: str) -> None:
    assert (ROOT / link).exists()


@pytest.mark.parametrize("target", ["demo", "test", "check", "slow", "bench"])
def test_make_has_the_targets(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


def test_ci_runs_what_the_readme_says_and_nothing_hidden() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("make")] == ["make check", "make test"]
