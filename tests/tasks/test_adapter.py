"""Adapters: small, learned, and useless without the very model that they belong to."""

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import glassformer
from glassformer import config
from glassformer.cli.main import run as run_command
from glassformer.data.documents import open_documents
from glassformer.errors import UserError
from glassformer.model.lora import LoraSettings
from glassformer.tasks.complete import CompleteRecipe
from glassformer.tasks.model_dir import load_model
from glassformer.tasks.run import Recipe, identity_of
from glassformer.tasks.text import TextFiles
from glassformer.tasks.train_complete import train_complete
from tests.tasks.test_train_complete import recipe_of, trained


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    return trained(folder, tokenizer={"kind": "word"}, dropout=0.0, train={"steps": 100})


@pytest.fixture(scope="module")
def adapter(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("adapter")
    (folder / "more.txt").write_text("So: monday friday.\n" * 60)
    files = TextFiles(open_documents([folder / "more.txt"]), None)
    settings = recipe_of(train={"steps": 60}).train
    recipe = CompleteRecipe(start=str(base), lora=LoraSettings(rank=4), context=32, train=settings)
    assert train_complete(files, recipe, folder / "out", device="cpu", quiet=True)
    return folder / "out"


def test_it_learns_and_the_base_stays(base: Path, adapter: Path) -> None:
    before = load_file(base / "model.safetensors")
    assert glassformer.load(base).complete(["So: monday"], temperature=0, max_tokens=1) == [" tuesday"]
    assert glassformer.load(adapter).complete(["So: monday"], temperature=0, max_tokens=1) == [" friday"]
    assert all(torch.equal(t, before[n]) for n, t in load_file(base / "model.safetensors").items())
    assert not (adapter / "model.safetensors").exists()
    assert (adapter / "adapter.safetensors").stat().st_size < (base / "model.safetensors").stat().st_size / 4


def test_checkpoints_hold_the_detours_only(adapter: Path) -> None:
    newest = max((adapter / "checkpoints").glob("run-*.safetensors"))
    names = [name for name in load_file(newest) if name.startswith("model.")]
    assert names
    assert all(name.endswith((".a", ".b")) for name in names)


def test_a_whole_model_can_be_made_of_it(adapter: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        run_command(
            ["export", str(adapter), "--to", "glassformer", "--precision", "fp32", "--out", str(tmp_path / "whole")]
        )
    assert not ended.value.code
    whole, adapted = load_model(tmp_path / "whole"), load_model(adapter)
    assert not whole.is_adapted
    ids = torch.tensor([[1, 5, 9]])
    assert torch.equal(whole.model(ids), adapted.model(ids))


def test_without_its_model_it_says_so(base: Path, adapter: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(adapter, moved)
    settings = json.loads((moved / "settings.json").read_text())
    settings["adapter"]["base"] = str(tmp_path / "nowhere")
    (moved / "settings.json").write_text(json.dumps(settings))
    with pytest.raises(UserError, match=r"is an adapter of the model .*nowhere, which is not there"):
        load_model(moved)
    other = tmp_path / "other"
    shutil.copytree(base, other)
    data = bytearray((other / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (other / "model.safetensors").write_bytes(bytes(data))
    settings["adapter"]["base"] = str(other)
    (moved / "settings.json").write_text(json.dumps(settings))
    with pytest.raises(UserError, match="whose weights have changed since"):
        load_model(moved)


def test_a_run_goes_on_beside_the_weights_that_it_was_begun_with(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(base, tmp_path / "base")
    (tmp_path / "more.txt").write_text("So: monday friday.\n" * 60)
    files = TextFiles(open_documents([tmp_path / "more.txt"]), None)
    recipe = CompleteRecipe(
        start=str(tmp_path / "base"), lora=LoraSettings(rank=4), context=32, train=recipe_of(train={"steps": 6}).train
    )
    with monkeypatch.context() as patch:
        patch.setattr("glassformer.train.loop.keep_early", lambda *_: signal.raise_signal(signal.SIGINT))
        assert not train_complete(files, recipe, tmp_path / "out", device="cpu", quiet=True)
    weights = tmp_path / "base/model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    settings = tmp_path / "base/settings.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"checksums": {}}))  # on purpose
    with pytest.raises(UserError, match="was begun with other data or other weights to start from"):
        train_complete(files, recipe, tmp_path / "out", resume=True, device="cpu", quiet=True)
    weights.write_bytes(whole)
    assert train_complete(files, recipe, tmp_path / "out", resume=True, device="cpu", quiet=True)
    (weights.parent / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"model\.safetensors is missing"):
        identity_of(recipe, [])


def test_the_weights_of_an_adapter_count_too(adapter: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(adapter, moved)
    before = identity_of(Recipe(start=str(moved)), [])
    assert identity_of(Recipe(start=str(moved)), []) == before
    (moved / "adapter.safetensors").write_bytes(b"other")
    assert identity_of(Recipe(start=str(moved)), []) != before


def test_damaged_adapters_are_refused(adapter: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(adapter, moved)
    (moved / "adapter.safetensors").write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"adapter\.safetensors is damaged"):
        load_model(moved)


def test_lora_needs_a_model_that_is_whole(adapter: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="none is given to start from"):
        config.parse(CompleteRecipe, {"lora": {"rank": 4}})
    (tmp_path / "t.txt").write_text("So: monday friday.\n" * 60)
    files = TextFiles(open_documents([tmp_path / "t.txt"]), None)
    with pytest.raises(UserError, match="is an adapter itself"):
        train_complete(files, CompleteRecipe(start=str(adapter), lora=LoraSettings()), tmp_path / "out", quiet=True)


@pytest.mark.parametrize(
    "change", [lambda d: d["adapter"]["lora"].update(rank=2**20), lambda d: d["model"]["decoder"].update(n_layers=1)]
)
def test_settings_that_do_not_fit_are_refused_before_memory_is_taken(
    adapter: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    folder = shutil.copytree(adapter, tmp_path / "adapter", ignore=shutil.ignore_patterns("checkpoints", "data"))
    settings = json.loads((folder / "settings.json").read_text())
    change(settings)
    (folder / "settings.json").write_text(json.dumps(settings))
    with pytest.raises(UserError, match=r"weights do not fit its settings\.json|first is|differ"):
        load_model(folder)
