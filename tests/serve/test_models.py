"""Pictures and series in requests, names of models and of languages."""

import base64
import io
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image

from glassformer.errors import UserError
from glassformer.serve.limits import Limits
from glassformer.serve.models import Served, load_models, name_languages
from glassformer.tasks.classifier import Classifier
from tests.serve.conftest import running
from tests.serve.models import picture_classifier, series_classifier


def picture(seed: int, size: int = 12) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 255, (size, size, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


@pytest.fixture(scope="module")
def face() -> Classifier:
    return picture_classifier(Path("model"))


@pytest.fixture(scope="module")
def address(face: Classifier) -> Iterator[str]:
    with running({"eye": Served("eye", face)}, Limits(pixels=500)) as found:
        yield found


def test_pictures_are_seen_as_on_the_command_line(
    address: str, face: Classifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / f"{i}.png" for i in range(3)]
    for i, path in enumerate(files):
        path.write_bytes(picture(i))
    (tmp_path / "own").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "own"))
    given = [base64.b64encode(path.read_bytes()).decode() for path in files]
    said = httpx.post(f"{address}/api/classify", json={"pictures": given}).json()
    for ours, theirs in zip(said["answers"], face.classify(files), strict=True):
        assert ours["label"] == theirs.label
        assert ours["probabilities"] == pytest.approx(dict(theirs.probabilities), abs=1e-5)
    assert list((tmp_path / "own").iterdir()) == []


@pytest.mark.parametrize(
    ("body", "status", "about"),
    [
        ({"texts": ["a"]}, 400, "reads pictures"),
        ({"pictures": []}, 400, "reads pictures"),
        ({"pictures": ["!!!"]}, 400, "The picture"),
        ({"pictures": [base64.b64encode(b"/etc/passwd").decode()]}, 400, "The picture is no picture"),
        ({"pictures": [base64.b64encode(picture(0, 40)).decode()]}, 413, "500 pixels"),
    ],
)
def test_what_is_no_picture_is_refused(address: str, body: dict[str, object], status: int, about: str) -> None:
    answer = httpx.post(f"{address}/api/classify", json=body)
    assert answer.status_code == status
    assert about in answer.json()["error"]
    assert "/tmp" not in answer.text


def test_series_are_judged_as_on_the_command_line() -> None:
    judge = series_classifier(Path("model"))
    draw = np.random.default_rng(1)
    given = [draw.normal(size=(n, 3)).astype(np.float32) for n in (5, 2, 9)]
    with running({"judge": Served("judge", judge)}, Limits(characters=60)) as address:

        def ask(series: object) -> httpx.Response:
            return httpx.post(f"{address}/api/classify", json={"series": series})

        answers = ask([values.tolist() for values in given]).json()["answers"]
        for ours, theirs in zip(answers, judge.classify(given), strict=True):
            assert ours["label"] == theirs.label
            assert ours["probabilities"] == pytest.approx(dict(theirs.probabilities), abs=1e-5)
        for series, status, about in (
            ([[[1.0, 2.0]]], 400, "2 numbers a step"),
            ([[[1.0, 2.0, 1e39]]], 400, "too large"),
            ([[[1.0, 2.0, 3.0], [1.0]]], 400, "unequal"),
            ([[[0.0] * 3] * 21], 413, "63"),
        ):
            refused = ask(series)
            assert refused.status_code == status
            assert about in refused.json()["error"]


def test_names_of_models_and_languages() -> None:
    models = load_models(["en-de", "other=en-de"])
    assert list(models) == ["en-de", "other"]
    assert models["other"].languages == ("en", "de")
    name_languages(models, ["other=fr, nl"])
    assert models["other"].languages == ("fr", "nl")
    for wrong in ("none=en,de", "other=en", "other=en,de,fr", "other"):
        with pytest.raises(UserError):
            name_languages(models, [wrong])
    with pytest.raises(UserError, match="'digits' is no translator"):
        name_languages(load_models(["digits"]), ["digits=en,de"])
    with pytest.raises(UserError, match="Two models are called 'en-de'"):
        load_models(["en-de", "en-de"])
    with pytest.raises(UserError, match="no model"):
        load_models([])
    with pytest.raises(UserError, match="names no model"):
        load_models(["=en-de"])
