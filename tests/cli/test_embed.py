"""`glassformer embed` and `glassformer search` from the shell."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

from glassformer.tasks.embedder import Embedder
from glassformer.tasks.model_dir import save_model
from tests.cli.test_main import call
from tests.exchange.foreign_models import SENTENCES
from tests.tasks.test_embedder import WORDS, loaded


@pytest.fixture
def model(tmp_path: Path) -> str:
    one = loaded("pre-norm")
    save_model(tmp_path / "model", "embed", one.model, WORDS, about={"context": 20})
    return str(tmp_path / "model")


def feed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_numbers_json_and_npy_agree(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["a ball", "", "One day"]
    wanted = Embedder(loaded("pre-norm", context=20)).embed(texts)
    code, out, err = call(capsys, "embed", model, *texts)
    assert (code, err) == (0, "")
    np.testing.assert_allclose([[float(v) for v in line.split()] for line in out.splitlines()], wanted, atol=1e-6)
    feed(monkeypatch, "\n".join(texts) + "\n")
    code, out, _ = call(capsys, "embed", model, "--json", "--normalise")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["text"] for row in rows] == texts
    np.testing.assert_allclose(
        [row["vector"] for row in rows], wanted / np.linalg.norm(wanted, axis=1, keepdims=True), atol=1e-6
    )
    path = tmp_path / "v.npy"
    code, out, err = call(capsys, "embed", model, *texts, "--out", str(path))
    assert (code, out) == (0, "")
    assert f"3 vectors of {wanted.shape[1]} numbers" in err
    np.testing.assert_allclose(np.load(path), wanted, atol=1e-6)


def test_a_cut_is_said(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = call(capsys, "embed", model, SENTENCES[0], "a")
    assert err == "Cut after 20 tokens, the model's maximum: 1 text.\n"
    assert call(capsys, "embed", model, SENTENCES[0], "--quiet")[2] == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--pooling", "max"], "There is no pooling 'max'"),
        (["--out", "x.txt"], "written as .npy"),
        (["--out", "x.npy", "--json"], "contradict"),
        (["--out", "no/where/x.npy"], "There is no folder"),
    ],
)
def test_a_mistake_gets_one_sentence(
    arguments: list[str], said: str, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = call(capsys, "embed", model, "a", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_search(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(SENTENCES) + "\n")
    code, out, err = call(capsys, "search", model, str(file), SENTENCES[2], "--top", "2", "--quiet")
    assert (code, err) == (0, "")
    first, second = out.splitlines()
    assert first.split("\t")[1:] == ["3", SENTENCES[2]]
    assert float(first.split("\t")[0]) > float(second.split("\t")[0])

    feed(monkeypatch, f"{SENTENCES[1]}\n{SENTENCES[3]}\n")
    index = str(tmp_path / "i.npz")
    code, out, err = call(capsys, "search", model, str(file), "--json", "--top", "1", "--index", index)
    assert [json.loads(line)["found"][0]["line"] for line in out.splitlines()] == [2, 4]
    assert f"{index}: 4 vectors, made.\n" in err
    assert "Cut after 20 tokens" in err
    assert f"{index}: 4 vectors, read.\n" in call(capsys, "search", model, str(file), "a", "--index", index)[2]
    file.write_text("other\n")
    err = call(capsys, "search", model, str(file), "a", "--index", index)[2]
    assert "1 vector, made again: the texts or the model have changed" in err

    code, _, err = call(capsys, "search", model, str(tmp_path / "none.txt"), "a")
    assert (code, err.count("\n")) == (2, 1)
    assert "There is no file" in err
    code, _, err = call(capsys, "search", model, str(file), "a", "--top", "0")
    assert (code, err.count("\n")) == (2, 1)
