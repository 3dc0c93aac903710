"""What the guides show exists: the verbs, options and settings of their commands, and the files they link to."""

import re
import shlex
from pathlib import Path

import pytest
import typer.main

from glassformer.cli.main import app
from glassformer.train.settings import FineTuning

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(path for path in DOCS.glob("*.md") if path.name != "log.md")
GUIDES = [page for page in PAGES if page.name != "measured.md"]
COMMANDS = [
    (guide.name, line.partition("  #")[0].rpartition("glassformer ")[2])
    for guide in GUIDES
    for block in re.findall(r"^```\n(.*?)^```", guide.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    for line in block.splitlines()
    if re.match(r"(\$ )?(echo .*\| )?glassformer ", line)
]


def test_commands_are_found() -> None:
    assert {name for name, _ in COMMANDS} == {guide.name for guide in GUIDES}


@pytest.mark.parametrize(("guide", "line"), COMMANDS)
def test_a_command_has_a_verb_and_options_that_exist(guide: str, line: str) -> None:
    words = shlex.split(line.partition(" < ")[0])
    command = typer.main.get_command(app)
    while hasattr(command, "commands"):
        assert words[0] in command.commands, guide
        command = command.commands[words.pop(0)]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in words if word.startswith("--")} <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (DOCS / link).exists()] == []


def test_the_table_of_settings_is_one_of_settings() -> None:
    table = (DOCS / "recipes.md").read_text(encoding="utf-8").partition("| setting |")[2].partition("\n\n")[0]
    names = [name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1] if row else "")]
    assert len(names) > 10
    assert set(names) <= set(FineTuning.__dataclass_fields__)
