"""Several translators that answer together."""

import json
from pathlib import Path

import pytest
import torch

import glassformer
from glassformer.cli.main import run
from glassformer.data.tokenizer import END, START
from glassformer.decode.options import DecodeOptions
from glassformer.errors import UserError
from glassformer.tasks.backend import TorchBackend
from glassformer.tasks.translator import Translator
from tests.fast.models import SETTINGS, lively, requests
from tests.tasks.test_translator import TEXTS, save_lively

SHORT = DecodeOptions(beam=3, max_len=12)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    made = tmp_path_factory.mktemp("models")
    return [save_lively(made / f"seed-{seed}", seed) for seed in (0, 1)]


@pytest.fixture(scope="module")
def both(folders: list[Path]) -> Translator:
    found = glassformer.load(folders[0], engine="torch", precision="fp32", others=folders[1:])
    assert isinstance(found, Translator)
    return found


def test_the_score_is_the_mean_of_what_both_give_each_token() -> None:
    models, asked = [lively(SETTINGS["paper"], seed) for seed in (0, 1)], requests(8)
    found = TorchBackend(models[0], others=models[1:]).generate(asked, SHORT)
    for request, (best, *_) in zip(asked, found, strict=True):
        answer = [*best.ids, END][: SHORT.max_len]
        source, target = torch.tensor([[*request.source, END]]), torch.tensor([[START, *answer[:-1]]])
        with torch.inference_mode():
            shares = torch.stack([model(source, target).softmax(dim=-1) for model in models]).mean(dim=0)
        expected = shares[0, range(len(answer)), answer].log().mean()
        assert best.score == pytest.approx(float(expected), abs=1e-4)


def test_they_say_something_else_than_one_alone(folders: list[Path], both: Translator) -> None:
    alone = [glassformer.load(folder, engine="torch", precision="fp32").translate(TEXTS) for folder in folders]  # type: ignore[union-attr]
    together = both.translate(TEXTS)
    assert len(together) == len(TEXTS)
    assert together not in alone


def test_a_batch_answers_as_each_text_alone(both: Translator) -> None:
    assert both.translate(TEXTS, max_len=20) == [both.translate([text], max_len=20)[0] for text in TEXTS]


def test_one_with_itself_is_one(folders: list[Path]) -> None:
    one = glassformer.load(folders[0], engine="torch", precision="fp32")
    twice = glassformer.load(folders[0], engine="torch", precision="fp32", others=[folders[0]])
    assert twice.translate(TEXTS, max_len=20) == one.translate(TEXTS, max_len=20)  # type: ignore[union-attr]


@pytest.mark.parametrize("options", [{"sample": True, "seed": 4}, {"beam": 2, "no_repeat": 2}])
def test_they_draw_and_obey_like_one(both: Translator, options: dict[str, int]) -> None:
    assert both.translate(TEXTS, max_len=9, **options) == both.translate(TEXTS, max_len=9, **options)


def test_phrases_are_contained(both: Translator) -> None:
    assert "train" in both.translate_all(["where is it"], SHORT, phrases=["train"])[0][0].text


def test_the_shell_names_how_many_answer(folders: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["translate", str(folders[0]), "a train", "--with", str(folders[1]), "--max-len", "9", "--json"])
    told = capsys.readouterr()
    assert "int8, 2 models together" in told.err  # by C++, or torch where there is no compiler
    assert len(json.loads(told.out)["translations"]) == 1


def test_evaluate_scores_them(folders: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("the train is late\tthe station\nwhere is it\ta train\n")
    with pytest.raises(SystemExit):
        run(["evaluate", str(folders[0]), str(pairs), "--with", str(folders[1]), "--max-len", "9", "--json"])
    assert json.loads(capsys.readouterr().out)["engine"].endswith("2 models together")


def test_what_cannot_answer_together_says_so(folders: list[Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="another source vocabulary"):
        glassformer.load(folders[0], others=[save_lively(tmp_path / "small", n_words=270)])
    with pytest.raises(UserError, match=r"others is one string, 'en-de'\. Give a list of models"):
        glassformer.load(folders[0], others="en-de")
    with pytest.raises(UserError, match="only translators answer together"):
        glassformer.load(folders[0], others=["shakespeare"])
    with pytest.raises(UserError, match="only translators answer together"):
        glassformer.load("shakespeare", others=folders)
    with pytest.raises(UserError, match="cannot run this: it runs one model at a time"):
        glassformer.load(folders[0], engine="ctranslate2", others=folders[1:]).translate(["a"])  # type: ignore[union-attr]
