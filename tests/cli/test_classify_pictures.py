"""Pictures as typed: train, classify, evaluate; and what is broken gets one sentence."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.cli.test_classify import called
from tests.data.drawings import shapes, write_folders, write_idx

SMALL = ["--set", "model.encoder={d_model=16,n_layers=1}", "--set", "train.precision=fp32", "--device", "cpu"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("typed")
    write_folders(folder / "train", 60, 0)
    assert (
        called("train", "classify", folder / "train", "--out", folder / "out", "--steps", "2", "--quiet", *SMALL) == 0
    )
    return folder / "out"


def test_train_and_evaluate_idx(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pixels, labels = shapes(60, 0)
    images = write_idx(tmp_path / "train-images-idx3-ubyte.gz", pixels)
    write_idx(tmp_path / "train-labels-idx1-ubyte.gz", np.array([label == "lies" for label in labels], dtype=np.uint8))
    options = ["--steps", "2", "--set", "pictures.augment=strong", "--set", "pictures.mixup=0.2", *SMALL]
    assert called("train", "classify", images, "--out", tmp_path / "out", *options) == 0
    said = capsys.readouterr().err
    for part in (
        "60 pictures, read as 12 × 12 pixels in grey.",
        "Cut into 36 patches of 2 × 2 pixels",
        "One label for each, of 2: 0 50.0%, 1 50.0%.",
        "moved by up to 1 pixel (pictures.shift), turned, lit and hidden in part (pictures.augment), never mirrored "
        "(pictures.flip), mixed in pairs (0.2)",
    ):
        assert part in said
    picture = tmp_path / "c.png"
    assert called("evaluate", tmp_path / "out", images, "--memory", images, "--picture", picture, "--limit", "20") == 0
    said = capsys.readouterr().out
    for part in ("20 examples", "majority", "nearest neighbour", "20 of them are in the memory", "ubyte.gz picture "):
        assert part in said
    assert picture.exists()


def test_arrays_that_may_be_series(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pixels, labels = shapes(60, 0)
    np.savez(tmp_path / "a.npz", x=pixels / 255, y=np.array(labels))
    options = ["--steps", "1", *SMALL]
    assert called("train", "classify", tmp_path / "a.npz", "--out", tmp_path / "series", *options) == 0
    assert "60 series" in capsys.readouterr().err
    assert called("train", "classify", tmp_path / "a.npz", "--pictures", "--out", tmp_path / "pictures", *options) == 0
    assert "60 pictures" in capsys.readouterr().err


def test_files_folders_and_stdin(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = model.parent / "train" / "lies" / "0000.png"
    assert called("classify", model, one, "--top", "2") == 0
    name, *answers = capsys.readouterr().out.strip().split("\t")
    assert name == str(one)
    assert {answers[0], answers[2]} == {"lies", "stands"}
    assert called("classify", model, model.parent / "train", "--json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 60
    assert lines[0]["input"] == str(one)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(f"{one}\n\n{one}\n".encode())))
    assert called("classify", model) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    Image.new("RGBA", (24, 24)).save(tmp_path / "large.png")
    assert called("classify", model, tmp_path / "large.png", "--pixels", "24x24") == 0


def test_check_knows_pictures(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called("check", model.parent / "train") == 0
    said = capsys.readouterr().out
    assert "60 pictures, read as 12 × 12 pixels in grey." in said
    assert "of 2: lies 50.0%, stands 50.0%" in said


def test_a_broken_picture_does_not_stop_the_others(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "b.png").write_bytes(b"broken")
    for name in "ac":
        Image.new("L", (12, 12)).save(tmp_path / f"{name}.png")
    assert called("classify", model, tmp_path) == 2
    found = capsys.readouterr()
    assert [line.split("\t")[0] for line in found.out.splitlines()] == [str(tmp_path / f"{n}.png") for n in "ac"]
    assert found.err == f"{tmp_path / 'b.png'} is no picture that can be read.\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["classify", "MODEL", "nowhere.png"], "There is no file or folder nowhere.png"),
        (["classify", "MODEL", "EMPTY"], "holds no pictures"),
        (["classify", "MODEL", "ONE", "--pixels", "wide"], "--pixels is 'wide'"),
        (["classify", "MODEL", "ONE", "--pixels", "13"], "which patch 2 does not divide"),
        (["evaluate", "MODEL", "ONE"], "is one picture, of which nobody says what it shows"),
        (["train", "classify", "EMPTY", "--out", "OUT"], "has no folders with pictures in them"),
        (["train", "classify", "EQUAL", "--out", "OUT"], "labels are the same ('lies')"),
        (["train", "classify", "DATA", "--out", "OUT", "--set", "pictures.size=[13,12]", *SMALL], "does not divide"),
        (["train", "classify", "DATA", "--out", "OUT", "--set", "pictures.augment=wild"], "pictures.augment is 'wild'"),
        (["train", "classify", "DATA", "--out", "OUT", "--size", "huge"], "There is no size 'huge'"),
    ],
)
def test_mistakes_get_one_sentence(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    (tmp_path / "empty").mkdir()
    write_folders(tmp_path / "equal", 4, 0)
    for path in (tmp_path / "equal" / "stands").iterdir():
        path.unlink()
    names = {
        "MODEL": model,
        "DATA": model.parent / "train",
        "ONE": model.parent / "train" / "lies" / "0000.png",
        "EMPTY": tmp_path / "empty",
        "EQUAL": tmp_path / "equal",
        "OUT": tmp_path / "out",
    }
    assert called(*(names.get(argument, argument) for argument in arguments)) == 2
    found = capsys.readouterr().err
    assert said in found
    assert found.count("\n") == 1
    assert not (tmp_path / "out").exists()
