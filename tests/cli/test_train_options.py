"""Flags, recipe files and --set become one recipe."""

from pathlib import Path

import pytest

from glassformer.cli.train_options import Options
from glassformer.tasks.complete import CompleteRecipe


@pytest.mark.parametrize("name", ["2024", "1e3", "true", "[a]", 'say "so"', "back\\slash", "a = b", "été", "none"])
def test_names_may_look_like_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).mkdir()
    recipe = Options(out=Path("out"), tokenizer=name).read_recipe(CompleteRecipe, start=name)
    for given in (recipe.start, recipe.tokenizer.kind):
        assert given is not None
        assert Path(given).samefile(name)


def test_each_outdoes_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text('context = 10\n[train]\nsteps = 1\nseed = 5\n[tokenizer]\nkind = "bpe"\nsize = 777\n')
    options = Options(out=Path("out"), steps=2, tokenizer="char", recipe=path, changes=["train.steps=3", "context=30"])
    recipe = options.read_recipe(CompleteRecipe, context=20)
    assert (recipe.train.steps, recipe.train.seed, recipe.context) == (3, 5, 30)
    assert (recipe.tokenizer.kind, recipe.tokenizer.size) == ("char", 777)
