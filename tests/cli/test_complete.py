"""`glassformer complete`, `train complete` and `evaluate` of a language model, as a person types them."""

import io
import json
import math
import sys
from pathlib import Path

import pytest

from glassformer.cli.main import run

TEXT = "the cat sat on the mat\n" * 80
SMALL = [
    *("--set", "model={decoder={d_model=16,n_layers=1,attention={n_heads=2},feed_forward={d_ff=16}}}"),
    *("--set", "train.batch_tokens=256", "--set", "train.validations=1"),
    *("--size", "tiny", "--context", "16", "--tokenizer", "char", "--steps", "3", "--quiet"),
]


def command(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        run(list(arguments))
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("complete")
    (folder / "cat.txt").write_text(TEXT)
    assert command("train", "complete", str(folder / "cat.txt"), "--out", str(folder / "out"), *SMALL) == 0
    return str(folder / "out")


def test_streams_after_the_prompt(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("complete", model, "the cat", "--max-tokens", "5", "--seed", "1") == 0
    out = capsys.readouterr()
    assert out.out.startswith("the cat")
    assert out.out.endswith("\n")
    assert out.err.strip() == "engine: torch fp32"
    assert command("complete", model, "the cat", "--max-tokens", "5", "--seed", "1", "--quiet") == 0
    assert "the cat" + capsys.readouterr().out == out.out


def test_json_holds_tokens_and_scores(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--max-tokens", "4", "--temperature", "0", "-n", "2", "--alternatives", "3", "--json"]
    assert command("complete", model, "the", "a", *options) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["prompt"] for line in lines] == ["the", "a"]
    for line in lines:
        assert len(line["completions"]) == 2
        for answer in line["completions"]:
            assert len(answer["tokens"]) == len(answer["log_p"]) == len(answer["alternatives"])
            assert all(math.exp(p) <= 1 for p in answer["log_p"])


def test_a_seed_gives_the_same_answers_however_they_are_shown(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--max-tokens", "8", "--seed", "3", "-n", "3", "--temperature", "1.5", "--quiet"]
    assert command("complete", model, "the", *options) == 0
    shown = capsys.readouterr().out
    assert command("complete", model, "the", *options, "--json") == 0
    [line] = map(json.loads, capsys.readouterr().out.splitlines())
    texts = [answer["text"] for answer in line["completions"]]
    assert shown == "".join(f"{text}\n" for text in texts)
    assert len(set(texts)) > 1


def test_stdin_as_one_prompt_or_as_lines(
    model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def typed(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    typed(b"the cat\nsat\n")
    assert command("complete", model, "--max-tokens", "1", "--seed", "1") == 0
    assert capsys.readouterr().out.startswith("the cat\nsat")
    typed(b"the cat\n\nsat\n")
    assert command("complete", model, "--lines", "--max-tokens", "1") == 0
    prompts = [json.loads(line)["prompt"] for line in capsys.readouterr().out.splitlines()]
    assert prompts == ["the cat", "", "sat"]


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["the cat", "--slide", "--draft", "MODEL"], "A draft cannot go with a sliding window."),
        (["the cat sat on the mat"], "but the model sees only 16 at once"),
    ],
)
def test_what_cannot_be_answered_is_refused_before_the_prompt(
    model: str, capsys: pytest.CaptureFixture[str], arguments: list[str], answer: str
) -> None:
    assert command("complete", model, *(model if a == "MODEL" else a for a in arguments)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert answer in printed.err


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["--temperature", "-1"], "temperature is -1.0."),
        (["--top-p", "0"], "top_p is 0.0."),
        (["--chat"], "carries no chat template"),
        (["--lines"], "--lines reads prompts from stdin"),
        (["--precision", "half"], "There is no precision 'half'"),
    ],
    ids=str,
)
def test_mistakes_are_one_sentence(
    model: str, capsys: pytest.CaptureFixture[str], arguments: list[str], answer: str
) -> None:
    assert command("complete", model, "the", *arguments) == 2
    assert answer in capsys.readouterr().err


def test_prompt_longer_than_the_context(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("complete", model, "the cat sat on the mat") == 2
    assert "but the model sees only 16 at once" in capsys.readouterr().err
    assert command("complete", model, "the cat sat on the mat", "--slide", "--max-tokens", "20") == 0


def test_models_for_other_jobs_are_named(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("complete", "en-de", "the") == 2
    assert "is a model for translate, not for completion" in capsys.readouterr().err
    assert command("translate", model, "the") == 2
    assert "is a model for complete, not for translation" in capsys.readouterr().err


def test_evaluate_shows_the_rungs(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test.txt").write_text("the dog sat on the cat\n" * 4)
    assert command("evaluate", model, str(tmp_path / "test.txt"), "--quiet") == 0
    shown = capsys.readouterr().out
    for word in ("bits per byte", "uniform", "unigram", "order 5", "this model", "perplexity"):
        assert word in shown
    assert "no better than counting" in shown  # three steps teach nothing
    assert command("evaluate", model, str(tmp_path / "test.txt"), "--json", "--stride", "4") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["stride"] == 4
    assert report["n_tokens"] == 4 * 23 + 1
    assert command("evaluate", model, str(tmp_path / "test.txt"), "--stride", "17") == 2
