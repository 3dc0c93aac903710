"""`glassformer import` and `export --to huggingface` from the shell."""

import json
from pathlib import Path

import pytest

from glassformer.tasks.model_dir import load_model
from tests.cli.test_main import call
from tests.exchange.foreign_models import gpt2, llama, save_huggingface, write_gguf


def test_a_model_goes_in_and_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = llama()
    n_norms = sum(weight.dim() == 1 for weight in model.parameters())
    n_tables = sum(weight.dim() == 2 for weight in model.parameters())
    path = write_gguf(tmp_path / "m.gguf", model, "Q4_1")
    capsys.readouterr()
    code, out, err = call(capsys, "import", str(path), "--out", str(tmp_path / "ours"))
    assert code == 0
    assert f"({n_norms} F32, {n_tables} Q4_1)" in out
    assert "ok: logits against" in out
    assert f"read {n_norms + n_tables} of {n_norms + n_tables} weights" in err
    assert load_model(tmp_path / "ours").task == "complete"

    back = tmp_path / "back"
    code, out, err = call(capsys, "export", str(tmp_path / "ours"), "--to", "huggingface", "--out", str(back))
    assert (code, out) == (0, "")
    assert "logits against the model that was exported" in err
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {p.name for p in back.iterdir()}
    code, out, err = call(capsys, "import", str(back), "--out", str(tmp_path / "again"), "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["format"] == "Hugging Face directory"


def test_quiet_is_quiet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = gpt2()
    folder = save_huggingface(model, tmp_path / "theirs")
    capsys.readouterr()
    code, out, err = call(capsys, "import", str(folder), "--out", str(tmp_path / "ours"), "--quiet")
    assert (code, err) == (0, "")
    assert f"({sum(1 for _ in model.parameters())} F32)" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.gguf"], "There is no file or folder nowhere.gguf. Glassformer fetches nothing"),
        ([__file__, "--from-format", "gguf"], "does not begin with the letters GGUF"),
        ([__file__, "--from-format", "onnx"], "There is no format 'onnx'"),
        ([__file__], "is in no format that is known here"),
    ],
)
def test_a_mistake_gets_one_sentence(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = call(capsys, "import", *arguments, "--out", str(tmp_path / "ours"))
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_help_says_what_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "import", "--help")
    assert code == 0
    for word in ("GGUF", "llama2.c", "tokenizer.json", "--from-format", "pickle"):
        assert word in out


def test_export_has_its_own_precisions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--to", "huggingface", "--precision", "int8", "--out", str(tmp_path / "x")]
    code, _, err = call(capsys, "export", "en-de", *given)
    assert code == 2
    assert "There is no precision 'int8' for huggingface. Choose fp32." in err
    code, _, err = call(capsys, "export", "en-de", "--to", "huggingface", "--out", str(tmp_path / "x"))
    assert code == 2
    assert "a model for translate" in err
