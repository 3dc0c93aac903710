"""Classifiers are learned from labelled texts and pairs, beat simple means, and can be taken up and looked at."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import glassformer
from glassformer.data.labelled import open_labelled
from glassformer.errors import UserError
from glassformer.tasks.classifier import Classifier
from glassformer.tasks.evaluate_classify import evaluate_classify, exam_of_texts
from glassformer.train import loop
from tests.tasks.labelled import ANIMALS, DEEDS, TIMES, chases, pairs, tiny_recipe, train, write


@pytest.fixture(scope="module")
def chased(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on two thirds of the sentences; `test.tsv` beside it has the others."""
    folder = tmp_path_factory.mktemp("chases")
    rows = chases()
    write(folder / "test.tsv", rows[::3])
    assert train(write(folder / "train.tsv", [row for i, row in enumerate(rows) if i % 3]), folder / "out")
    return folder / "out"


def loaded(run: Path) -> Classifier:
    model = glassformer.load(run)
    assert isinstance(model, Classifier)
    return model


def test_word_order_is_learned_where_a_bag_of_words_is_blind(chased: Path) -> None:
    model = loaded(chased)
    files, memory = (open_labelled([chased.parent / name]) for name in ("test.tsv", "train.tsv"))
    report = evaluate_classify(model, exam_of_texts(model, files, memory))
    scores = {system.name: system.metrics["accuracy"] for system in report.systems}
    assert set(scores) == {"model", "majority", "bag of words", "nearest neighbour"}
    assert scores["model"] > 0.97
    assert scores["bag of words"] < 0.7
    assert np.sum(report.confusion) == report.n == len(chases()[::3])
    assert report.n_known == 0


def test_answers_have_probabilities_and_do_not_depend_on_the_others(chased: Path) -> None:
    model = loaded(chased)
    texts = ["the cat sees the dog now", "the dog sees the cat", "the cat likes the bird and the fish again here"]
    answers = model.classify(texts)
    assert [answer.label for answer in answers[:2]] == ["does", "suffers"]
    for text, answer in zip(texts, answers, strict=True):
        assert sum(answer.probabilities.values()) == pytest.approx(1.0)
        assert answer.probability == max(answer.probabilities.values())
        alone = model.classify([text])[0]
        assert alone.probabilities == pytest.approx(dict(answer.probabilities), abs=1e-5)
    assert model.classify([]) == []


def test_the_folder_says_what_it_is(chased: Path) -> None:
    about = json.loads((chased / "settings.json").read_text())["about"]
    assert about["labels"] == {"kind": "class", "names": ["does", "suffers"], "separator": ""}
    assert (about["input"], about["n_texts"], about["metric"]) == ("text", 1, "accuracy")
    assert "classifier trained by Glassformer" in (chased / "README.md").read_text()
    assert (chased / "losses.png").stat().st_size > 1000
    logged = [json.loads(line) for line in (chased / "metrics.jsonl").read_text().splitlines()]
    assert any("accuracy" in entry for entry in logged)


def test_pairs_are_learned(tmp_path: Path) -> None:
    rows = pairs()
    assert train(write(tmp_path / "a.tsv", rows), tmp_path / "out")
    model = loaded(tmp_path / "out")
    assert model.n_texts == 2
    said = model.classify([(first, second) for first, second, _ in rows])
    assert np.mean([a.label == row[2] for a, row in zip(said, rows, strict=True)]) > 0.95
    settings = json.loads((tmp_path / "out" / "settings.json").read_text())["model"]
    assert settings["source"]["n_types"] == 2
    with pytest.raises(UserError, match="reads pairs of texts"):
        model.classify(["one text"])


def test_numbers_are_learned_in_their_own_unit(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    counts = random.integers(0, 5, (300, 2))
    rows = [(f"{'very ' * a}good {'not ' * b}so", f"{100 + 10.5 * (a - b):.1f}") for a, b in counts]
    assert train(write(tmp_path / "a.tsv", rows), tmp_path / "out")
    model = loaded(tmp_path / "out")
    assert model.labels.kind == "number"
    low, high = (float(answer.label) for answer in model.classify(["good not not not so", "very very very good so"]))
    assert (low, high) == (pytest.approx(68.5, abs=8), pytest.approx(131.5, abs=8))
    assert json.loads((tmp_path / "out" / "settings.json").read_text())["about"]["validation"]["spearman"] > 0.9


def test_many_labels_are_learned(tmp_path: Path) -> None:
    rows = []
    for i, animal in enumerate(ANIMALS[:4]):
        for j, time in enumerate(TIMES):
            for deed in DEEDS:
                marks = [name for name, is_so in (("early", j < 2), ("tame", i < 2)) if is_so]
                rows.append((f"a {animal} {deed} {time}", "|".join(marks) or "plain"))
    assert train(write(tmp_path / "a.tsv", rows), tmp_path / "out", balance=True)
    model = loaded(tmp_path / "out")
    assert model.labels.names == ("early", "plain", "tame")
    assert set(model.classify(["a dog sees today"])[0].label) == {"early", "tame"}
    assert model.classify(["a horse likes there"])[0].label == ("plain",)


def test_a_stopped_run_ends_with_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, short = write(tmp_path / "a.tsv", chases()), {"steps": 12, "validations": 3}
    assert train(data, tmp_path / "whole", train=short, dropout=0.1)
    step = loop.Trainer._step

    def stopping(self: loop.Trainer) -> tuple[float, int]:
        self.stop_requested = self.progress.step == 6
        return step(self)

    with monkeypatch.context() as patch:
        patch.setattr(loop.Trainer, "_step", stopping)
        assert not train(data, tmp_path / "parts", train=short, dropout=0.1)
    assert train(data, tmp_path / "parts", resume=True, train=short, dropout=0.1)
    whole, parts = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_early_stopping(tmp_path: Path) -> None:
    rows = [
        (f"{a} {b}", random) for (a, b), random in zip(((x, y) for x in ANIMALS for y in TIMES), "ab" * 20, strict=True)
    ]
    assert train(write(tmp_path / "a.tsv", rows), tmp_path / "out", train={"patience": 1, "validations": 50})
    about = json.loads((tmp_path / "out" / "settings.json").read_text())["about"]
    assert about["steps"] < 150


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("good it is", "x")] * 20, r"All 20 labels are the same \('x'\)"),
        (
            [("good it is", "x"), ("bad it is", "y"), ("so", "x"), ("no", "y"), ("hm it is", "z")],
            "line . has the label 'z'",
        ),
    ],
)
def test_useless_labels_are_refused_before_anything_is_written(
    tmp_path: Path, rows: list[tuple[str, str]], said: str
) -> None:
    data = write(tmp_path / "a.tsv", rows)
    with pytest.raises(UserError, match=said) as raised:
        train(data, tmp_path / "out")
    assert "a.tsv line" in raised.value.message
    assert not (tmp_path / "out").exists()


def test_a_label_that_training_does_not_know(tmp_path: Path) -> None:
    valid = write(tmp_path / "v.tsv", [("the cat", "suffers"), ("the dog", "wins"), ("a", "does"), ("b", "does")])
    with pytest.raises(UserError, match=r"v\.tsv line \d has the label 'wins', but the model knows does, suffers"):
        train(write(tmp_path / "a.tsv", chases()), tmp_path / "out", valid=valid)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"lora": {"rank": 4}}, "LoRA leaves a trained model as it is"),
        ({"freeze": 2}, "freeze leaves a trained model as it is"),
        ({"epochs": 0}, "epochs is 0"),
        ({"metric": "loss"}, "metric is 'loss'"),
    ],
)
def test_settings_that_cannot_be(changes: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said):
        tiny_recipe(**changes)


def test_a_metric_that_does_not_fit(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="The metric spearman is not for these labels"):
        train(write(tmp_path / "a.tsv", chases()), tmp_path / "out", metric="spearman")
    assert not (tmp_path / "out").exists()


def test_other_input(chased: Path) -> None:
    model = loaded(chased)
    with pytest.raises(UserError, match="classify got one string"):
        model.classify("text")
    with pytest.raises(UserError, match="reads single texts"):
        model.classify([("one", "two")])
    with pytest.raises(UserError, match="is no text"):
        model.classify([7])
