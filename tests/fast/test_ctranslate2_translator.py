"""A translator for CTranslate2: its card's own lines give our answer, and a folder that is wrong is never finished."""

import json
import re
import runpy
from pathlib import Path

import ctranslate2
import pytest
import torch

from glassformer.cli.main import run
from glassformer.data.tokenizer import Tokenizer, train_tokenizer
from glassformer.decode.options import DecodeOptions
from glassformer.errors import UserError
from glassformer.fast import ctranslate2_translator
from glassformer.fast.ctranslate2_translator import write_ctranslate2_translator
from glassformer.tasks.backend import Request, TorchBackend
from glassformer.tasks.model_dir import LoadedModel, load_model, save_model
from tests.builders import encoder_decoder, tokens
from tests.fast.rounded import has_vnni

TEXTS = ["Where is the station?", "The train is late.", "A station is where the train is."]


def saved(folder: Path, source: Tokenizer | None = None) -> LoadedModel:
    torch.manual_seed(3)
    words = train_tokenizer(TEXTS * 3, "bpe", 300)
    sides = {
        "source": tokens(vocab_size=(source or words).vocab_size),
        "target": tokens(vocab_size=words.vocab_size),
    }
    model = encoder_decoder(**sides, tie_source_target=source is None)
    with torch.no_grad():
        model.head.w.weight.mul_(4)
    save_model(folder, "translate", model, words, source)
    return load_model(folder)


def export(model: Path, out: Path, *options: str) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["export", str(model), "--out", str(out), *options])
    assert ended.value.code == 0


def test_the_lines_of_the_card_translate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded = saved(tmp_path / "model")
    export(tmp_path / "model", tmp_path / "ct2", "--precision", "fp32")
    assert "largest difference" in capsys.readouterr().err
    lines = re.search(r"```python\n(.*?)```", (tmp_path / "ct2" / "README.md").read_text(), re.DOTALL)
    assert lines is not None
    (tmp_path / "lines.py").write_text(lines[1])
    monkeypatch.chdir(tmp_path / "ct2")
    runpy.run_path(str(tmp_path / "lines.py"))
    [[best]] = TorchBackend(loaded.model).generate(
        [Request(loaded.tokenizer.encode(TEXTS[0]))], DecodeOptions(beam=4, max_len=256)
    )
    assert capsys.readouterr().out.strip() == loaded.tokenizer.decode(best.ids).strip()


def test_each_side_keeps_its_tokenizer_and_the_report_says_what_rounding_costs(tmp_path: Path) -> None:
    other = train_tokenizer(TEXTS, "word", 290)
    report = write_ctranslate2_translator(saved(tmp_path / "model", other), tmp_path / "ct2")
    assert json.loads((tmp_path / "ct2" / "export.json").read_text()) == report
    assert report["checks"][0]["passed"]
    assert report["checks"][1]["passed"] or not has_vnni  # without VNNI it may be far off
    assert (tmp_path / "ct2" / "source_tokenizer.json").exists()
    assert ctranslate2.Translator(str(tmp_path / "ct2")).translate_batch([["Where", "is"]])


def test_a_folder_with_other_numbers_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = saved(tmp_path / "model")
    write = ctranslate2_translator.write_ctranslate2

    def changed(model: torch.nn.Module, *others: object) -> None:
        weight = model.decoder.blocks[0].feed_forward.w_1.weight
        with torch.no_grad():
            weight.mul_(1.5)
            write(model, *others)  # type: ignore[arg-type]
            weight.div_(1.5)

    monkeypatch.setattr(ctranslate2_translator, "write_ctranslate2", changed)
    with pytest.raises(UserError, match="differs from the model that was exported"):
        write_ctranslate2_translator(loaded, tmp_path / "ct2")


def test_a_copy_is_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved(tmp_path / "model")
    for precision, away in (("fp32", "0.00% away"), ("int8", "away at most")):
        out = tmp_path / precision
        export(tmp_path / "model", out, "--to", "glassformer", "--precision", precision)
        assert away in capsys.readouterr().err
