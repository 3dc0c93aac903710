"""Series of vectors are told apart by what happens in them, in the units that they come in."""

import json
from pathlib import Path

import numpy as np
import pytest

import glassformer
from glassformer.data.series import Series, read_series
from glassformer.errors import UserError
from glassformer.tasks.classifier import Classifier
from glassformer.tasks.classify_series import Standard, exam_of_series, judge_series
from glassformer.tasks.evaluate_classify import evaluate_classify
from glassformer.tasks.train_classify import train_classify
from tests.tasks.labelled import tiny_recipe


def waves(n: int, seed: int) -> tuple[list[np.ndarray], list[str]]:
    """Which of two bumps comes first, somewhere in noise? The units are odd, and the means say nothing."""
    random = np.random.default_rng(seed)
    values, labels = [], []
    for i in range(n):
        length = int(random.integers(8, 20))
        series = random.normal(0, 0.3, (length, 3))
        first, second = sorted(random.choice(length, 2, replace=False))
        up = i % 2 == 0
        series[first, 1 if up else 2] += 5
        series[second, 2 if up else 1] += 5
        values.append((series * [1, 500, 0.01] + [3, 1e4, 7]).astype(np.float32))
        labels.append("up" if up else "down")
    return values, labels


def write(path: Path, n: int, seed: int) -> Path:
    values, labels = waves(n, seed)
    np.savez(path, x=np.concatenate(values), lengths=[len(v) for v in values], y=np.array(labels))
    return path


def train(data: Path, out: Path, valid: Path | None = None) -> bool:
    series, others = read_series([data]), None if valid is None else read_series([valid])
    recipe = tiny_recipe(tokenizer={"kind": "bpe", "size": "none"}, train={"steps": 300, "lr": 3e-3})
    return train_classify(lambda r: judge_series(series, others, r), recipe, out, device="cpu", quiet=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("waves")
    assert train(write(folder / "train.npz", 400, 0), folder / "out")
    return folder / "out"


def loaded(run: Path) -> Classifier:
    model = glassformer.load(run)
    assert isinstance(model, Classifier)
    return model


def test_what_happens_is_learned_where_means_say_nothing(run: Path, tmp_path: Path) -> None:
    test, memory = (read_series([path]) for path in (write(tmp_path / "t.npz", 200, 1), run.parent / "train.npz"))
    report = evaluate_classify(loaded(run), exam_of_series(loaded(run), test, memory))
    scores = {system.name: system.metrics["accuracy"] for system in report.systems}
    assert scores["model"] > 0.9
    assert scores["nearest neighbour"] < 0.7
    assert report.worst[0].place.startswith(f"{tmp_path / 't.npz'} series ") if report.worst else True


def test_the_folder_needs_no_tokenizer(run: Path) -> None:
    assert not (run / "tokenizer.json").exists()
    about = json.loads((run / "settings.json").read_text())["about"]
    assert (about["input"], about["n_features"]) == ("vectors", 3)


def test_the_model_reads_the_units_that_the_data_has(run: Path) -> None:
    """Standardising is part of the weights: raw values go in, and validation is as good as it said."""
    values, labels = waves(100, 2)
    answers = loaded(run).classify(values)
    right = np.mean([a.label == y for a, y in zip(answers, labels, strict=True)])
    assert right == pytest.approx(
        json.loads((run / "settings.json").read_text())["about"]["validation"]["accuracy"], abs=0.12
    )
    assert answers[0].probabilities == pytest.approx(dict(loaded(run).classify(values[:1])[0].probabilities), abs=1e-4)


def test_other_widths_and_texts_are_refused(run: Path) -> None:
    with pytest.raises(UserError, match="Series 1 has 2 numbers a step, but the model reads 3"):
        loaded(run).classify([np.zeros((4, 2))])
    with pytest.raises(UserError, match="has no vectors"):
        loaded(run).classify(["some text"])
    with pytest.raises(UserError, match="reads no text"):
        _ = loaded(run).loaded.tokenizer


def test_no_labels(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros((4, 2, 1)))
    with pytest.raises(UserError, match="has no labels"):
        judge_series(read_series([tmp_path / "a.npz"]), None, tiny_recipe())


def test_widths_of_training_and_validation(tmp_path: Path) -> None:
    a, b = (
        Series((Path(n),), [np.zeros((2, w), np.float32)] * 4, ["x", "y"] * 2, ["p"] * 4)
        for n, w in (("a", 1), ("b", 2))
    )
    with pytest.raises(UserError, match="b has vectors of another width than a"):
        judge_series(a, b, tiny_recipe())


def test_means_and_deviations_are_true_ones() -> None:
    random = np.random.default_rng(0)
    far, constant = random.normal(1e4, 1.0, 300_000), np.full(300_000, 0.1)
    values = np.stack([far, constant], axis=1).astype(np.float32)
    exact = values.astype(np.longdouble)
    found = Standard.of(np.split(values, 1000))
    np.testing.assert_allclose(found.mean, exact.mean(axis=0).astype(np.float64), rtol=1e-6)
    assert found.deviation[0] == pytest.approx(float(exact[:, 0].std()), rel=1e-5)
    assert found.deviation[1] == 1.0
