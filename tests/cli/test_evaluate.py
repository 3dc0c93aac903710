"""`glassformer evaluate` from the shell's side: a table, JSON, and one sentence when something is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from glassformer.cli.main import run
from glassformer.data.tokenizer import train_tokenizer
from glassformer.model import build
from glassformer.model.settings import EncoderDecoderSettings
from glassformer.tasks.model_dir import save_model
from tests.builders import stack, tokens

ROWS = [
    ("the old house", "das alte Haus"),
    ("a new dog sees the sea", "ein neuer Hund sieht das Meer"),
    ("good morning", "guten Morgen"),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model that has learned nothing: here only its answers' way to the page matters."""
    folder = tmp_path_factory.mktemp("model")
    torch.manual_seed(0)
    tokenizer = train_tokenizer([text for row in ROWS for text in row], "char", 300)
    table = tokens(vocab_size=tokenizer.vocab_size)
    settings = EncoderDecoderSettings(source=table, target=table, encoder=stack(), decoder=stack())
    save_model(folder, "translate", build(settings), tokenizer)
    return str(folder)


def save(folder: Path, text: str, name: str = "test.tsv") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def table(rows: list[tuple[str, str]]) -> str:
    return "".join(f"{source}\t{target}\n" for source, target in rows)


def evaluate(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        run(["evaluate", *arguments, "--engine", "torch", "--precision", "fp32", "--max-len", "12"])
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


def test_the_report_as_json(tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]) -> None:
    data, training = save(tmp_path, table(ROWS) + "lonely\n"), save(tmp_path, table(ROWS[:1]), "train.tsv")
    code, out, _ = evaluate(capsys, model, data, "--memory", training, "--beam", "2", "--json")
    assert code == 0
    report: dict[str, Any] = json.loads(out)
    assert report["model"] == model
    assert report["engine"] == "torch fp32"
    assert (report["n_pairs"], report["n_bad"], report["beam"], report["tokenize"]) == (3, 1, 2, "13a")
    assert report["bad_example"] == "line 4 has 1 column, not 2"
    assert set(report["signatures"]) == {"bleu", "chrf"}
    assert [system["name"] for system in report["systems"]] == ["model", "copy the source", "translation memory"]
    for system in report["systems"]:
        assert set(system) == {"name", "bleu", "chrf", "exact"}
        assert set(system["bleu"]) == set(system["chrf"]) == {"score", "mean", "interval"}
    assert report["memory"] == {
        "paths": [training],
        "n_pairs": 1,
        "n_bad": 0,
        "n_known_sources": 1,
        "n_known_pairs": 1,
    }
    assert all(set(part) == {"by", "name", "n", "bleu", "chrf", "exact"} for part in report["slices"])
    assert all(set(bad) == {"line", "chrf", "source", "answer", "reference"} for bad in report["worst"])
    assert len(report["worst"]) == 3


def test_the_report_for_a_person(tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]) -> None:
    data, training = save(tmp_path, table(ROWS) + "lonely\n"), save(tmp_path, table(ROWS[:1]), "train.tsv")
    code, out, err = evaluate(capsys, model, data, "--memory", training, "--worst", "1")
    assert code == 0
    assert f"{data}: 3 pairs." in out
    assert "Skipped 1 bad line, the first: line 4 has 1 column, not 2." in out
    assert "In the memory letter for letter: 1 of 3 test sources, 1 with the same target." in out
    starts = [line.split("  ")[0] for line in out.splitlines()]
    assert starts.index("model") < starts.index("copy the source") < starts.index("translation memory")
    assert "no better than this baseline: translation memory." in out
    assert "BLEU nrefs:1|bs:1000|" in out
    assert "By words of the source" in out
    assert "By rare words (seen under 5 times)" in out
    assert out.count("    reference  ") == 1
    assert "engine: torch fp32" in err
    assert "translated 3 of 3" in err


def test_text_without_spaces_wants_another_way_to_find_words(
    tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    chinese = [
        ("the old house", "这是一座在海边的很老很老的大房子，里面没有人住。"),
        ("a dog", "一只新来的狗在海边看着大海和天空里的鸟。"),
    ]
    data = save(tmp_path, table(chinese))
    short = save(tmp_path, table([("good morning", "早上好！"), ("how are you ?", "你今天怎么样？")]), "short.tsv")
    assert "give --tokenize zh for Chinese" in evaluate(capsys, model, data, "--tokenize", "13a")[1]
    assert "give --tokenize zh for Chinese" in evaluate(capsys, model, short, "--tokenize", "13a")[1]
    assert "give --tokenize" not in evaluate(capsys, model, data, "--tokenize", "zh")[1]
    for chosen in ("|tok:zh|", "By words of the source"):
        assert chosen in evaluate(capsys, model, short)[1]
    assert "give --tokenize" not in evaluate(capsys, model, short)[1]
    assert "give --tokenize" not in evaluate(capsys, model, save(tmp_path, table(ROWS)))[1]


def test_options_without_effect_are_named(tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = save(tmp_path, table(ROWS))
    said = f"For {model} these have no effect: --stride, --label."
    assert said in evaluate(capsys, model, data, "--stride", "3", "--label", "x", "--limit", "2")[2]
    assert "no effect" not in evaluate(capsys, model, data, "--limit", "2", "--length-penalty", "0.5")[2]


def test_quiet_says_nothing_on_stderr(tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = save(tmp_path, table(ROWS))
    code, out, err = evaluate(capsys, model, data, "--quiet", "--worst", "0", "--limit", "2")
    assert (code, err) == (0, "")
    assert "2 pairs, 1 more left out by --limit." in out
    assert "Worst" not in out
    assert "With --memory" in evaluate(capsys, model, data)[2]


def test_named_fields_and_aligned_files(tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = save(tmp_path, "id,en,de\n1,the old house,das alte Haus\n2,good morning,guten Morgen\n", "test.csv")
    first = save(tmp_path, "".join(f"{source}\n" for source, _ in ROWS), "train.en")
    second = save(tmp_path, "".join(f"{target}\n" for _, target in ROWS), "train.de")
    memory = ["--memory", first, "--memory", second]
    code, out, _ = evaluate(capsys, model, data, "--source", "en", "--target", "de", *memory, "--json")
    assert code == 0
    assert json.loads(out)["memory"]["n_known_pairs"] == 2
    code, out, _ = evaluate(capsys, model, first, second, "--json")
    assert (code, json.loads(out)["n_pairs"]) == (0, 3)


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("", [], "is empty. Check that it was written to the end."),
        ("one\ntwo\n", [], "has one column, but pairs need two."),
        ("a\t\n\tb\n", [], "holds no usable pair (line 1 has an empty target side)."),
        ("a\tb\n", ["--tokenize", "14a"], "There is no way to tokenize called '14a'. Choose one of 13a, none, "),
        ("a\tb\n", ["--limit", "0"], "The limit is 0. It must be 1 or more."),
        ("a\tb\n", ["--beam", "0"], "beam is 0. It must be 1 or more."),
        ("a\tb\n", ["--worst", "-1"], "The number of worst answers is -1. It must be 0 or more."),
        ("a\tb\n", ["--memory", "nowhere.tsv"], "There is no file nowhere.tsv. Check the name."),
    ],
)
def test_what_is_wrong_is_one_sentence_and_exit_2(
    tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str], text: str, options: list[str], sentence: str
) -> None:
    code, out, err = evaluate(capsys, model, save(tmp_path, text), "--quiet", *options)
    assert (code, out) == (2, "")
    assert err.startswith("glassformer: ")
    assert sentence in err
    assert err.count("\n") == 1


def test_no_such_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = evaluate(capsys, "nowhere", save(tmp_path, table(ROWS)), "--json")
    assert code == 2
    assert "There is no model 'nowhere'" in json.loads(err)["error"]
