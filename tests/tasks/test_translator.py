"""A translator in use: as many answers as texts, in order, whatever the texts are."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch

import glassformer
from glassformer.cli.main import run
from glassformer.cli.stdin import stdin_lines
from glassformer.data.tokenizer import END, train_tokenizer
from glassformer.decode.options import DecodeOptions
from glassformer.errors import UserError
from glassformer.model.settings import LearnedSettings, TokenHeadSettings
from glassformer.tasks.backend import Backend, Request
from glassformer.tasks.model_dir import save_model
from glassformer.tasks.translator import Translator
from tests.builders import tokens
from tests.fast.models import lively

TEXTS = ["where is the station", "", "the train is late", "   ", "a", "the station is where the train is " * 3]


def save_lively(path: Path, seed: int = 0, n_words: int = 280) -> Path:
    """An untrained model whose answers differ and end."""
    tokenizer = train_tokenizer(TEXTS, "bpe", n_words)
    words = tokens(vocab_size=tokenizer.vocab_size)
    save_model(path, "translate", lively({"source": words, "target": words}, seed), tokenizer)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_lively(tmp_path_factory.mktemp("models") / "lively")


@pytest.fixture(scope="module")
def translator(folder: Path) -> Translator:
    return glassformer.load(folder, engine="torch", precision="fp32")


def test_there_are_as_many_answers_as_texts_and_nothing_gives_nothing(translator: Translator) -> None:
    answers = translator.translate(TEXTS, max_len=20)
    assert len(answers) == len(TEXTS)
    assert answers[1] == answers[3] == ""


def test_a_batch_answers_as_each_text_alone(translator: Translator) -> None:
    alone = [translator.translate([text], max_len=20)[0] for text in TEXTS]
    assert len({*alone}) >= 4
    assert translator.translate(TEXTS, max_len=20) == alone
    assert translator.translate(TEXTS[::-1], max_len=20) == alone[::-1]


def test_the_default_engine_answers_every_kind_of_request(folder: Path) -> None:
    fast = glassformer.load(folder)
    assert fast.engine_name(DecodeOptions()) in ("C++ int8", "CTranslate2 int8")  # where it can be compiled or not
    assert len(fast.translate(TEXTS, max_len=20)) == len(TEXTS)
    drawn = fast.translate(TEXTS, sample=True, seed=3, max_len=20)
    assert drawn == fast.translate(TEXTS, sample=True, seed=3, max_len=20)


def test_a_very_long_line_is_one_answer(translator: Translator) -> None:
    long = "where is the train? " * 400
    answers = translator.translate(["a", long, "a"], beam=1, max_len=5)
    assert len(answers) == 3
    assert answers[0] == answers[2]
    assert "\n" not in answers[1]


@pytest.fixture(scope="module")
def of_sentences(folder: Path) -> Translator:
    """The same model, which has seen lines of one sentence only."""
    translator = glassformer.load(folder, engine="torch", precision="fp32")
    translator.most_sentences = 1
    return translator


def test_a_model_of_sentences_gets_them_one_by_one(of_sentences: Translator) -> None:
    text = "Where is the train? The train is late.  A train is where?"
    alone = of_sentences.translate(["Where is the train?", "The train is late.", "A train is where?"], max_len=20)
    assert of_sentences.translate([text], max_len=20) == [f"{alone[0]} {alone[1]}  {alone[2]}"]
    [[told]] = of_sentences.translate_all([text], DecodeOptions(max_len=20), details=True)
    assert len(told.alignment) == len(told.tokens)
    assert max(told.alignment) < len(told.source_tokens)


def test_a_text_that_is_cut_has_its_prefix_and_phrases_once(
    of_sentences: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prefix in its first part, each phrase in one part; a text that was not cut has all of them."""
    asked: list[list[Request]] = []
    choose = of_sentences.choose

    def watched(options: DecodeOptions, with_phrases: bool) -> Backend:
        backend = choose(options, with_phrases)
        generate = backend.generate
        monkeypatch.setattr(
            backend, "generate", lambda requests, options: asked.append(requests) or generate(requests, options)
        )
        return backend

    monkeypatch.setattr(of_sentences, "choose", watched)
    text = "Where is the train? The train is late. A train is where?"
    found = of_sentences.translate_all([text, "a"], DecodeOptions(max_len=20), prefix="the", phrases=["train", "where"])
    assert all(best[0].text.startswith("the") and "train" in best[0].text and "where" in best[0].text for best in found)
    *cut, whole = asked[-1]
    assert [bool(request.prefix) for request in cut] == [True, False, False]
    assert sorted(phrase for request in cut for phrase in request.phrases) == sorted(whole.phrases)
    assert len(whole.phrases) == 2


def test_n_best_come_with_falling_scores(translator: Translator) -> None:
    found = translator.translate_all(TEXTS[:1], DecodeOptions(beam=4, nbest=4, max_len=20))[0]
    scores = [translation.score for translation in found]
    assert len(found) == 4
    assert scores == sorted(scores, reverse=True)


def test_answers_start_with_the_prefix_and_contain_the_phrases(translator: Translator) -> None:
    options = DecodeOptions(beam=4, max_len=20)
    for found in translator.translate_all(["where is it", "late"], options, prefix="the train", phrases=["station"]):
        assert found[0].text.startswith("the train")
        assert " station" in found[0].text


def test_details_are_tokens_and_an_alignment_into_the_source(translator: Translator) -> None:
    found = translator.translate_all(TEXTS[:1], DecodeOptions(max_len=20), details=True)[0][0]
    assert len(found.alignment) == len(found.tokens) > 0
    assert set(found.alignment) <= set(range(len(found.source_tokens)))


def test_one_string_instead_of_a_list_is_refused(translator: Translator) -> None:
    with pytest.raises(UserError, match=r"translate got one string\. Give a list of texts\."):
        translator.translate("where")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"beam": "4"}, "beam is '4', but it must be a whole number"),
        ({"max_len": 1.5}, "max_len is 1.5, but it must be a whole number"),
        ({"temprature": 1.0}, r"there is no setting temprature \(did you mean temperature\?\)"),
        ({"foo": 1}, r"What translate got cannot be used: there is no setting foo \(known: beam, nbest"),
    ],
)
def test_wrong_options_get_a_sentence(translator: Translator, options: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said):
        translator.translate(["where"], **options)


def test_numbers_of_other_libraries_are_options_too(translator: Translator) -> None:
    given = {"beam": np.int64(2), "length_penalty": np.float32(0.5), "max_len": 5}
    assert translator.translate(["where"], **given) == translator.translate(
        ["where"], beam=2, length_penalty=0.5, max_len=5
    )


def test_unknown_engines_are_refused(folder: Path) -> None:
    with pytest.raises(UserError, match=r"There is no engine 'steam'\. Choose auto, c\+\+, ctranslate2, torch\."):
        glassformer.load(folder, engine="steam")  # type: ignore[arg-type]


def test_spaces_around_prefix_and_phrases_are_no_words(translator: Translator) -> None:
    options = DecodeOptions(max_len=20)
    plain = translator.translate_all(["late"], options, prefix="the train", phrases=["station"])
    assert translator.translate_all(["late"], options, prefix=" the train ", phrases=[" station\n", " "]) == plain


def test_what_is_drawn_cannot_be_made_to_contain_phrases(translator: Translator) -> None:
    with pytest.raises(UserError, match=r"drawn cannot be made to contain phrases"):
        translator.translate_all(["a"], DecodeOptions(sample=True), phrases=["b"])


def test_draws_follow_a_texts_number_whatever_comes_together(
    of_sentences: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["where is. The train. The train.", *["where"] * 7]
    options = DecodeOptions(sample=True, seed=3, max_len=8)

    def drawn(texts: list[str], number: int = 0) -> list[str]:
        return [best[0].text for best in of_sentences.translate_all(texts, options, number=number)]

    whole = drawn(texts)
    assert len({*whole[1:]}) > 4  # equal texts are drawn for anew
    monkeypatch.setattr("glassformer.tasks.translator.TOGETHER", 2)
    assert drawn(texts) == whole
    assert [drawn([text], i)[0] for i, text in enumerate(texts)] == whole


def test_learned_positions_cut_long_texts_and_leave_room_to_look_back(tmp_path: Path) -> None:
    tokenizer = train_tokenizer(TEXTS, "bpe", 280)
    words = tokens(vocab_size=tokenizer.vocab_size, positions=LearnedSettings(max_len=9))
    model = lively({"source": words, "target": words, "head": TokenHeadSettings(bias=True)})
    with torch.no_grad():
        model.head.w.bias[END] = -100  # an answer fills its room
    save_model(tmp_path / "m", "translate", model, tokenizer)
    [[told]] = glassformer.load(tmp_path / "m").translate_all([" ".join(TEXTS) * 3], details=True)
    assert len(told.alignment) == len(told.tokens) > 9
    run_export = ["export", str(tmp_path / "m"), "--to", "ctranslate2", "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as stop:
        run(run_export)
    assert not stop.value.code


def test_phrases_are_refused_by_an_engine_that_cannot_keep_to_them(folder: Path) -> None:
    with pytest.raises(UserError, match=r"engine ctranslate2 cannot make sure"):
        glassformer.load(folder, engine="ctranslate2").translate_all(["a"], phrases=["b"])


def piped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], given: bytes, *arguments: str) -> str:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
    with pytest.raises(SystemExit) as stop:
        run(["translate", *arguments, "--max-len", "10"])
    assert not stop.value.code
    return capsys.readouterr().out


def test_stdin_gives_line_for_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = "\ufeffwhere is\r\n\nthe\u2028train\x0cis\n\xff late".encode()
    out = piped(monkeypatch, capsys, given + b"\n\xfe\xff\n", str(folder))
    assert out.count("\n") == 5
    assert out.split("\n")[1] == ""
    assert out.split("\n")[0] == glassformer.load(folder).translate(["where is"], max_len=10)[0]


def test_lines_that_are_not_utf_8_are_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = "grüße\n".encode("latin-1") * 6 + "grüße".encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
    assert sum(len(lines) for lines in stdin_lines()) == 7
    assert capsys.readouterr().err == "Not UTF-8, so read in part only: 6 lines (1, 2, 3, 4, 5, …).\n"


def test_quiet_is_quiet(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for quiet, said in (((), "Without --sample these have no effect: temperature."), (("--quiet",), "")):
        with pytest.raises(SystemExit):
            run(["translate", str(folder), "where", "--temperature", "0.5", "--max-len", "5", *quiet])
        err = capsys.readouterr().err
        assert said in err if said else not err


def test_json_is_one_object_a_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = piped(monkeypatch, capsys, b"where is\n\n", str(folder), "--json", "--nbest", "2")
    first, second = (json.loads(line) for line in out.splitlines())
    assert first["source"] == "where is"
    assert len(first["translations"]) == 2
    assert {"text", "score", "tokens", "source_tokens", "alignment"} <= first["translations"][0].keys()
    assert second["translations"][0]["text"] == ""


def test_much_work_says_how_far_it_is_and_answers_the_same(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["a", "where", "the train", "is", "a where"]
    options = DecodeOptions(beam=2, max_len=5)
    whole = translator.translate_all(texts, options)
    monkeypatch.setattr("glassformer.tasks.translator.TOGETHER", 2)
    told: list[tuple[int, int]] = []
    parts = translator.translate_all(texts, options, progress=lambda done, total: told.append((done, total)))
    assert [[t.text for t in found] for found in parts] == [[t.text for t in found] for found in whole]
    assert told == [(2, 5), (4, 5), (5, 5)]
