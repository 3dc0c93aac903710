"""Training to fill blanks, and filling them."""

import dataclasses
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from glassformer import config
from glassformer.api import load, load_filler
from glassformer.data.documents import open_documents
from glassformer.data.store import TokenStore
from glassformer.data.tokenizer import load_tokenizer
from glassformer.errors import UserError
from glassformer.tasks.fill import FillJob, FillRecipe
from glassformer.tasks.filler import Filler
from glassformer.tasks.text import TextData, TextFiles
from glassformer.tasks.train_fill import train_fill

# What each animal does is always the same, so a blank can be known.
DOES = {"dog": "barks", "cat": "purrs", "cow": "moos", "bird": "sings", "lion": "roars", "bee": "hums"}


def write_text(folder: Path) -> Path:
    random = np.random.default_rng(0)
    animals = list(DOES)
    lines = []
    for _ in range(1500):
        animal = animals[random.integers(len(animals))]
        lines.append(f"In the {['morning', 'evening', 'night'][random.integers(3)]} the {animal} {DOES[animal]}.")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "book.txt").write_text("\n".join(lines) + "\n")
    return folder / "book.txt"


def recipe_of(**changes: object) -> FillRecipe:
    data = {
        "context": 32,
        "size": "tiny",
        "dropout": 0.0,
        "model": {"encoder": {"d_model": 64, "n_layers": 2, "feed_forward": {"d_ff": 256}}},
        "tokenizer": {"size": 400},
        # With Adam it takes three times as many steps to see what animals do.
        "train": {
            "steps": 450,
            "batch_tokens": 256,
            "validations": 2,
            "optimizer": "muon",
            "lr": 3e-3,
            "dropout_epochs": 0,
        },
    }
    return config.parse(FillRecipe, config.merge(data, changes), "The test")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fill")
    files = TextFiles(open_documents([write_text(folder)]), None)
    assert train_fill(files, recipe_of(), folder / "out", device="cpu", quiet=True)
    return folder / "out"


def test_it_knows_what_animals_do(trained: Path) -> None:
    filler = load_filler(trained)
    found = filler.fill([f"In the night the {animal} ___." for animal in DOES], top=3)
    best = [one.blanks[0][0].word for one in found]
    assert sum(word == does for word, does in zip(best, DOES.values(), strict=True)) >= 5
    assert all(len(one.blanks[0]) == 3 for one in found)
    for guesses in (one.blanks[0] for one in found):
        p = [guess.p for guess in guesses]
        assert p == sorted(p, reverse=True)
        assert 0 < sum(p) <= 1.000001


def test_a_batch_answers_as_one_by_one(trained: Path) -> None:
    filler = load(trained)
    assert isinstance(filler, Filler)
    texts = ["the ___ purrs.", "In the ___ the dog ___.", "In the morning the lion [MASK] and so on and so on."]
    together, alone = filler.fill(texts), [filler.fill([text])[0] for text in texts]
    assert [one.text for one in together] == [one.text for one in alone]
    for a, b in zip(together, alone, strict=True):
        for first, second in zip(a.blanks, b.blanks, strict=True):
            assert [g.p for g in first] == pytest.approx([g.p for g in second], abs=1e-5)
    assert together[1].text.startswith("In the ")
    assert "_" not in together[1].text


def test_only_blanks_get_scores(trained: Path) -> None:
    filler = load_filler(trained)
    n_scored: list[int] = []
    filler.model.head.register_forward_hook(lambda _, __, scores: n_scored.append(scores.shape[:-1].numel()))
    filler.fill(["In the ___ the dog ___.", "the ___ purrs."])
    assert sum(n_scored) == 3


@pytest.mark.parametrize("context", [8, 9, 12])
def test_narrow_windows_are_cut_into_what_is_left_of_them(trained: Path, context: int) -> None:
    data = TextData(TokenStore(trained / "data/train"), load_tokenizer(trained / "tokenizer.json"))
    job = FillJob(load_filler(trained).model, data, data, recipe_of(context=context))
    batches = [job.load(planned) for planned in job.plan_epoch(0)[:60]]
    widths = {batch.seen.shape[1] - 2 for batch in batches}
    assert widths == {context - 2, *((context - 2) // cut for cut in (2, 4, 8) if context - 2 >= cut)}
    assert all(job.n_tokens(batch) > 0 for batch in batches)


def test_a_run_that_was_stopped_goes_on_to_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = TextFiles(open_documents([write_text(tmp_path)]), None)
    recipe = recipe_of(train={"steps": 20})
    assert train_fill(files, recipe, tmp_path / "whole", device="cpu", quiet=True)
    seen = 0
    load_batch = FillJob.load

    def load_and_stop(self: FillJob, planned: object) -> object:
        nonlocal seen
        seen += 1
        if seen == 7:
            signal.raise_signal(signal.SIGINT)
        return load_batch(self, planned)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(FillJob, "load", load_and_stop)
        assert not train_fill(files, recipe, tmp_path / "parts", device="cpu", quiet=True)
    assert train_fill(files, recipe, tmp_path / "parts", resume=True, device="cpu", quiet=True)
    whole, parts = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_documents_do_not_see_each_other(tmp_path: Path) -> None:
    """Another document in the same row changes nothing at the blanks of this one."""
    from glassformer.tasks.fill import FILL, guessed
    from glassformer.tasks.text import make_model

    path = tmp_path / "two.jsonl"
    path.write_text("".join(f'{{"text": "{word * 8}"}}\n' for word in ("one ", "two ", "three ") * 200))
    files = TextFiles(open_documents([path]), None)
    recipe = recipe_of(train={"steps": 1}, context=24)
    train_fill(files, recipe, tmp_path / "out", device="cpu", quiet=True)
    data = TextData(TokenStore(tmp_path / "out/data/train"), load_tokenizer(tmp_path / "out/tokenizer.json"))
    model = make_model(FILL, recipe, data.tokenizer.vocab_size).eval()
    job = FillJob(model, data, data, recipe)  # type: ignore[arg-type]
    batch = job._batch(data, np.array([0]), 20, np.random.default_rng(3))
    assert batch.mask is not None
    with torch.inference_mode():
        before = guessed(model, batch)  # type: ignore[arg-type]
        first = batch.mask[0, 0, 0]  # the places of the first document
        changed = batch.seen.clone()
        changed[0, ~first] = 5
        after = guessed(model, dataclasses.replace(batch, seen=changed))  # type: ignore[arg-type]
    in_first = first[batch.chosen[0]]
    assert in_first.any()
    torch.testing.assert_close(before[in_first], after[in_first])
    assert not torch.equal(before, after)


@pytest.mark.parametrize(
    ("text", "words"),
    [("no blank here", "There is no blank"), (7, "which is no text")],
)
def test_bad_texts_are_refused(trained: Path, text: object, words: str) -> None:
    with pytest.raises(UserError, match=words):
        load_filler(trained).fill([text])  # type: ignore[list-item]


def test_single_characters(tmp_path: Path) -> None:
    files = TextFiles(open_documents([write_text(tmp_path)]), None)
    recipe = recipe_of(tokenizer={"kind": "char", "size": None}, train={"steps": 5})
    assert train_fill(files, recipe, tmp_path / "out", device="cpu", quiet=True)
    found = load_filler(tmp_path / "out").fill(["the d__ barks"])[0]
    assert len(found.blanks) == 2
    assert len(found.text) == len("the d__ barks")


def test_a_model_for_something_else_is_refused(trained: Path) -> None:
    with pytest.raises(UserError, match="not for filling blanks"):
        load_filler("en-de")
