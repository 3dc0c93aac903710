"""A model directory comes back as it was saved; a bad one is refused with the file's name and what to do."""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from glassformer.data.tokenizer import Tokenizer, train_tokenizer
from glassformer.errors import UserError
from glassformer.model import EncoderDecoder
from glassformer.tasks.model_dir import Storage, load_model, save_model
from tests.builders import encoder_decoder, random_ids, tokens
from tests.tasks.corpus import pairs

TEXTS = [text for pair in pairs() for text in pair]


def small_tokenizer(size: int = 300, kind: Any = "bpe") -> Tokenizer:
    return train_tokenizer(TEXTS, kind, size)


TOKENIZER = small_tokenizer()
SOURCE = train_tokenizer([source for source, _ in pairs()], "bpe", 280)


def model_for(source: Tokenizer, target: Tokenizer, **changes: Any) -> EncoderDecoder:
    sides = {"source": tokens(vocab_size=source.vocab_size), "target": tokens(vocab_size=target.vocab_size)}
    return encoder_decoder(**(sides | changes))


def saved(folder: Path, storage: Storage = "fp32") -> EncoderDecoder:
    model = model_for(TOKENIZER, TOKENIZER)
    save_model(folder, "translate", model, TOKENIZER, about={"steps": 7}, storage=storage)
    return model


def parameters(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return dict(model.named_parameters())


def test_fp32_comes_back_exactly(tmp_path: Path) -> None:
    model = saved(tmp_path)
    loaded = load_model(tmp_path)
    assert loaded.task == "translate"
    assert loaded.about == {"steps": 7}
    assert loaded.path == tmp_path
    assert loaded.model.settings == model.settings
    assert not loaded.model.training
    assert parameters(loaded.model).keys() == parameters(model).keys()
    for name, p in parameters(loaded.model).items():
        assert torch.equal(p, parameters(model)[name])
        assert p.requires_grad
    assert loaded.tokenizer.to_json() == TOKENIZER.to_json()
    ids = random_ids(2, 6)
    assert isinstance(loaded.model, EncoderDecoder)
    assert torch.equal(loaded.model(ids, ids), model(ids, ids))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.safetensors", "settings.json", "tokenizer.json"]


@pytest.mark.parametrize("storage", ["fp16", "int8"])
def test_compact_storage_is_near_and_small(tmp_path: Path, storage: Storage) -> None:
    model = saved(tmp_path / "compact", storage)
    saved(tmp_path / "whole")
    loaded = load_model(tmp_path / "compact").model
    for name, p in parameters(model).items():
        found = parameters(loaded)[name]
        assert found.dtype == torch.float32
        largest = p.abs().amax(dim=-1, keepdim=True)
        # fp16 has 11 bits; int8 rounds to 1/127 of a row's largest, and leaves vectors as they are.
        bound = p.abs() * 2**-11 + 1e-7 if storage == "fp16" else largest * (0.5001 / 127 if p.dim() == 2 else 0.0)
        assert ((found - p).abs() <= bound).all(), name
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("compact", "whole")]
    assert sizes[0] < sizes[1] * (0.6 if storage == "fp16" else 0.5)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_file_that_was_altered_but_reads_is_told(tmp_path: Path, name: str) -> None:
    saved(tmp_path)
    if name == "tokenizer.json":
        data = json.loads((tmp_path / name).read_text())
        ids = data["model"]["vocab"]
        ids |= dict(zip([*ids][-2:], [ids[token] for token in [*ids][:-3:-1]], strict=True))
        (tmp_path / name).write_text(json.dumps(data))
    else:
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(whole[:-400] + bytes(400))
    with pytest.raises(UserError, match=rf"another {name} than it was saved with.*Copy the whole folder"):
        load_model(tmp_path)
    settings = json.loads((tmp_path / "settings.json").read_text())
    del settings["checksums"]  # as models of before have none
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    assert load_model(tmp_path)


def test_row_of_zeros_in_int8(tmp_path: Path) -> None:
    model = model_for(TOKENIZER, TOKENIZER)
    with torch.no_grad():
        model.source.embedding.weight[3] = 0  # type: ignore[index, union-attr]
    save_model(tmp_path, "translate", model, TOKENIZER, storage="int8")
    assert not parameters(load_model(tmp_path).model)["source.embedding.weight"][3].any()


@pytest.mark.parametrize("storage", ["fp32", "int8"])
def test_tied_weights_stay_tied(tmp_path: Path, storage: Storage) -> None:
    saved(tmp_path, storage)
    model = load_model(tmp_path).model
    assert isinstance(model, EncoderDecoder)
    tables = [model.source.embedding.weight, model.target.embedding.weight, model.head.w.weight]  # type: ignore[union-attr]
    assert tables[0] is tables[1] is tables[2]


def test_separate_tokenizers(tmp_path: Path) -> None:
    model = model_for(SOURCE, TOKENIZER, tie_source_target=False)
    save_model(tmp_path, "translate", model, TOKENIZER, SOURCE)
    loaded = load_model(tmp_path)
    assert loaded.tokenizer.to_json() == TOKENIZER.to_json()
    assert loaded.source_tokenizer.to_json() == SOURCE.to_json()


def test_the_tokenizer_of_the_source_may_not_go_missing(tmp_path: Path) -> None:
    """Where both vocabularies have one size, nothing else would tell."""
    words, other = (train_tokenizer([text], "char", 300) for text in ("日本", "中国"))
    assert words.vocab_size == other.vocab_size
    side = tokens(vocab_size=words.vocab_size)
    save_model(tmp_path, "translate", encoder_decoder(source=side, target=side), words, other)
    assert load_model(tmp_path).source_tokenizer.encode("中") != load_model(tmp_path).tokenizer.encode("中")
    (tmp_path / "source_tokenizer.json").unlink()
    with pytest.raises(UserError, match="source_tokenizer"):
        load_model(tmp_path)


def test_no_tokenizer_is_left_of_an_older_model(tmp_path: Path) -> None:
    words, other = (train_tokenizer([text], "char", 300) for text in ("日本", "中国"))
    side = tokens(vocab_size=words.vocab_size)
    for source in (other, None):
        save_model(tmp_path, "translate", encoder_decoder(source=side, target=side), words, source)
    loaded = load_model(tmp_path)
    assert loaded.source_tokenizer is loaded.tokenizer


def test_saving_over_an_older_model(tmp_path: Path) -> None:
    saved(tmp_path)
    model = model_for(SOURCE, SOURCE)
    save_model(tmp_path, "translate", model, SOURCE)
    assert load_model(tmp_path).tokenizer.vocab_size == SOURCE.vocab_size


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def replace(name: str, content: bytes) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        (folder / name).write_bytes(content)

    return do


def cut(name: str) -> Callable[[Path], None]:
    return lambda folder: os.truncate(folder / name, (folder / name).stat().st_size // 2)


def settings(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        data = json.loads((folder / "settings.json").read_text())
        changed = change(data)
        (folder / "settings.json").write_text(json.dumps(data if changed is None else changed))

    return do


def tensors(change: Callable[[dict[str, torch.Tensor]], Any]) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        data = load_file(folder / "model.safetensors")
        change(data)
        save_file(data, folder / "model.safetensors")

    return do


def rescale(data: dict[str, torch.Tensor], change: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    name = "source.embedding.weight"
    data[f"{name}:int8"], data[f"{name}:scale"] = data.pop(name).to(torch.int8), torch.ones(TOKENIZER.vocab_size, 1)
    change(data)


def nested(depth: int) -> dict[str, Any]:
    return {"a": nested(depth - 1)} if depth else {}


def enlarge(*stacks: dict[str, Any]) -> None:
    for stack in stacks:
        stack.update(d_model=2**24)
        stack["attention"].update(n_heads=2**24, d_k=2**24, d_v=2**24)


WRONG_SHAPE = "does not fit settings.json: 1 wrong weight, the first is source.embedding.weight"
BAD = {
    "no settings": (remove("settings.json"), "is not a finished model: settings.json is missing", "--resume"),
    "no weights": (remove("model.safetensors"), "model.safetensors is missing", "copy the whole folder"),
    "no tokenizer": (remove("tokenizer.json"), "There is no tokenizer", "tokenizer.json"),
    "settings no JSON": (replace("settings.json", b"{"), "settings.json cannot be read", ""),
    "settings binary": (replace("settings.json", b"\xff\xfe\x00"), "settings.json cannot be read", ""),
    "settings of others": (replace("settings.json", b'{"model_type": "marian"}'), "was not written by Glass", "Check"),
    "settings a list": (replace("settings.json", b"[1]"), "was not written by Glassformer", "Check the folder"),
    "later format": (settings(lambda d: d.update(format=2)), "has format 2, but this version reads format 1", "newer"),
    "unknown setting": (settings(lambda d: d["model"].update(heads=3)), "there is no setting heads", ""),
    "weights cut short": (cut("model.safetensors"), "model.safetensors is damaged", "Copy it again"),
    "weights empty": (replace("model.safetensors", b""), "model.safetensors is damaged", "Copy it again"),
    "a pickle": (replace("model.safetensors", pickle.dumps({"a": 1})), "model.safetensors is damaged", "Copy it again"),
    "other shape": (
        tensors(lambda d: d.update({"source.embedding.weight": torch.ones(3, 16)})),
        WRONG_SHAPE,
        "same model",
    ),
    "weight missing": (tensors(lambda d: d.pop("source.embedding.weight")), WRONG_SHAPE, "same model"),
    "weight too many": (tensors(lambda d: d.update(a=torch.ones(1))), "the first is a ((1,) instead of none)", "same"),
    "no scale": (
        tensors(lambda d: rescale(d, lambda d: d.pop("source.embedding.weight:scale"))),
        "lacks the scale",
        "Copy",
    ),
    "settings endless": (replace("settings.json", b'{"a":' * 10**5), "has groups in groups without end", "Check"),
    "settings deep": (settings(lambda d: d["about"].update(a=nested(300))), "has groups in groups without", "Check"),
    "about a list": (settings(lambda d: d.update(about=[])), "about = [], but it must be a group", "Copy"),
    "marks a number": (settings(lambda d: d.update(marks=5)), "marks = 5, but it must be a group of settings", "Copy"),
    "adapter a number": (settings(lambda d: d.update(adapter=5)), "adapter = 5, but it must be a group", "Copy"),
    "task a number": (settings(lambda d: d.update(task=5)), "task = 5, but it must be text", "Copy"),
    "too many layers": (
        settings(lambda d: d["model"]["encoder"].update(n_layers=10**7)),
        "layers, but there are 89 tensors",
        "copy",
    ),
    "too wide": (settings(lambda d: d["model"]["encoder"].update(d_model=10**15 + 1)), "with 1000000000000001", "copy"),
    "too large for memory": (
        settings(lambda d: enlarge(d["model"]["encoder"], d["model"]["decoder"])),
        "no memory could hold",
        "copy",
    ),
    "scale of another shape": (
        tensors(lambda d: rescale(d, lambda d: d.update({"source.embedding.weight:scale": torch.ones(7, 3)}))),
        "has a scale of source.embedding.weight that does not fit: (7, 3) for (300, 16)",
        "Copy",
    ),
    "scale that multiplies": (
        tensors(
            lambda d: d.update(
                {
                    "source.embedding.weight:int8": torch.ones(1, 1, 10**6, dtype=torch.int8),
                    "source.embedding.weight:scale": torch.ones(10**6, 1),
                }
            )
        ),
        "has a scale of source.embedding.weight that does not fit",
        "Copy",
    ),
    "complex numbers": (
        tensors(lambda d: d.update({"source.embedding.weight": d["source.embedding.weight"].to(torch.complex64)})),
        "holds source.embedding.weight as complex64, but weights are real numbers",
        "Copy",
    ),
    "tokenizer no JSON": (replace("tokenizer.json", b"{"), "is not a tokenizer", ""),
    "tokenizer of others": (replace("tokenizer.json", b'{"a": 1}'), "is not a tokenizer", ""),
    "tokenizer too small": (replace("tokenizer.json", SOURCE.to_json().encode()), "knows 280 tokens", "Put back"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_directory(tmp_path: Path, name: str) -> None:
    damage, message, hint = BAD[name]
    saved(tmp_path)
    damage(tmp_path)
    with pytest.raises(UserError) as caught:
        load_model(tmp_path)
    assert message in caught.value.message
    assert str(tmp_path) in caught.value.message
    assert hint in caught.value.hint


def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no folder"):
        load_model(tmp_path / "none")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    folder = tmp_path_factory.mktemp("whole")
    saved(folder)
    return folder, {path.name: path.read_bytes() for path in folder.iterdir()}


@given(data=st.data())
def test_truncated_anywhere_is_a_user_error(whole: tuple[Path, dict[str, bytes]], data: st.DataObject) -> None:
    folder, contents = whole
    name = data.draw(st.sampled_from(sorted(contents)))
    content = contents[name].rstrip()
    n_bytes = data.draw(st.integers(0, len(content) - 1))
    (folder / name).write_bytes(content[:n_bytes])
    try:
        with pytest.raises(UserError):
            load_model(folder)
    finally:
        (folder / name).write_bytes(contents[name])


WRONG_TYPES = [None, 1, -1, "x", [], {}, True, 1e400]


@given(data=st.data())
def test_wild_settings_are_a_user_error_or_load(whole: tuple[Path, dict[str, bytes]], data: st.DataObject) -> None:
    """Any value of settings.json, replaced by something else, is read or refused, never a traceback."""
    folder, contents = whole
    wild = json.loads(contents["settings.json"])
    place = wild
    while True:
        key = data.draw(st.sampled_from(sorted(place)))
        if not isinstance(place[key], dict) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(st.sampled_from(WRONG_TYPES))
    (folder / "settings.json").write_text(json.dumps(wild))
    try:
        load_model(folder)
    except UserError as error:
        assert error.message  # noqa: PT017 (either way is right)
    finally:
        (folder / "settings.json").write_bytes(contents["settings.json"])


def test_a_file_and_an_export_are_called_by_their_names(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_text("a\tb\n")
    with pytest.raises(UserError, match="is a file, not a model directory"):
        load_model(file)
    (tmp_path / "model.bin").write_bytes(b"")
    with pytest.raises(UserError, match="It was exported for CTranslate2"):
        load_model(tmp_path)


def test_loading_does_not_bring_in_torchs_compiler() -> None:
    """It would take as long as all the rest."""
    code = "import sys, glassformer; glassformer.load('digits'); print({'torch._dynamo', 'sympy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
