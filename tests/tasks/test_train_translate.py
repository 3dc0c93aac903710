"""From a file of pairs to a model directory, end to end, on a language pair of our own."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import glassformer
from glassformer import config
from glassformer.data.files import write_text
from glassformer.data.pairs import open_pairs
from glassformer.data.split import hold_out
from glassformer.data.store import TokenStore
from glassformer.data.tokenizer import load_tokenizer, train_tokenizer
from glassformer.errors import UserError
from glassformer.model import EncoderDecoder
from glassformer.tasks.model_dir import LoadedModel, load_model
from glassformer.tasks.prepare import Tokenizers, load_pairs
from glassformer.tasks.train_translate import TrainingFiles, train_translate
from glassformer.tasks.translate import TranslateJob, TranslateRecipe
from glassformer.train.settings import TrainSettings
from tests.tasks.corpus import pairs, tiny_recipe, write_tsv


def training_files(folder: Path, valid: bool = False) -> TrainingFiles:
    rows = pairs()
    train = write_tsv(folder / "train.tsv", rows[:-20] if valid else rows)
    other = open_pairs([write_tsv(folder / "valid.tsv", rows[-20:])]) if valid else None
    return TrainingFiles(open_pairs([train]), other)


def trained(folder: Path, valid: bool = False, **changes: Any) -> Path:
    out = folder / "out"
    assert train_translate(training_files(folder, valid), tiny_recipe(**changes), out, device="cpu", quiet=True)
    return out


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("plain"))


def test_files_made(run: Path) -> None:
    names = {path.name for path in run.iterdir()} - {".lock"}
    assert names == {
        "settings.json",
        "model.safetensors",
        "tokenizer.json",
        "recipe.toml",
        "metrics.jsonl",
        "README.md",
        "losses.png",
        "checkpoints",
        "data",
        "early",
    }
    assert not list(run.rglob("*.part"))


def test_card(run: Path) -> None:
    card = (run / "README.md").read_text(encoding="utf-8")
    assert card.startswith("# out\n\nA translator trained by Glassformer; size tiny.")
    for row in ("| steps | 12 |", "| pairs | 300 |", "| bleu |", "| chrf |", "| valid_loss |"):
        assert row in card
    assert card.count("(wanted: ") == 3
    assert 'Use it: `glassformer translate out "…"`' in card


def test_picture(run: Path) -> None:
    data = (run / "losses.png").read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert len(data) > 5000


def test_recipe_reads_back_as_it_was(run: Path) -> None:
    read: TranslateRecipe = config.parse(TranslateRecipe, config.read_toml(run / "recipe.toml"))
    assert read == tiny_recipe(train={"lr": 5e-3, "accumulate": 1})  # what was left open is settled


def test_settings_tell_about_the_run(run: Path) -> None:
    about = json.loads((run / "settings.json").read_text(encoding="utf-8"))["about"]
    assert about["steps"] == 12
    assert about["glassformer"] == glassformer.__version__
    assert {"valid_loss", "bleu", "chrf", "exact"} <= about["validation"].keys()
    assert about["weights"].startswith(("of step", "the mean of steps"))
    assert about["sentences"] == 1
    assert "languages" not in about  # nothing says which


def test_languages_are_told_by_names(tmp_path: Path) -> None:
    for name, text in (
        ("train.en", "one\n"),
        ("train.de", "eins\n"),
        ("t.tsv", "EN\tpt_br\none\tum\n"),
        ("o.txt", "x\n"),
    ):
        (tmp_path / name).write_text(text)
    (tmp_path / "j.jsonl").write_text('{"translation": {"en": "one", "fr": "un"}}\n')

    def languages(*names: str) -> object:
        return open_pairs([tmp_path / name for name in names]).languages

    assert languages("train.en", "train.de") == ("en", "de")
    assert languages("t.tsv") == ("en", "pt_br")
    assert languages("j.jsonl") == ("en", "fr")
    assert languages("train.en", "o.txt") is None
    several = TrainingFiles(open_pairs([tmp_path / "t.tsv"]), None, ("fi", "sv"))
    assert several.about == {"sentences": 1, "languages": ["fi", "sv"]}


def test_metrics(run: Path) -> None:
    entries = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    validations = [e for e in entries if "valid_loss" in e]
    assert [e["step"] for e in validations] == [4, 8, 12]
    assert all(len(e["samples"]) == 3 and e["valid_loss"] > 0 for e in validations)


def test_model_loads_and_answers(run: Path) -> None:
    loaded = load_model(run)
    assert loaded.task == "translate"
    assert loaded.source_tokenizer is loaded.tokenizer
    answers = glassformer.load(run, "torch").translate(["two red cats here", ""], max_len=8)
    assert len(answers) == 2


def test_held_out_pairs_are_not_learned_from(run: Path) -> None:
    tokenizer = load_tokenizer(run / "tokenizer.json")
    sides = {
        name: [tokenizer.decode(ids.tolist()) for ids in TokenStore(run / "data" / name)] for name in ("train", "valid")
    }
    train, valid = (set(zip(side[::2], side[1::2], strict=True)) for side in sides.values())
    held = hold_out(open_pairs([run.parent / "train.tsv"]))
    assert valid == {(pair.source, pair.target) for pair in held.valid()}
    assert len(valid) == 30
    assert not train & valid
    assert train | valid == set(pairs())


def test_validation_file(tmp_path: Path) -> None:
    out = trained(tmp_path, valid=True)
    tokenizer = load_tokenizer(out / "tokenizer.json")
    texts = [tokenizer.decode(ids.tolist()) for ids in TokenStore(out / "data" / "valid")]
    assert list(zip(texts[::2], texts[1::2], strict=True)) == pairs()[-20:]


def test_separate_vocabularies(tmp_path: Path) -> None:
    out = trained(tmp_path, tokenizer={"joint": False, "size": 300}, train={"steps": 2})
    loaded = load_model(out)
    assert loaded.source_tokenizer is not loaded.tokenizer
    source, target = (set(t.core.get_vocab()) for t in (loaded.source_tokenizer, loaded.tokenizer))
    assert source != target
    assert len(glassformer.load(out, "torch").translate(["two red cats here"], max_len=8)) == 1


def test_no_vocabulary_is_left_of_an_earlier_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start with two vocabularies was killed; the one after it has one for both sides, and is killed too."""
    write_text(tmp_path / "out/source_tokenizer.json", train_tokenizer(["another"], "char", 300).to_json())

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("glassformer.tasks.train_translate.make_model", killed)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path)
    assert (tmp_path / "out/data/identity").exists()
    assert not (tmp_path / "out/source_tokenizer.json").exists()


@pytest.mark.parametrize("kind", ["char", "word"])
def test_other_tokenizers(tmp_path: Path, kind: str) -> None:
    out = trained(tmp_path, tokenizer={"kind": kind, "size": "none"}, train={"steps": 2})
    tokenizer = load_model(out).tokenizer
    n_tokens = len(tokenizer.encode("two red cats"))
    assert n_tokens == (12 if kind == "char" else 3)


def test_tokenizer_file(tmp_path: Path) -> None:
    texts = [text for pair in pairs() for text in pair]
    own = train_tokenizer(texts, "bpe", 290)
    write_text(tmp_path / "own.json", own.to_json())
    out = trained(tmp_path, tokenizer={"kind": str(tmp_path / "own.json"), "size": "none"}, train={"steps": 2})
    assert (out / "tokenizer.json").read_text(encoding="utf-8") == own.to_json()


def test_learns_from_the_pairs(tmp_path: Path) -> None:
    out = trained(tmp_path, train={"steps": 60, "lr": 1e-2, "validations": 2})
    entries = [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    first, last = ([e["valid_loss"] for e in entries if "valid_loss" in e][i] for i in (0, -1))
    assert last < first < 5


def test_existing_run_is_refused(run: Path) -> None:
    before = (run / "model.safetensors").read_bytes()
    with pytest.raises(UserError) as caught:
        train_translate(training_files(run.parent), tiny_recipe(), run, quiet=True)
    assert f"{run} holds a run already." in caught.value.message
    assert "--resume" in caught.value.hint
    assert (run / "model.safetensors").read_bytes() == before


def test_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(UserError, match="is a file, not a folder"):
        train_translate(training_files(tmp_path), tiny_recipe(), tmp_path / "out", quiet=True)


def test_finished_run_taken_up_is_the_same_model(run: Path) -> None:
    before = {name: (run / name).read_bytes() for name in ("model.safetensors", "settings.json", "tokenizer.json")}
    assert train_translate(training_files(run.parent), tiny_recipe(), run, resume=True, device="cpu", quiet=True)
    assert {name: (run / name).read_bytes() for name in before} == before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="helpers are for Linux")
def test_a_run_is_taken_up_with_other_cores_than_it_was_begun_with(tmp_path: Path) -> None:
    before, train = torch.get_num_threads(), {"steps": 2, "batch_tokens": 1024}
    try:
        torch.set_num_threads(2)
        out = trained(tmp_path, train=train)
        begun = config.read_toml(out / "recipe.toml")["train"]
        assert (begun["accumulate"], begun["batch_tokens"]) == (2, 512)
        torch.set_num_threads(1)
        files = training_files(tmp_path)
        assert train_translate(files, tiny_recipe(train=train), out, resume=True, device="cpu", quiet=True)
        asked = tiny_recipe(train={**train, "accumulate": 1})
        with pytest.raises(UserError, match=r"was begun with train\.accumulate = 2 \(now 1\)"):
            train_translate(files, asked, out, resume=True, device="cpu", quiet=True)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("change", [{"lr": 1e-4}, {"seed": 2}, {"steps": 13}, {"minutes": 1.0}])
def test_other_settings_are_refused(run: Path, change: dict[str, Any]) -> None:
    """Steps and minutes too: the schedule of the learning rate follows from them."""
    [(key, value)] = change.items()
    with pytest.raises(UserError, match=rf"was begun with train\.{key} = \S+ \(now {value}\)\."):
        train_translate(training_files(run.parent), tiny_recipe(train=change), run, resume=True, quiet=True)


def test_other_data_is_refused(run: Path, tmp_path: Path) -> None:
    other = write_tsv(tmp_path / "other.tsv", pairs()[:-1])
    with pytest.raises(UserError, match=r"was begun with other data\."):
        train_translate(TrainingFiles(open_pairs([other]), None), tiny_recipe(), run, resume=True, quiet=True)


def test_refused_data_changes_nothing(tmp_path: Path) -> None:
    out = trained(tmp_path, train={"steps": 2})
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    other = write_tsv(tmp_path / "other.tsv", [("nothing at all", "überhaupt nichts"), *pairs()[::-2]])
    with pytest.raises(UserError, match=r"was begun with other data\."):
        train_translate(
            TrainingFiles(open_pairs([other]), None), tiny_recipe(train={"steps": 2}), out, resume=True, quiet=True
        )
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_nothing_looks_finished_before_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure in saving the very last weights leaves no settings.json, and the run can be taken up."""
    out = tmp_path / "out"
    seen: list[bool] = []

    def fail(*_: object, **__: object) -> None:
        seen.append((out / "settings.json").exists())
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("glassformer.tasks.model_dir.save", fail)
        with pytest.raises(UserError, match=r"model.safetensors could not be written: No space left on device"):
            trained(tmp_path, train={"steps": 2})
    assert seen == [False]
    with pytest.raises(UserError, match="is not a finished model"):
        load_model(out)
    files = training_files(tmp_path)
    assert train_translate(files, tiny_recipe(train={"steps": 2}), out, resume=True, device="cpu", quiet=True)
    assert load_model(out).task == "translate"


def test_same_seed_same_model(tmp_path: Path) -> None:
    first, second = (trained(tmp_path / name, train={"steps": 3}) for name in "ab")
    other = trained(tmp_path / "c", train={"steps": 3, "seed": 2})
    bytes_of = [(path / "model.safetensors").read_bytes() for path in (first, second, other)]
    assert bytes_of[0] == bytes_of[1] != bytes_of[2]


def test_every_other_batch_is_turned_in_the_first_epochs(tmp_path: Path) -> None:
    made = load_model(trained(tmp_path, both_ways=2, train={"steps": 3}))
    data = load_pairs(tmp_path / "out/data/train", Tokenizers(made.tokenizer, made.tokenizer))
    assert isinstance(made.model, EncoderDecoder)
    job = TranslateJob(made.model, data, data, TrainSettings(steps=3, batch_tokens=64), both_ways=2)
    for epoch in range(4):
        batches = [job.load(planned) for planned in job.plan_epoch(epoch)]
        said = [{made.tokenizer.decode(ids) for ids in batch.target_out.tolist()} for batch in batches]
        targets = {made.tokenizer.decode(ids.tolist()) for ids in data.target.tokens}
        assert [words <= targets for words in said] == [epoch >= 2 or i % 2 == 0 for i in range(len(batches))]
    assert len(batches) > 2


def test_both_ways_want_one_vocabulary(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="one vocabulary for both sides"):
        trained(tmp_path, tokenizer={"joint": False}, both_ways=1)


def test_pairs_that_are_too_long_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = training_files(tmp_path)
    assert train_translate(files, tiny_recipe(max_tokens=8, train={"steps": 2}), tmp_path / "out", device="cpu")
    assert "with more than 8 tokens on a side" in capsys.readouterr().err


def test_all_pairs_too_long(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No pair is left to use: all are too long"):
        trained(tmp_path, max_tokens=1)
    assert not (tmp_path / "out" / "settings.json").exists()


def reading(*_: object) -> None:
    raise RuntimeError("The data is read.")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"dropout": 1.5}, r"dropout is 1\.5\."),
        ({"start": "{model}", "dropout": 1.5}, r"dropout is 1\.5\."),
        ({"model": {"d_model": 7}}, "there is no setting d_model"),
        (
            {"size": "small", "model": {"encoder": {"n_layers": 2.5}}},
            r"encoder\.n_layers is 2\.5, but it must be a whole",
        ),
        ({"model": {"encoder": {"d_model": 7}}}, "d_model is 7, which attention.n_heads 4 does not divide"),
        ({"start": "{model}", "size": "tiny"}, "whose size, shape and vocabulary are given"),
        ({"start": "{model}", "tokenizer": {"kind": "char"}}, "whose size, shape and vocabulary are given"),
        ({"start": "shakespeare"}, "a translator cannot start from it"),
        ({"start": "{folder}", "size": "tiny"}, "is not a finished model"),
        ({"tokenizer": {"kind": "{folder}/junk.tsv"}}, r"junk\.tsv is (no|not a) tokenizer"),
    ],
)
def test_wrong_settings_are_refused_before_the_data_is_read(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: dict[str, Any], said: str
) -> None:
    monkeypatch.setattr("glassformer.tasks.train_translate.check_pairs", reading)
    (tmp_path / "junk.tsv").write_text("one\teins\n")
    named = json.loads(json.dumps(data).replace("{model}", str(run)).replace("{folder}", str(tmp_path)))
    recipe: TranslateRecipe = config.parse(TranslateRecipe, named)
    with pytest.raises(UserError, match=said):
        train_translate(training_files(tmp_path), recipe, tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()


def test_settings_that_only_the_size_of_many_pairs_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are refused when the pairs are counted, and nothing is written."""
    heads = {"attention": {"n_heads": 256}}  # base is 512 wide, tiny 128
    recipe = TranslateRecipe(model={"encoder": heads, "decoder": heads})
    with pytest.raises(UserError, match=r"which attention\.n_heads 256 does not divide"):
        train_translate(training_files(tmp_path), recipe, tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr("glassformer.tasks.train_translate.check_pairs", reading)
    with pytest.raises(RuntimeError, match="data is read"):
        train_translate(training_files(tmp_path), recipe, tmp_path / "out", quiet=True)


def test_size_that_is_no_encoder_decoder(tmp_path: Path) -> None:
    recipe = TranslateRecipe(size="gpt-2")
    with pytest.raises(UserError, match="gpt-2"):
        train_translate(training_files(tmp_path), recipe, tmp_path / "out", quiet=True)
    assert torch.is_grad_enabled()


def killed(*_: object) -> None:
    raise KeyboardInterrupt


def prepared_only(monkeypatch: pytest.MonkeyPatch, files: TrainingFiles, out: Path, **changes: Any) -> None:
    """A start that is killed before its first step."""
    with monkeypatch.context() as patch:
        patch.setattr("glassformer.tasks.train_translate.make_model", killed)
        with pytest.raises(KeyboardInterrupt):
            train_translate(files, tiny_recipe(**changes), out, device="cpu", quiet=True)


@pytest.mark.parametrize("resume", [False, True])
def test_exchanged_sides_are_other_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resume: bool) -> None:
    table, out = write_tsv(tmp_path / "h.tsv", [("en", "de"), *pairs()]), tmp_path / "out"
    back, there = (TrainingFiles(open_pairs([table], *names), None) for names in (("de", "en"), ("en", "de")))
    prepared_only(monkeypatch, back, out, train={"steps": 2})
    assert train_translate(there, tiny_recipe(train={"steps": 2}), out, resume, device="cpu", quiet=True)
    tokenizer = load_tokenizer(out / "tokenizer.json")
    texts = [tokenizer.decode(ids.tolist()) for ids in TokenStore(out / "data" / "train")]
    assert set(zip(texts[::2], texts[1::2], strict=True)) < set(pairs())
    with pytest.raises(UserError, match=r"was begun with other data\."):
        train_translate(back, tiny_recipe(train={"steps": 2}), out, resume=True, device="cpu", quiet=True)


def test_what_two_starts_made_is_not_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is killed when it has written its tokenizer; then the first is tried again."""
    files, out = training_files(tmp_path), tmp_path / "out"
    prepared_only(monkeypatch, files, out, train={"steps": 2})
    with monkeypatch.context() as patch:
        patch.setattr("glassformer.tasks.train_translate.encode_pairs", killed)
        with pytest.raises(KeyboardInterrupt):
            train_translate(files, tiny_recipe(tokenizer={"kind": "char"}), out, device="cpu", quiet=True)
    assert train_translate(files, tiny_recipe(train={"steps": 2}), out, device="cpu", quiet=True)
    assert load_model(out).tokenizer.vocab_size == 320


def test_the_model_to_start_from_is_read_once(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []

    def counting(folder: Path) -> LoadedModel:
        read.append(folder)
        return load_model(folder)

    monkeypatch.setattr("glassformer.tasks.translate_model.load_model", counting)
    recipe = TranslateRecipe(start=str(run), train=tiny_recipe(train={"steps": 1}).train)
    assert train_translate(training_files(tmp_path), recipe, tmp_path / "out", device="cpu", quiet=True)
    assert read == [run]
