"""A small ViT learns what pictures show, remembers how to read them, and goes on to the bit where it was stopped."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from sklearn.datasets import load_digits

import glassformer
from glassformer import config
from glassformer.data.picture_find import find_pictures
from glassformer.errors import UserError
from glassformer.look.scene import look_at
from glassformer.look.subject import LookOptions
from glassformer.tasks.classifier import Classifier
from glassformer.tasks.classify import ClassifyRecipe
from glassformer.tasks.classify_pictures import exam_of_pictures, judge_pictures
from glassformer.tasks.evaluate_classify import ClassifyReport, evaluate_classify
from glassformer.tasks.model_dir import load_model
from glassformer.tasks.train_classify import train_classify
from glassformer.train.report import Report
from tests.data.drawings import shapes, write_folders, write_idx
from tests.tasks import labelled

SMALL = {"encoder": {"d_model": 32, "n_layers": 1, "attention": {"n_heads": 2}, "feed_forward": {"d_ff": 64}}}


def recipe(**changes: Any) -> ClassifyRecipe:
    data = {
        "size": "tiny",
        "model": SMALL,
        "train": {"steps": 250, "validations": 4, "precision": "fp32", "lr": 5e-3, "batch_size": 64},
    }
    data = {"train": data["train"]} if "start" in changes else data
    parsed: ClassifyRecipe = config.parse(ClassifyRecipe, config.merge(data, changes))
    return parsed


def train(data: Path, out: Path, resume: bool = False, valid: Path | None = None, **changes: Any) -> bool:
    files, others = find_pictures([data]), None if valid is None else find_pictures([valid])
    return train_classify(
        lambda r: judge_pictures(files, others, r), recipe(**changes), out, resume, device="cpu", quiet=True
    )


def loaded(folder: Path) -> Classifier:
    model = glassformer.load(folder)
    assert isinstance(model, Classifier)
    return model


def evaluated(model: Path, data: Path, memory: Path | None = None, **options: Any) -> ClassifyReport:
    classifier = loaded(model)
    known = None if memory is None else find_pictures([memory])
    return evaluate_classify(classifier, exam_of_pictures(classifier, find_pictures([data]), known, **options))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    write_folders(folder / "train", 300, 0)
    assert train(folder / "train", folder / "out")
    return folder / "out"


def test_scikit_learns_digits(tmp_path: Path) -> None:
    """A quarter is held back; nothing of it chooses the weights."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.images))
    parts = {"train": order[450:], "test": order[:450]}
    for name, rows in parts.items():
        np.savez(tmp_path / f"{name}.npz", x=digits.images[rows], y=digits.target[rows])
    model = {"encoder": {"n_layers": 2, "feed_forward": {"d_ff": 128}}}
    settings = {"steps": 600, "lr": 3e-3, "validations": 5, "label_smoothing": 0.1}
    pictures = {"augment": "off", "mixup": 0.2}
    changes = {"model": config.merge(model, {"encoder": {"d_model": 64, "attention": {"n_heads": 4}}})}
    assert train(tmp_path / "train.npz", tmp_path / "out", train=settings, pictures=pictures, **changes)
    report = evaluated(tmp_path / "out", tmp_path / "test.npz", tmp_path / "train.npz")
    scores = {system.name: system.metrics["accuracy"] for system in report.systems}
    assert scores["model"] >= 0.97
    assert scores["majority"] < 0.2
    assert scores["nearest neighbour"] > 0.97  # which is hard to beat on digits
    assert json.loads((tmp_path / "out" / "settings.json").read_text())["about"]["pictures"]["span"] == [0, 16]
    # The same digit, as a file in whatever size a scanner makes of it.
    first = digits.images[order[0]]
    Image.fromarray((first * 255 / 16).round().astype(np.uint8)).save(tmp_path / "a.png")
    by_array, by_file = loaded(tmp_path / "out").classify([first, tmp_path / "a.png"])
    assert by_array.probabilities == pytest.approx(dict(by_file.probabilities), abs=1e-5)


def test_what_stands_and_what_lies(run: Path, tmp_path: Path) -> None:
    write_folders(tmp_path, 100, 1)
    (tmp_path / "lies" / "broken.png").write_bytes(b"no")
    report = evaluated(run, tmp_path, run.parent / "train")
    scores = {system.name: system.metrics["accuracy"] for system in report.systems}
    assert scores["model"] > 0.95
    assert scores["majority"] == 0.5
    assert (report.n, report.n_bad) == (100, 1)
    assert report.bad_example == f"{tmp_path / 'lies' / 'broken.png'} is no picture that can be read"
    assert all(mistake.place.endswith(".png") for mistake in report.worst)
    assert evaluated(run, tmp_path, limit=10).n == 10
    assert evaluated(run, run.parent / "train", run.parent / "train", limit=10).n_known == 10


def test_use_is_as_in_training(run: Path, tmp_path: Path) -> None:
    """Mean and deviation are those of the training pictures, and a picture comes in any way and size."""
    about = json.loads((run / "settings.json").read_text())["about"]
    pixels = shapes(300, 0)[0] / 255
    assert about["pictures"]["mean"] == pytest.approx([pixels.mean()], abs=0.01)  # without those that were held out
    assert about["pictures"]["std"] == pytest.approx([pixels.std()], abs=0.01)
    assert not (run / "tokenizer.json").exists()
    pictures, labels = shapes(40, 3)
    classifier = loaded(run)
    together = classifier.classify(list(pictures))
    assert np.mean([answer.label == label for answer, label in zip(together, labels, strict=True)]) > 0.9
    alone = classifier.classify([pictures[0]])[0]
    assert alone.probabilities == pytest.approx(dict(together[0].probabilities), abs=1e-4)
    Image.fromarray(pictures[0]).convert("RGB").resize((48, 48), Image.Resampling.NEAREST).save(tmp_path / "large.png")
    assert classifier.classify([tmp_path / "large.png"])[0].label == together[0].label
    for wrong, said in (("nowhere.png", "nowhere.png is not there"), (np.zeros((3, 3, 2)), r"has shape \(3, 3, 2\)")):
        with pytest.raises(UserError, match=said):
            classifier.classify([wrong])


def test_a_picture_file_is_looked_into(run: Path) -> None:
    path = sorted((run.parent / "train" / "lies").iterdir())[0]
    scene = look_at(load_model(run), str(path), LookOptions())
    answer = loaded(run).classify([path])[0]
    assert scene.subject.answer == answer.label
    assert float(scene.seen["head.probabilities"].max()) == pytest.approx(max(answer.probabilities.values()), abs=1e-5)
    with pytest.raises(UserError, match="is not there"):
        look_at(load_model(run), "nowhere.png", LookOptions())


def test_taken_up_to_the_bit(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    how = {
        "pictures": {"augment": "strong", "flip": True, "mixup": 0.3},
        "train": {"steps": 30, "label_smoothing": 0.1},
    }
    assert train(run.parent / "train", tmp_path / "whole", **how)
    step = Report.step

    def interrupted(self: Report, p: Any, *others: Any) -> None:
        step(self, p, *others)
        if p.step == 13:
            raise KeyboardInterrupt

    monkeypatch.setattr(Report, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(run.parent / "train", tmp_path / "parts", **how)
    monkeypatch.setattr(Report, "step", step)
    assert train(run.parent / "train", tmp_path / "parts", resume=True, **how)
    whole, parts = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_another_size_is_used_and_learned_from(run: Path, tmp_path: Path) -> None:
    """Bars of twice the size: the positions are interpolated, and a little training does the rest."""
    larger = [np.kron(one, np.ones((2, 2), np.uint8)) for one in shapes(60, 5)[0]]
    classifier = loaded(run).at_size(24, 24)
    assert classifier.model.settings.source.n_patches == 4 * loaded(run).model.settings.source.n_patches  # type: ignore[union-attr]
    assert len(classifier.classify(larger)) == 60
    with pytest.raises(UserError, match="does not divide"):
        loaded(run).at_size(25, 24)
    folder = write_folders(tmp_path / "large", 200, 6, size=24)
    changes = {"start": str(run), "pictures": {"size": (24, 24)}, "train": {"steps": 60}}
    assert train(folder, tmp_path / "out", **changes)
    source = loaded(tmp_path / "out").model.settings.source
    assert (source.height, source.width) == (24, 24)  # type: ignore[union-attr]
    write_folders(tmp_path / "test", 60, 7, size=24)
    assert evaluated(tmp_path / "out", tmp_path / "test").systems[0].metrics["accuracy"] > 0.9
    before, after = (json.loads((path / "settings.json").read_text())["about"] for path in (run, tmp_path / "out"))
    assert before["pictures"] == after["pictures"]


def subject(data: Path, **changes: Any) -> Any:
    return judge_pictures(find_pictures([data]), None, recipe(**changes))


def test_broken_pictures_to_validate_on_are_named(tmp_path: Path) -> None:
    train, valid = write_folders(tmp_path / "a", 30, 0), write_folders(tmp_path / "b", 6, 1)
    (valid / "lies" / "broken.png").write_bytes(b"no picture")
    said = judge_pictures(find_pictures([train]), find_pictures([valid]), recipe()).describe()
    assert any(s.startswith("Skipped 1: the first,") and "broken.png" in s for s in said)
    assert "Also in training: 0 of those to validate on." in said


def test_folders_and_idx_labels_are_classes_however_they_look(tmp_path: Path) -> None:
    pixels, _ = shapes(3 * 43, 0)
    for i, one in enumerate(pixels):
        (tmp_path / "signs" / f"{i % 43:05d}").mkdir(parents=True, exist_ok=True)
        Image.fromarray(one).save(tmp_path / "signs" / f"{i % 43:05d}" / f"{i}.png")
    labels = subject(tmp_path / "signs").labels
    assert (labels.kind, len(labels.names), labels.names[42]) == ("class", 43, "00042")
    images = write_idx(tmp_path / "a-images-idx3-ubyte", pixels)
    write_idx(tmp_path / "a-labels-idx1-ubyte", np.arange(129, dtype=np.uint8) % 43)
    assert subject(images).labels.kind == "class"
    assert subject(images, labels="number").labels.kind == "number"


def test_what_is_found_is_said(tmp_path: Path) -> None:
    write_folders(tmp_path, 30, 0)
    Image.new("RGB", (50, 30), (9, 9, 9)).save(tmp_path / "lies" / "wide.png")
    said = " ".join(subject(tmp_path).describe())
    assert "31 pictures, read as 12 × 12 pixels in grey." in said  # colours that are none
    assert "The commonest size is 12 × 12, but 1 of 31 looked at have others" in said
    assert "never mirrored" in said
    Image.new("RGB", (50, 30), (99, 9, 9)).save(tmp_path / "lies" / "wide.png")
    found = subject(tmp_path)
    assert "in colour" in str(found.train)
    assert "mirrored at times" in " ".join(found.describe())
    assert subject(tmp_path, pictures={"channels": 1, "size": (24, 12)}).front_end == {
        **found.front_end,
        "height": 24,
        "n_channels": 1,
        "patch": 3,
    }


@pytest.mark.parametrize(
    ("size", "read", "patch"),
    [
        ((28, 28), (28, 28), 4),
        ((8, 8), (8, 8), 2),
        ((32, 32), (32, 32), 4),
        ((1500, 2000), (96, 128), 16),
        ((30, 45), (30, 45), 5),
        ((31, 29), (32, 28), 4),
        ((1, 1), (1, 1), 1),
        ((100, 3), (99, 3), 3),
    ],
)
def test_sizes_and_patches(tmp_path: Path, size: tuple[int, int], read: tuple[int, int], patch: int) -> None:
    for i in range(6):
        (tmp_path / str(i % 2)).mkdir(exist_ok=True)
        grey = np.random.default_rng(i).integers(0, 255, (min(size[0], 40), min(size[1], 40)), dtype=np.uint8)
        Image.fromarray(grey).resize(size[::-1], Image.Resampling.NEAREST).save(tmp_path / str(i % 2) / f"{i}.png")
    source = subject(tmp_path, model={}).patches
    assert ((source.height, source.width), source.patch) == (read, patch)


def test_class_token_patch_and_margin_by_setting(tmp_path: Path) -> None:
    write_folders(tmp_path / "data", 30, 0)
    changes = {"pooling": "first", "model": {**SMALL, "source": {"patch": 4, "margin": 1}}, "train": {"steps": 2}}
    assert train(tmp_path / "data", tmp_path / "out", **changes)
    settings = loaded(tmp_path / "out").model.settings
    source: Any = settings.source
    assert (source.class_token, source.patch, source.margin, settings.head.pooling) == (True, 4, 1, "first")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("pictures", "said"),
    [
        ({}, "are moved by up to 1 pixel (pictures.shift), never"),
        ({"shift": 0.25}, "are moved by up to 3 pixels (pictures.shift), never"),
        ({"shift": 0.25, "size": (12, 24)}, "are moved by up to 3 pixels up or down and 6 sideways (pictures.shift)"),
        ({"shift": 0.0}, "are not moved (pictures.shift), never"),
        ({"shift": 0.0, "augment": "strong"}, "are not moved (pictures.shift), turned, lit and hidden in part"),
        ({"augment": "off"}, "are not moved (pictures.augment), never"),
    ],
)
def test_how_pictures_are_moved_is_said(tmp_path: Path, pictures: dict[str, Any], said: str) -> None:
    write_folders(tmp_path, 12, 0)
    found = " ".join(subject(tmp_path, pictures=pictures).describe())
    assert said in found
    assert "no effect" not in found


def test_a_shift_without_effect_and_a_margin_are_said(tmp_path: Path) -> None:
    write_folders(tmp_path, 12, 0)
    source = {**SMALL, "source": {"patch": 4, "margin": 1}}
    found = subject(tmp_path, pictures={"augment": "off", "shift": 0.2}, model=source).describe()
    assert found[-1] == "pictures.shift is 0.2, which has no effect while pictures.augment is off."
    assert any(
        s.endswith("4 × 4 pixels (model.source.patch), each with a margin of 1 pixel (model.source.margin).")
        for s in found
    )


def test_models_of_other_things(run: Path, tmp_path: Path) -> None:
    write_folders(tmp_path / "one", 8, 0)
    with pytest.raises(UserError, match="reads tokens, not pictures"):
        subject(tmp_path / "one", start=_text_model(tmp_path))
    with pytest.raises(UserError, match="reads no text"):
        _ = loaded(run).loaded.tokenizer


def _text_model(folder: Path) -> str:
    labelled.train(labelled.write(folder / "a.tsv", labelled.chases()[::4]), folder / "texts", train={"steps": 1})
    return str(folder / "texts")
