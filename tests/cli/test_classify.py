"""The verbs of classification as typed."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

from glassformer.api import load_classifier
from glassformer.cli.evaluate_classify import explain_classify
from glassformer.cli.main import run
from glassformer.exchange.importing import import_model
from glassformer.tasks.evaluate_classify import ClassifyReport, System
from tests.exchange.foreign_encoders import judge, save_bert
from tests.tasks.labelled import chases, pairs, train, write


def called(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        run([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classify")
    assert train(write(folder / "train.tsv", chases()[::2]), folder / "out")
    write(folder / "test.tsv", chases()[1::2])
    return folder / "out"


def test_train_as_typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "a.csv"
    rows = [f'{i},"{first}",{second},{label}' for i, (first, second, label) in enumerate(pairs())]
    data.write_text("\n".join(["id,one,two,verdict", *rows]))
    options = ["--text", "one", "--text2", "two", "--label", "verdict", "--steps", "2", "--balance", "--vocab", "300"]
    changes = ["--set", "model.encoder={d_model=16}", "--set", "train.precision=fp32", "--device", "cpu"]
    assert called("train", "classify", data, "--out", tmp_path / "out", *options, *changes) == 0
    said = capsys.readouterr().err
    assert "'one' and 'two': the texts, 'verdict': the label" in said
    assert "One label for each, of 2: other 50.0%, same 50.0%." in said
    numbers = tmp_path / "n.tsv"
    numbers.write_text("".join(f"text {i}\t{i % 5}\n" for i in range(40)))
    assert (
        called("train", "classify", numbers, "--kind", "number", "--out", tmp_path / "n", *options[6:], *changes) == 2
    )
    assert "--balance is for classes, but the labels are numbers" in capsys.readouterr().err
    assert called("classify", tmp_path / "out", "a cat sees a dog\tit is a cat") == 0
    assert capsys.readouterr().out.split("\t")[0] in ("same", "other")


def test_one_line_out_for_each_line_in(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "the cat sees the dog\r\n\nthe dog sees the cat"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    assert called("classify", model, "--top", "2") == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[0] for line in (out[0], out[2])] == ["does", "suffers"]
    assert len(out) == 3
    assert all(float(line.split("\t")[1]) + float(line.split("\t")[3]) == pytest.approx(1, abs=2e-4) for line in out)


def test_json(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called("classify", model, "the cat likes the fox now", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["input"] == "the cat likes the fox now"
    assert found["label"] == "does" == next(iter(found["probabilities"]))


def test_evaluate(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test, memory, picture = model.parent / "test.tsv", model.parent / "train.tsv", tmp_path / "c.png"
    assert called("evaluate", model, test, "--memory", memory, "--picture", picture) == 0
    said = capsys.readouterr().out
    for part in ("160 examples", "bag of words", "nearest neighbour", "Matthews", "true ╲ said", "Calibration"):
        assert part in said
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert called("evaluate", model, test, "--limit", "40", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["n"] == 40
    assert [system["name"] for system in report["systems"]] == ["model"]
    assert 0 <= report["systems"][0]["metrics"]["accuracy"] <= 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["classify", "MODEL", "a", "--top", "0"], "--top is 0"),
        (["classify", "en-de", "a"], "is a model for translate, not for classification"),
        (["evaluate", "MODEL", "DATA", "--label", "mood"], "has no column 'mood'"),
        (["evaluate", "MODEL", "DATA", "--picture", "c.jpg"], "is to be a PNG"),
        (["evaluate", "MODEL", "OTHER"], "OTHER line 1 has the label 'else', but the model knows does, suffers"),
        (["train", "classify", "DATA", "--out", "OUT", "--kind", "many"], "labels is 'many'"),
        (["train", "classify", "DATA", "--out", "OUT", "--size", "huge"], "There is no size 'huge'"),
        (["train", "classify", "DATA", "--out", "OUT", "--labels", "x.txt"], "has its labels in itself"),
        (["train", "classify", "nowhere.tsv", "--out", "OUT"], "There is no file nowhere.tsv"),
        (["train", "classify", "nowhere.npz", "--out", "OUT"], "There is no file nowhere.npz"),
        (["train", "classify", "DATA", "--out", "OUT", "--from", "nowhere"], "There is no model 'nowhere'"),
    ],
)
def test_mistakes_get_one_sentence(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    other = tmp_path / "other.tsv"
    other.write_text("some text\telse\nmore text\tdoes\n" * 2)
    names = {"MODEL": model, "DATA": model.parent / "test.tsv", "OTHER": other, "OUT": tmp_path / "out"}
    assert called(*(names.get(argument, argument) for argument in arguments)) == 2
    found = capsys.readouterr().err
    assert said.replace("OTHER", str(other)) in found
    assert found.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_series_as_typed(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    x, y = random.normal(size=(60, 5, 2)), np.arange(60) % 2
    np.save(tmp_path / "x.npy", x + y[:, None, None] * 3)
    (tmp_path / "y.txt").write_text("".join(f"kind {i}\n" for i in y))
    out = tmp_path / "out"
    small = ["--set", "model.encoder={d_model=16}", "--steps", "30", "--quiet", "--device", "cpu"]
    assert called("train", "classify", tmp_path / "x.npy", "--labels", tmp_path / "y.txt", "--out", out, *small) == 0
    np.save(tmp_path / "new.npy", np.stack([np.full((5, 2), 0.0), np.full((5, 2), 3.0)]))
    assert called("classify", out, tmp_path / "new.npy") == 0
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == ["kind 0", "kind 1"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"[[3, 3], [3, 3]]\n")))
    assert called("classify", out) == 0
    assert capsys.readouterr().out.startswith("kind 1\t")
    assert called("evaluate", out, tmp_path / "x.npy", "--labels", tmp_path / "y.txt", "--quiet") == 0
    assert "60 examples" in capsys.readouterr().out
    assert called("export", out, "--to", "glassformer", "--out", tmp_path / "small", "--precision", "int8") == 0
    assert called("classify", tmp_path / "small", tmp_path / "new.npy") == 0


def test_an_imported_model_takes_a_text_or_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import_model(save_bert(judge(), tmp_path / "theirs"), tmp_path / "ours")
    wanted = load_classifier(tmp_path / "ours").classify(["once", ("once", "upon")])
    assert called("classify", tmp_path / "ours", "once", "once\tupon") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"{answer.label}\t{answer.probability:.4f}" for answer in wanted]
    assert lines[0] != lines[1]


def test_figures_of_any_size_stay_apart_and_above_zero() -> None:
    def system(name: str, error: float) -> System:
        figures = {"spearman": 0.022, "mean_error": error, "pearson": -0.5}
        return System(name, figures, dict.fromkeys(figures, error / 2))

    systems = (system("model", 15052.884), system("mean", 0.00001234), system("bag of words", 12.3456))
    report = ClassifyReport(("a.tsv",), 9, 0, None, "number", (), systems, (), (), None, (), None)
    table = [line for line in explain_classify("m", report) if " ± " in line]
    cells = [[cell.strip() for cell in line[20:].split("  ") if cell.strip()] for line in table]
    assert [row[1] for row in cells] == ["15,053 ± 7,526", "1.234e-05 ± 6.17e-06", "12.35 ± 6.173"]
    assert len({len(line) for line in table}) == 1
