"""Encoders under onnxruntime: the numbers are those of torch, for any number of texts of any length."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import tokenizers
import torch

from glassformer.errors import UserError
from glassformer.exchange.importing import import_model
from glassformer.exchange.onnx import write_onnx
from glassformer.model import build
from glassformer.model.settings import (
    ClassHeadSettings,
    EncoderOnlySettings,
    LearnedSettings,
    RegressionHeadSettings,
    VectorsSettings,
)
from glassformer.tasks.embedder import Embedder
from glassformer.tasks.model_dir import LoadedModel, load_model
from tests.cli.test_main import call
from tests.exchange.foreign_encoders import add_sentences, bare, save_bert, save_vit, vit_judge
from tests.exchange.foreign_models import SENTENCES
from tests.tasks.test_embedder import ROTARY, TOKENS, WORDS, loaded, stack

OWN = {
    "text, waves": EncoderOnlySettings(source=TOKENS, encoder=stack(), head=ClassHeadSettings(n_classes=3)),
    "text, rotary": EncoderOnlySettings(source=TOKENS, encoder=stack(attention=ROTARY)),
    "vectors": EncoderOnlySettings(
        source=VectorsSettings(n_features=5, positions=LearnedSettings(max_len=30)),
        encoder=stack(),
        head=RegressionHeadSettings(pooling="last"),
    ),
}


def own(name: str) -> LoadedModel:
    torch.manual_seed(2)
    words = WORDS if name.startswith("text") else None
    return LoadedModel(Path(name), "classify", build(OWN[name]).eval(), words, words, {"max_tokens": 25})


@pytest.mark.slow  # torch.export takes some seconds for each
@pytest.mark.parametrize("name", OWN)
def test_our_own_encoders(name: str, tmp_path: Path) -> None:
    one = own(name)
    report = write_onnx(one, tmp_path / "out")
    assert report == json.loads((tmp_path / "out" / "export.json").read_text())
    session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx")
    assert [i.name for i in session.get_inputs()] == report["inputs"]
    for b, n in ((4, 3), (1, 25), (6, 1)):
        keep = torch.arange(n) < torch.randint(1, n + 1, (b, 1))
        given = torch.randint(3, 290, (b, n)) if name.startswith("text") else torch.randn(b, n, 5)
        found = session.run(None, dict(zip(report["inputs"], (given.numpy(), keep.long().numpy()), strict=True)))
        with torch.no_grad():
            states, wanted = one.model.states(given, keep).x, one.model(given, keep)
        np.testing.assert_allclose(found[0][keep.numpy()], states[keep].numpy(), atol=1e-5)
        if wanted.dim() == 3:
            found[1], wanted = found[1][keep.numpy()], wanted[keep]
        np.testing.assert_allclose(found[1], wanted.numpy(), atol=1e-5)


def test_an_imported_sentence_model_by_its_own_tokenizer(tmp_path: Path) -> None:
    """The recipe of the card gives the vectors that `embed` gives."""
    folder = add_sentences(save_bert(bare(), tmp_path / "theirs"), {"pooling_mode_mean_tokens": True}, True)
    import_model(folder, tmp_path / "ours")
    one = load_model(tmp_path / "ours")
    report = write_onnx(one, tmp_path / "out")
    assert report["outputs"] == ["last_hidden_state", "sentence_embedding"]
    words = tokenizers.Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json"))
    words.enable_truncation(report["max_tokens"])
    words.enable_padding()
    rows = words.encode_batch(SENTENCES)
    given = {
        "input_ids": [r.ids for r in rows],
        "attention_mask": [r.attention_mask for r in rows],
        "token_type_ids": [r.type_ids for r in rows],
    }
    session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx")
    found = session.run(None, {name: np.array(values) for name, values in given.items()})[1]
    np.testing.assert_allclose(found, Embedder(one).embed(SENTENCES), atol=1e-5)


@pytest.mark.slow
def test_the_card_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import_model(save_vit(vit_judge(), tmp_path / "theirs"), tmp_path / "ours")
    capsys.readouterr()
    code, out, err = call(capsys, "export", str(tmp_path / "ours"), "--to", "onnx", "--out", str(tmp_path / "out"))
    assert (code, out) == (0, "")
    assert "hidden states of 3 x 10 against onnxruntime" in err
    monkeypatch.chdir(tmp_path / "out")
    code_of_card = (tmp_path / "out" / "README.md").read_text().split("```")[1].removeprefix("python\n")
    exec(code_of_card, {})
    assert json.loads((tmp_path / "out" / "export.json").read_text())["labels"]["names"] == ["cat", "dog"]


def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="Export an encoder"):
        write_onnx(loaded("decoder"), tmp_path / "out")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # as if it were not there
    with pytest.raises(UserError, match="the package onnxruntime is needed, which is not installed") as caught:
        write_onnx(own("vectors"), tmp_path / "out")
    assert "pip install 'glassformer[onnx]'" in caught.value.hint
    broken: Any = tmp_path / "onnxruntime.py"
    broken.write_text("raise RuntimeError('wrong version')")
    monkeypatch.delitem(sys.modules, "onnxruntime")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match="onnxruntime is needed, which fails: wrong version"):
        write_onnx(own("vectors"), tmp_path / "out")
    assert not (tmp_path / "out").exists()
