"""`glassformer look` from end to end: JSON, NPZ, pictures, the page's data, and what a user can do wrong."""

import base64
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from glassformer.cli.main import run
from glassformer.errors import UserError
from glassformer.look import comparison
from glassformer.look.choose_map import choose_map
from glassformer.look.comparison import compare, score_of
from glassformer.look.packing import pack
from glassformer.look.page import make_page, page_data
from glassformer.look.readings.attention_maps import attention_maps, mean_map, rollout
from glassformer.look.scene import look_at
from glassformer.look.subject import LONGEST, LookOptions
from glassformer.look.training import _state
from glassformer.model.settings import PatchesSettings
from glassformer.tasks.classifier import Classifier
from glassformer.tasks.model_dir import LoadedModel
from glassformer.tasks.transcriber import DEFAULT, Transcriber, Transcript
from tests.builders import close
from tests.data.sounds import write_sound
from tests.look.conftest import OPTIONS, Kind, pictures_of
from tests.tasks.tones import RATE, say

TEXT, OTHER = "the old man reads a book", "the old woman reads a book"
SHORT = LookOptions(max_tokens=6)


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        run([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


def test_a_translation_is_seen_as_the_translator_made_it(translator: LoadedModel) -> None:
    scene = look_at(translator, TEXT, LookOptions(beam=3, max_tokens=6))
    data = scene.data()
    assert data["source"][-1] == "</s>"
    assert "".join(data["source"][:-1]).replace(" ", "") == TEXT.replace(" ", "")
    assert data["target"][0] == "<s>"
    assert len(data["answers"]) == len(data["target"]) == len(data["best"])
    assert [data["beam"][i]["token"] for i in data["path"]] == data["answers"][: len(data["path"])]
    for position, best in enumerate(data["best"]):
        shares = scene.seen["head.probabilities"][0, position]
        assert best["p"] == pytest.approx(sorted(shares.tolist(), reverse=True)[:10])
        assert best["said"]["p"] == pytest.approx(float(shares[data["answers"][position]]))
        parts = data["attribution"][position]["parts"]
        assert sum(parts.values()) == pytest.approx(best["said"]["logit"], rel=1e-4, abs=1e-4)
    assert data["lens"]["ids"][-1][0][0] == data["best"][0]["ids"][0]
    assert len(data["ablation"]) == 1 + 2 * 2
    assert json.loads(json.dumps(data)) == data


def test_of_a_text_that_translate_cuts_the_first_part_is_seen(translator: LoadedModel) -> None:
    by_sentence = replace(translator, about={**translator.about, "sentences": 1})
    seen = look_at(by_sentence, "The old man reads. Where is the station?", SHORT).subject
    alone = look_at(by_sentence, "The old man reads.", SHORT).subject
    assert (alone.text, seen.text) == ("The old man reads.", "The old man reads. (the first of 2 parts)")
    assert (seen.source, seen.answer) == (alone.source, alone.answer)
    whole = look_at(by_sentence, "The old man reads. Where is the station?", LookOptions(answer="the station"))
    assert "station" in "".join(whole.subject.source)
    assert look_at(translator, "the " * 300, SHORT).subject.text.endswith("parts)")


def test_of_a_recording_that_transcribe_cuts_the_first_part_is_seen(recogniser: LoadedModel, tmp_path: Path) -> None:
    words, pause = [say("low high"), say("high")], np.zeros(2 * RATE, dtype=np.float32)
    file = write_sound(tmp_path / "long.wav", np.concatenate([pause, words[0], pause, words[1]]), RATE)
    short = replace(recogniser, about={**recogniser.about, "longest": 1.5})
    seen = look_at(short, str(file), LookOptions()).subject
    [answer] = Transcriber(short).transcribe_files([file])
    assert isinstance(answer, Transcript)
    assert seen.text == f"long.wav (the first of {len(answer.segments)} parts)"
    assert (seen.answer, len(answer.segments)) == (answer.segments[0].text, 2)
    assert float(seen.source[0].removesuffix(" s")) == pytest.approx(answer.segments[0].start, abs=0.01)
    assert answer.segments[0].start > 1
    write_sound(tmp_path / "empty.wav", pause, RATE)
    with pytest.raises(UserError, match=r"empty\.wav holds only silence"):
        look_at(short, str(tmp_path / "empty.wav"))


def test_a_completion_is_what_the_model_says_greedily(completer: LoadedModel) -> None:
    scene = look_at(completer, "where is", LookOptions(max_tokens=5))
    data, n_prompt = scene.data(ablate=False), scene.subject.n_prompt
    assert data["ablation"] is None
    assert 1 <= len(data["answers"]) - n_prompt <= 5
    for best in data["best"][n_prompt:]:
        assert best["said"]["rank"] == 1
    assert data["beam"] == []
    said = [best["said"]["p"] for best in data["best"][n_prompt:]]  # and not what the prompt says itself
    assert n_prompt > 0
    assert scene.score() == pytest.approx(float(np.log(said).mean()), abs=1e-5)
    assert _state(scene, "end")["score"] == pytest.approx(scene.score(), abs=1e-5)
    forced = look_at(completer, "where is", LookOptions(answer=" the station"))
    assert forced.subject.answer == " the station"
    assert "station" in completer.tokenizer.tokens(forced.subject.answers)[-1]


def test_every_kind_of_model_is_shown(kinds: dict[str, Kind]) -> None:
    for name, kind in kinds.items():
        for scene in kind.scenes:
            data = scene.data()
            assert len(data["source"]) == scene.seen["source.x"].shape[1]
            assert json.loads(json.dumps(data, allow_nan=False)) == data
            if scene.subject.kind == "number":
                assert data["best"] == []
                assert float(data["answer"]) == pytest.approx(float(scene.seen["head.logits"]), abs=1e-3)
                assert scene.score() == pytest.approx(float(scene.seen["head.logits"]), abs=1e-5)
                [found] = data["attribution"]
                assert sum(found["parts"].values()) == pytest.approx(scene.score(), abs=1e-4)
                continue
            said = [best["said"] for best in data["best"] if best["said"]]
            assert said
            wanted = scene.seen["head.logits"].sigmoid() if name == "choices" else scene.seen["head.probabilities"]
            wanted = wanted[0] if wanted.dim() == 3 else wanted
            for best, shares in zip(data["best"], wanted, strict=True):
                assert best["p"] == pytest.approx(shares.topk(len(best["p"])).values.tolist(), abs=1e-6)
        assert compare(*kind.scenes)["stack"] in ("encoder", "decoder")
    blank = kinds["fill"].scenes[0].data()
    place = blank["source"].index("<mask>")
    assert [i for i, answer in enumerate(blank["answers"]) if answer >= 0] == [place]
    assert blank["names"][str(blank["answers"][place])].strip() in blank["answer"]
    assert blank["attribution"] is None  # its head bends


@pytest.mark.parametrize("with_ctc", [True, False])
def test_a_recording_s_tree_is_the_recogniser_s_own_search(
    recogniser: LoadedModel, kinds: dict[str, Kind], with_ctc: bool
) -> None:
    given = kinds["transcribe"].scenes[0].subject.inputs[0]
    assert given is not None
    recogniser = replace(recogniser, about={**recogniser.about, "ctc": 0.3 if with_ctc else 0.0})
    path = kinds["transcribe"].places[0]
    found = look_at(recogniser, path, OPTIONS).subject
    options = replace(DEFAULT, beam=OPTIONS.beam, max_len=OPTIONS.max_tokens or 0)
    best = Transcriber(recogniser).backend.generate([given[0]], options)[0][0]
    assert found.ctc == (0.3 if with_ctc else 0.0)
    assert found.answer == recogniser.tokenizer.decode(best.ids)
    assert [found.beam[i].token for i in found.best][: len(best.ids)] == best.ids
    assert found.beam[found.best[-1]].total == pytest.approx(best.score, abs=1e-4)
    assert len({node.token for node in found.beam if node.step == 1}) > 1  # the tree has branches
    assert look_at(recogniser, path, LookOptions(answer="the station")).subject.beam == []


def test_a_series_is_found_in_its_file(gestures: LoadedModel, tmp_path: Path) -> None:
    file, classifier = gestures.path / "gestures.npz", Classifier(gestures)
    with np.load(file) as arrays:
        series = np.split(arrays["x"].astype(np.float32), [7])
    np.save(tmp_path / "alone.npy", series[1])  # steps and features, and no more around it
    first = look_at(gestures, str(file))
    for given, values, title in (
        (str(file), series[0], "gestures.npz:1"),
        (f"{file}:2", series[1], "gestures.npz:2"),
        (str(tmp_path / "alone.npy"), series[1], "alone.npy"),
        (json.dumps(series[1].tolist()), series[1], "a series"),
    ):
        scene = look_at(gestures, given)
        assert scene.subject.text == title
        assert scene.subject.source == [f"step {i}" for i in range(len(values))]
        close(scene.seen["source.input"][0], torch.tensor(values))
        answer = classifier.classify([values])[0]
        assert scene.subject.answer == answer.label
        assert float(scene.seen["head.probabilities"].max()) == pytest.approx(answer.probability, abs=1e-6)
    assert compare(first, look_at(gestures, f"{file}:2"))["map"] is None  # of other lengths
    for wrong, said in (
        (f"{file}:3", "gestures.npz has no series 3. It holds 2"),
        ("nowhere.npz", "There is no file nowhere.npz"),
        ("[[1, 2]]", "has 2 numbers a step, but the model reads 3"),
    ):
        with pytest.raises(UserError, match=re.escape(said)):
            look_at(gestures, wrong)


def test_the_page_holds_the_numbers_to_the_bit(translator: LoadedModel) -> None:
    scene = look_at(translator, TEXT, SHORT)
    tensors = page_data("t", "translate", [scene], ablate=False)["runs"][0]["tensors"]
    assert tensors["left_out"] == []
    numbers = np.frombuffer(base64.b64decode(tensors["blob"]), dtype="<f4")
    for name, (offset, shape) in tensors["at"].items():
        wanted = scene.seen[name]
        wanted = wanted if wanted.dim() == 2 else wanted[0]
        found = torch.tensor(numbers[offset : offset + wanted.numel()].copy()).view(shape)
        assert torch.equal(found, wanted.float()), name
    stream = [f"decoder.blocks.{part}" for part in ("0.feed_forward_residual.after", "1.self_residual.before")]
    assert tensors["at"][stream[0]] == tensors["at"][stream[1]]  # one tensor of two names is stored once


def test_where_room_ends_the_least_important_is_left_out(translator: LoadedModel) -> None:
    seen = look_at(translator, TEXT, SHORT).seen
    small = pack(seen, 40_000)
    assert len(small["blob"]) <= 40_000
    assert any(name.endswith(".hidden") for name in small["left_out"])
    assert all(name in small["at"] for name in seen.names if name.endswith(".weights"))
    page = make_page("x", "translate", [look_at(translator, "</script><b>&", SHORT)], ablate=False)
    assert page.count("</script>") == 2
    assert len(page) < 5_000_000


def test_maps_are_chosen_by_kind_layer_and_head(translator: LoadedModel) -> None:
    scene = look_at(translator, TEXT, SHORT)
    cross = attention_maps(scene.seen, "decoder", "cross")
    chosen = choose_map(scene)
    assert torch.equal(chosen.weights, mean_map(cross))
    assert (chosen.rows, chosen.columns) == (scene.subject.target, scene.subject.source)
    assert torch.equal(choose_map(scene, "cross", 1, 2).weights, cross[1, 2])
    own = choose_map(scene, "encoder", rolled=True)
    assert torch.equal(own.weights, rollout(attention_maps(scene.seen, "encoder")))
    assert own.columns == own.rows == scene.subject.source
    for wrong, said in (
        (("sideways",), "no attention 'sideways'. Choose cross, decoder, encoder"),
        (("cross", 2), "no layer 2. They are counted from 0 to 1"),
        (("cross", 0, 4), "no head 4"),
        (("cross", None, None, True), "cannot be rolled out"),
        (("encoder", 0, None, True), "of all layers and heads"),
    ):
        with pytest.raises(UserError, match=said):
            choose_map(scene, *wrong)  # type: ignore[arg-type]


def test_two_inputs_are_compared(translator: LoadedModel, completer: LoadedModel) -> None:
    first, second = (look_at(translator, text, SHORT) for text in (TEXT, OTHER))
    found = compare(first, second)
    assert found["own"] == pytest.approx(second.score())
    assert found["stack"] == "encoder"
    differs = [i for i, (a, b) in enumerate(zip(first.subject.source, second.subject.source, strict=True)) if a != b]
    if abs(found["own"] - found["foreign"]) > 1e-6:
        zero = [i for i, share in enumerate(found["map"][0]) if abs(share) > 1e-5]
        assert zero == differs
        if len(differs) == 1:
            assert found["map"][0][differs[0]] == pytest.approx(1, abs=1e-3)
    first, second = (look_at(completer, text, LookOptions(max_tokens=4)) for text in ("the old man", "the young man"))
    found = compare(first, second)
    assert found["own"] == pytest.approx(score_of(second, second))
    assert len(found["map"][0]) == len(second.subject.source)
    assert found["why"] is None


def test_where_no_map_compares_two_inputs_it_is_said_why(
    completer: LoadedModel, kinds: dict[str, Kind], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (look_at(completer, text, LookOptions(max_tokens=4)) for text in ("the old man", "the young man"))
    monkeypatch.setattr(comparison, "MOST_PASSES", 5)
    many = 2 * len(second.subject.source)
    for pair, said in (
        ((look_at(completer, "the"), second), "different lengths"),
        (kinds["whisper"].scenes, "too many positions"),
        ((first, first), "equally likely"),
        ((first, second), f"{many} runs of the model to find out; look does at most 5"),
    ):
        found = compare(*pair)
        assert found["map"] is None
        assert said in found["why"]


def test_the_shell_writes_every_kind(
    translator: LoadedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = translator.path
    code, out, err = call(capsys, "look", folder, TEXT, "--max-tokens", 6, "--out", tmp_path / "t.npz")
    assert (code, out) == (0, "")
    assert "Written: " in err
    with np.load(tmp_path / "t.npz", allow_pickle=False) as arrays:
        seen = look_at(translator, TEXT, SHORT).seen
        assert [name for name in arrays if not name.startswith("tokens.")] == seen.names
        close(
            torch.tensor(arrays["decoder.blocks.1.cross_attention.weights"]),
            seen["decoder.blocks.1.cross_attention.weights"],
        )
        assert arrays["tokens.source"].tolist() == look_at(translator, TEXT, SHORT).subject.source
    for name, begin in (("m.png", b"\x89PNG"), ("m.svg", b"<?xml")):
        assert (
            call(capsys, "look", folder, TEXT, "--max-tokens", 6, "--out", tmp_path / name, "--layer", 0, "--head", 3)[
                0
            ]
            == 0
        )
        assert (tmp_path / name).read_bytes().startswith(begin)
        again = (tmp_path / name).read_bytes()
        call(capsys, "look", folder, TEXT, "--max-tokens", 6, "--out", tmp_path / name, "--layer", 0, "--head", 3)
        assert (tmp_path / name).read_bytes() == again
    assert "layer 0, head 3" in (tmp_path / "m.svg").read_text()
    code, out, err = call(capsys, "look", folder, TEXT, OTHER, "--max-tokens", 6, "--json", "--no-ablate")
    data = json.loads(out)
    assert (code, err) == (0, "")
    assert [run_["text"] for run_ in data["inputs"]] == [TEXT, OTHER]
    weights = np.array(data["inputs"][0]["attention"]["decoder.blocks.1.cross_attention"])
    assert weights.sum(-1) == pytest.approx(np.ones(weights.shape[:-1]), abs=1e-5)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--out", "x.pdf"], "x.pdf is no kind of file that look writes. End its name in .html, .png, .svg, .npz."),
        (["--layer", "1"], "--layer chooses a map. Give --out map.png or map.svg."),
        (["second", "--out", "x.png"], "Two inputs are compared on a page."),
        (["--live", "--json"], "--live serves one page"),
        (["other", "--training"], "--training is a page of one input at most."),
        (["--beam", "0"], "beam is 0. It must be 1 or more."),
        (["--out", "x.png", "--attention", "wide"], "The model has no attention 'wide'."),
    ],
)
def test_what_a_user_can_do_wrong(
    translator: LoadedModel, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    code, out, err = call(capsys, "look", translator.path, TEXT, *arguments, "--max-tokens", 4)
    assert (code, out) == (2, "")
    assert said in err


def test_pictures_of_more_patches_than_any_text_has_tokens(tmp_path: Path) -> None:
    large = pictures_of(tmp_path, PatchesSettings(height=384, width=384, patch=16))
    scene = look_at(large, str(tmp_path / "0.png"))
    assert len(scene.subject.source) == 577 > LONGEST
    assert len(make_page("p", "classify", [scene], ablate=False)) < 5_000_000
    assert choose_map(scene).weights.shape == (577, 577)


def test_pictures_of_too_many_patches_are_the_model_s_fault(tmp_path: Path) -> None:
    large = pictures_of(tmp_path, PatchesSettings(height=52, width=50, patch=2))
    with pytest.raises(
        UserError, match=r"The model cuts a picture into 651 positions.*Look at a model of larger patches"
    ):
        look_at(large, str(tmp_path / "0.png"))


def test_texts_that_do_not_fit_are_refused(translator: LoadedModel, completer: LoadedModel) -> None:
    with pytest.raises(UserError, match="There is no text to translate"):
        look_at(translator, "  ")
    with pytest.raises(UserError, match=f"look shows at most {LONGEST}"):
        look_at(translator, "the " * 300, LookOptions(answer="the station"))  # what it says stands beside all of it
    with pytest.raises(UserError, match="tokens"):
        look_at(completer, "the " * 100)  # more than its context
    unknown: Any = LoadedModel(**(vars(translator) | {"task": "fly"}))
    with pytest.raises(UserError, match=r"is a model for fly\. For now, look shows models for"):
        look_at(unknown, TEXT)
