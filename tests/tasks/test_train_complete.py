"""From text to a language model, end to end, and how well it is measured."""

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import glassformer
from glassformer import config
from glassformer.data.documents import open_documents
from glassformer.data.store import TokenStore
from glassformer.data.tokenizer import END, START, Tokenizer
from glassformer.errors import UserError
from glassformer.tasks.complete import CompleteRecipe
from glassformer.tasks.completer import Completer
from glassformer.tasks.evaluate_complete import evaluate_complete
from glassformer.tasks.model_dir import load_model
from glassformer.tasks.text import TextFiles
from glassformer.tasks.train_complete import train_complete

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
ORDER = random.Random(0).choices(range(7), k=210)
TEXT = "".join(f"So: {DAYS[i]} {DAYS[(i + 1) % 7]} {DAYS[(i + 2) % 7]}.\n" for i in ORDER)
SHAPE = {"decoder": {"d_model": 32, "n_layers": 2, "attention": {"n_heads": 2}, "feed_forward": {"d_ff": 64}}}
Kind = dict[str, Any]


def recipe_of(**changes: Any) -> CompleteRecipe:
    data: Kind = {
        "size": "tiny",
        "model": SHAPE,
        "context": 32,
        "tokenizer": {"kind": "char"},
        "train": {"steps": 30, "batch_tokens": 256, "validations": 3, "lr": 1e-2, "precision": "fp32"},
    }
    recipe: CompleteRecipe = config.parse(CompleteRecipe, config.merge(data, changes))
    return recipe


def files_of(folder: Path, text: str = TEXT) -> TextFiles:
    (folder / "days.txt").write_text(text)
    return TextFiles(open_documents([folder / "days.txt"]), None)


def trained(folder: Path, **changes: Any) -> Path:
    assert train_complete(files_of(folder), recipe_of(**changes), folder / "out", device="cpu", quiet=True)
    return folder / "out"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("days"), tokenizer={"kind": "word"}, dropout=0.0, train={"steps": 150})


def test_learns_the_days(run: Path) -> None:
    model = glassformer.load(run)
    assert isinstance(model, Completer)
    answers = model.complete(["So: monday", "So: friday"], temperature=0, stop=("\n",))
    assert answers == [" tuesday wednesday.", " saturday sunday."]


def test_settings_say_how_it_was_made(run: Path) -> None:
    about = json.loads((run / "settings.json").read_text())["about"]
    assert about["context"] == 32
    assert about["documents"] == 1
    assert about["bytes"] == len(TEXT)
    valid = TEXT[-round(0.1 * len(TEXT)) :]
    n_tokens = len(load_model(run).tokenizer.encode(valid)) + 1
    bits = about["validation"]["valid_loss"] * n_tokens / math.log(2) / len(valid)
    assert about["validation"]["bits_per_byte"] == pytest.approx(bits, rel=0.1)
    assert "language model trained by Glassformer" in (run / "README.md").read_text()


def test_the_end_is_held_out(run: Path) -> None:
    model = load_model(run)
    train, valid = (TokenStore(run / "data" / part).ids.tolist() for part in ("train", "valid"))
    assert model.tokenizer.decode(train) + model.tokenizer.decode(valid) == TEXT
    assert len(model.tokenizer.decode(valid)) == round(0.1 * len(TEXT))
    assert (train[0], train[-1], valid[0], valid[-1]) == (START, END, START, END)


def test_a_prompt_begins_with_the_mark_only_where_that_was_learned(run: Path, tmp_path: Path) -> None:
    """A book has one beginning, which no model learns from; many short texts have many."""
    book = glassformer.load(run)
    assert isinstance(book, Completer)
    assert book.prompt_ids("So: monday") == book.tokenizer.encode("So: monday")
    assert book.prompt_ids("") == book.tokenizer.encode("\n")
    lines = tmp_path / "days.jsonl"
    lines.write_text("".join(json.dumps({"text": line}) + "\n" for line in TEXT.splitlines()))
    quick = recipe_of(train={"steps": 2})
    many = TextFiles(open_documents([lines]), None)
    assert train_complete(many, quick, tmp_path / "many", device="cpu", quiet=True)
    more = config.parse(CompleteRecipe, {"start": str(tmp_path / "many"), "context": 32, "train": {"steps": 2}})
    assert train_complete(files_of(tmp_path), more, tmp_path / "more", device="cpu", quiet=True)
    for name in ("many", "more"):  # what was learned once is not forgotten
        model = glassformer.load(tmp_path / name)
        assert isinstance(model, Completer)
        assert model.prompt_ids("So:") == [START, *model.tokenizer.encode("So:")]
        assert model.prompt_ids("") == [START]


@pytest.mark.parametrize("kind", ["bpe", "byte", "word"])
def test_other_tokens(tmp_path: Path, kind: str) -> None:
    out = trained(tmp_path, tokenizer={"kind": kind}, train={"steps": 2})
    found = glassformer.load(out).complete(["After "], max_tokens=3, seed=1)
    assert len(found) == 1


def test_a_stopped_run_ends_with_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from glassformer.train import loop

    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
    whole = trained(tmp_path / "whole")
    step = loop.Trainer._step

    def stopping(self: loop.Trainer) -> tuple[float, int]:
        self.stop_requested = self.progress.step == 16
        return step(self)

    with monkeypatch.context() as patch:
        patch.setattr(loop.Trainer, "_step", stopping)
        out = tmp_path / "parts" / "out"
        assert not train_complete(files_of(tmp_path / "parts"), recipe_of(), out, device="cpu", quiet=True)
    assert train_complete(files_of(tmp_path / "parts"), recipe_of(), out, resume=True, device="cpu", quiet=True)
    assert (out / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def test_fine_tuning_starts_from_a_model(run: Path, tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("So: monday friday.\n" * 60)
    files = TextFiles(open_documents([tmp_path / "more.txt"]), None)
    recipe = CompleteRecipe(start=str(run), context=32, train=recipe_of(train={"steps": 40}).train)
    assert train_complete(files, recipe, tmp_path / "out", device="cpu", quiet=True)
    model = glassformer.load(tmp_path / "out")
    assert model.complete(["So: monday"], temperature=0, stop=("\n",)) == [" friday."]
    assert load_model(tmp_path / "out").tokenizer.to_json() == load_model(run).tokenizer.to_json()


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        ({"size": "giant"}, "There is no size 'giant'"),
        ({"size": "translate-tiny", "model": {}}, "is of another shape"),
        ({"tokenizer": {"kind": "runes"}}, "There is no tokenizer 'runes'"),
        ({"start": "nowhere", "size": "auto"}, "There is no model 'nowhere'"),
        ({"start": "en-de", "size": "auto", "model": {}}, "is a model for translate"),
    ],
    ids=str,
)
def test_senseless_recipes_write_nothing(tmp_path: Path, change: Kind, answer: str) -> None:
    recipe: CompleteRecipe = config.parse(CompleteRecipe, {"size": "tiny", **change})
    with pytest.raises(UserError, match=answer):
        train_complete(files_of(tmp_path), recipe, tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()


def test_too_little_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="only 12 characters"):
        train_complete(files_of(tmp_path, "hello there\n"), recipe_of(), tmp_path / "out", quiet=True)


@torch.inference_mode()
def by_hand(model: Completer, ids: list[int], context: int, stride: int) -> float:
    """Each token from the window that the definition gives it, one at a time."""
    total, n = 0.0, len(ids) - 1
    for place in range(n):
        end = min(n, context + stride * max(0, math.ceil((place + 1 - context) / stride)))
        begin = max(0, end - context)
        scores = model.model(torch.tensor([ids[begin : place + 1]]))[0, -1].log_softmax(dim=-1)
        total += float(scores[ids[place + 1]])
    return total


@pytest.mark.parametrize("stride", [1, 7, 16, 32, None])
def test_sliding_window_by_its_definition(run: Path, tmp_path: Path, stride: int | None) -> None:
    model = glassformer.load(run)
    assert isinstance(model, Completer)
    text = TEXT[-600:]
    (tmp_path / "test.txt").write_text(text)
    report = evaluate_complete(model, open_documents([tmp_path / "test.txt"]), stride=stride)
    ids = [START, *model.tokenizer.encode(text), END]
    assert report.n_tokens == len(ids) - 1
    assert -report.loss * report.n_tokens == pytest.approx(by_hand(model, ids, 32, stride or 16), rel=1e-4)
    assert report.bits_per_byte == pytest.approx(report.loss * report.n_tokens / len(text) / math.log(2))
    assert report.perplexity == pytest.approx(math.exp(report.loss))


def test_scores_are_never_made_for_all_tokens_at_once(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two windows and five rows of scores at a time give the numbers of all at once."""
    model = glassformer.load(run)
    assert isinstance(model, Completer)
    (tmp_path / "test.txt").write_text(TEXT[-600:])
    whole = evaluate_complete(model, open_documents([tmp_path / "test.txt"]))
    sizes: list[tuple[int, ...]] = []
    model.model.head.register_forward_hook(lambda _, __, scores: sizes.append(tuple(scores.shape)))
    model.model.source.register_forward_hook(lambda _, given, __: sizes.append(tuple(given[0].shape)))
    monkeypatch.setattr("glassformer.tasks.evaluate_complete.PIECE", 5 * model.tokenizer.vocab_size)
    monkeypatch.setattr("glassformer.tasks.evaluate_complete.TOKENS", 2 * 32)
    parts = evaluate_complete(model, open_documents([tmp_path / "test.txt"]))
    assert parts.loss == pytest.approx(whole.loss, rel=1e-5)
    assert max(math.prod(size) for size in sizes) == 5 * model.tokenizer.vocab_size
    assert max(size[0] for size in sizes) == 2


def test_documents_are_measured_apart_and_rungs_stand_beside(run: Path, tmp_path: Path) -> None:
    model = glassformer.load(run)
    assert isinstance(model, Completer)
    documents = [TEXT[:50], TEXT[300:420]]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in documents)
    (tmp_path / "both.jsonl").write_text(lines)
    both = evaluate_complete(model, open_documents([tmp_path / "both.jsonl"]))
    alone = []
    for i, text in enumerate(documents):
        (tmp_path / f"{i}.txt").write_text(text)
        alone.append(evaluate_complete(model, open_documents([tmp_path / f"{i}.txt"])))
    assert both.loss * both.n_tokens == pytest.approx(sum(r.loss * r.n_tokens for r in alone), rel=1e-5)
    names = [row.name for row in both.rungs]
    assert names[:3] == ["uniform", "unigram", "first order"]
    assert both.rungs_from == "the model's own training text"
    assert both.rungs[0].bits_per_byte == pytest.approx(8.0)
    assert both.rungs[-1].bits_per_byte < both.rungs[1].bits_per_byte
    given = evaluate_complete(model, open_documents([tmp_path / "0.txt"]), open_documents([tmp_path / "1.txt"]))
    assert given.rungs[0].n_train_bytes == 120


def test_uniform_model_has_the_bits_of_its_vocabulary(tmp_path: Path, run: Path) -> None:
    model = glassformer.load(run)
    assert isinstance(model, Completer)
    head: Any = model.model.head
    with torch.no_grad():
        head.w.weight.zero_()
    (tmp_path / "t.txt").write_text("abc")
    report = evaluate_complete(model, open_documents([tmp_path / "t.txt"]))
    tokenizer: Tokenizer = model.tokenizer
    assert report.loss == pytest.approx(float(np.log(tokenizer.vocab_size)), rel=1e-5)


def test_talks_are_learned_as_the_template_writes_them(tmp_path: Path) -> None:
    """Marks inside a talk begin no new document, and talks do not see each other."""
    from glassformer.data.documents import read_documents
    from glassformer.data.store import write_pieces
    from glassformer.data.tokenizer import Marks
    from glassformer.tasks.text import TextData, encoded
    from tests.tasks.test_chat import TALK, TEMPLATE
    from tests.tasks.test_marks import foreign

    path = tmp_path / "talks.jsonl"
    path.write_text(json.dumps({"messages": TALK}) + "\n" + json.dumps({"messages": TALK[:2]}) + "\n")
    tokenizer = foreign(Marks(256, (257,), TEMPLATE))
    store = write_pieces(tmp_path / "s", encoded(read_documents(open_documents([path])), tokenizer), 300)
    first, second = (tokenizer.core.decode(ids.tolist(), skip_special_tokens=False) for ids in store)
    assert first.count("<|start|>") == 4  # the system's, and three messages
    assert "assistant\nHello" in first
    assert "A?" in first
    assert "A?" not in second
    assert TextData(store, tokenizer).documents.tolist() == [0, store.lengths[0]]


@pytest.mark.parametrize("row", [{"messages": "hello"}, {"messages": [{"role": "user"}]}, {"messages": []}])
def test_broken_talks_are_named(tmp_path: Path, row: dict[str, object]) -> None:
    from glassformer.data.documents import read_documents

    path = tmp_path / "talks.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(UserError, match="are no talk"):
        list(read_documents(open_documents([path])))


def test_talks_need_a_template(tmp_path: Path) -> None:
    path = tmp_path / "talks.jsonl"
    row = {"messages": [{"role": "user", "content": "How are you today? " * 20}]}
    path.write_text((json.dumps(row) + "\n") * 20)
    files = TextFiles(open_documents([path]), None)
    with pytest.raises(UserError, match="no chat template"):
        train_complete(files, recipe_of(), tmp_path / "out", device="cpu", quiet=True)


def test_another_field_is_other_data(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": TEXT, "other": TEXT.upper()}) + "\n")
    text, other = (TextFiles(open_documents([path], field), None) for field in ("text", "other"))
    recipe = recipe_of(train={"steps": 1})
    assert train_complete(text, recipe, tmp_path / "out", device="cpu", quiet=True)
    with pytest.raises(UserError, match=r"was begun with other data\."):
        train_complete(other, recipe, tmp_path / "out", resume=True, device="cpu", quiet=True)
