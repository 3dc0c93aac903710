"""From recordings to a model directory, end to end, on a language of tones; then the model in use."""

import json
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import jiwer
import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from glassformer.data.recordings import open_recordings
from glassformer.data.split import default_number
from glassformer.errors import UserError
from glassformer.tasks import transcribe as task
from glassformer.tasks.evaluate_transcribe import count_mistakes, evaluate_transcribe, measure
from glassformer.tasks.listen import Listener, read_commands
from glassformer.tasks.model_dir import load_model
from glassformer.tasks.train_transcribe import SpeechFiles, train_transcribe
from glassformer.tasks.transcribe import TranscriptSettings
from glassformer.tasks.transcriber import Transcriber, Transcript
from glassformer.tasks.word_times import forward_path
from tests.data.sounds import noise, write_sound
from tests.tasks.tones import RATE, say, tiny_recipe, write_recordings

PLAIN = {"speeds": [1.0], "noise": 0.0, "gain": 0.0, "n_time_masks": 0, "n_feature_masks": 0}


def files(path: Path) -> SpeechFiles:
    return SpeechFiles(open_recordings(path), None)


def trained(folder: Path, name: str = "out", **changes: Any) -> Path:
    listed = folder / "sounds" / "list.tsv"
    data = listed if listed.exists() else write_recordings(folder / "sounds")
    out = folder / name
    assert train_transcribe(files(data), tiny_recipe(**changes), out, device="cpu", quiet=True)
    return out


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Long enough to know the language."""
    train = {"steps": 150, "validations": 2, "dropout_epochs": 0, "lr": 8e-3, "batch_tokens": 100}
    return trained(tmp_path_factory.mktemp("tones"), ctc=0.6, augment=PLAIN, train={**train, "label_smoothing": 0.0})


def test_it_learns_the_language(taught: Path) -> None:
    validation = json.loads((taught / "settings.json").read_text())["about"]["validation"]
    assert validation["wer"] < 15


def check_resuming(
    data: SpeechFiles, recipe: task.TranscribeRecipe, folder: Path, stop_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that breaks at its batch number `stop_at` and is taken up ends with the weights of the unbroken one."""
    assert train_transcribe(data, recipe, folder / "whole", device="cpu", quiet=True)
    n_loaded, load = 0, task.TranscribeJob.load

    def failing(self: task.TranscribeJob, planned: task.Planned) -> task.SpeechBatch:
        nonlocal n_loaded
        n_loaded += 1
        if n_loaded == stop_at:
            raise RuntimeError("the light goes out")
        return load(self, planned)

    monkeypatch.setattr(task.TranscribeJob, "load", failing)
    with pytest.raises(RuntimeError):
        train_transcribe(data, recipe, folder / "broken", device="cpu", quiet=True)
    assert train_transcribe(data, recipe, folder / "broken", resume=True, device="cpu", quiet=True)
    one, two = (load_file(folder / name / "model.safetensors") for name in ("whole", "broken"))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_resumed_is_unbroken_to_the_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Augmentation included: what a batch sounds like depends on its place in the run alone."""
    check_resuming(files(write_recordings(tmp_path / "sounds")), tiny_recipe(), tmp_path, 7, monkeypatch)


def test_joined_recordings_say_both_transcripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as both, with a space between the words, and never two others than the plan's."""
    heard: list[tuple[list[str], list[str], list[int], list[int]]] = []
    load = task.TranscribeJob.load

    def recording(self: task.TranscribeJob, planned: task.Planned) -> task.SpeechBatch:
        batch = load(self, planned)
        said = [self.train.tokenizer.decode(row.tolist()) for row in batch.target_out]
        alone = [self.train.tokenizer.decode(self.train.tokens[i].tolist()) for i in planned.rows]
        lengths = [batch.features.shape[1]] * len(said) if batch.keep is None else batch.keep.sum(dim=1).tolist()
        heard.append((said, alone, lengths, [int(self.train.audio.lengths[i]) for i in planned.rows]))
        return batch

    monkeypatch.setattr(task.TranscribeJob, "load", recording)
    trained(tmp_path, augment={**PLAIN, "joined": 1.0}, train={"steps": 3, "batch_tokens": 100})
    assert len(heard) >= 3
    for said, alone, lengths, samples in heard:
        assert len(said) == (len(alone) + 1) // 2
        assert sorted(" ".join(said).split()) == sorted(" ".join(alone).split())
        assert abs(sum(lengths) - sum(samples) / (RATE / 100)) <= 2 * len(alone)  # a hundred frames a second


def test_two_views_say_the_same_at_the_same_times(
    taught: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What changes the times is one for both, what is hidden is each one's own."""
    batches: list[task.SpeechBatch] = []
    load = task.TranscribeJob.load

    def recording(self: task.TranscribeJob, planned: task.Planned) -> task.SpeechBatch:
        batches.append(load(self, planned))
        return batches[-1]

    monkeypatch.setattr(task.TranscribeJob, "load", recording)
    hidden = {"n_time_masks": 1, "time_mask": 0.3}
    recipe = going_on(taught, crossed=1.0, joined=0.5, tempo=0.3, speeds=[0.8, 1.0, 1.2], **hidden)
    recipe = replace(recipe, agreement=0.2)
    data = files(taught.parent / "sounds" / "list.tsv")
    assert train_transcribe(data, recipe, tmp_path / "out", device="cpu", quiet=True)
    assert len(batches) >= 3
    for batch in batches:
        one, two = batch.features.chunk(2)
        assert all(torch.equal(*half.chunk(2)) for half in (batch.target_in, batch.target_out))
        assert batch.keep is None or torch.equal(*batch.keep.chunk(2))
        same = (one == two).all(dim=-1).float().mean()
        assert 0.2 < same < 1.0


def going_on(start: Path, **augment: Any) -> task.TranscribeRecipe:
    """Three steps more with the model."""
    changes = {"start": str(start), "augment": {**PLAIN, **augment}, "train": {"steps": 3, "batch_tokens": 300}}
    return replace(tiny_recipe(**changes), size="auto", model={}, tokenizer=TranscriptSettings())


def test_crossed_recordings_are_cut_between_words(
    taught: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part is as loud in its middle as a tone, silent where it was cut, and all parts together say the words."""
    jobs: list[task.TranscribeJob] = []
    load, said = task.TranscribeJob.load, []

    def recording(self: task.TranscribeJob, planned: task.Planned) -> task.SpeechBatch:
        jobs.append(self)
        batch = load(self, planned)
        decode = self.train.tokenizer.decode
        said.append(
            (
                [decode(row.tolist()) for row in batch.target_out],
                [decode(self.train.tokens[i].tolist()) for i in planned.rows],
            )
        )
        return batch

    monkeypatch.setattr(task.TranscribeJob, "load", recording)
    recordings = taught.parent / "sounds" / "list.tsv"
    recipe = going_on(taught, crossed=1.0)
    assert train_transcribe(files(recordings), recipe, tmp_path / "out", device="cpu", quiet=True)
    job = jobs[0]
    assert job.parts is not None
    n_words = n_parts = 0
    for i, parts in enumerate(job.parts):
        text = job.train.tokenizer.decode(job.train.tokens[i].tolist())
        assert " ".join(job.train.tokenizer.decode(part.tokens.tolist()) for part in parts) == text
        wave = job.train.audio[i]
        assert (parts[0].begin, parts[-1].end) == (0.0, 1.0)
        for one, other in pairwise(parts):
            assert one.end == other.begin
            place = round(one.end * len(wave))
            assert np.abs(wave[place - 80 : place + 80]).max() < 0.05  # a tone has 0.3
        n_words, n_parts = n_words + len(text.split()), n_parts + len(parts)
    assert n_parts > 0.9 * n_words
    assert any(sorted(crossed) != sorted(before) for crossed, before in said)
    for crossed, before in said:
        assert sorted(" ".join(crossed).split()) == sorted(" ".join(before).split())


def test_crossed_is_refused_where_words_are_not_known(taught: Path, tmp_path: Path) -> None:
    recordings, out = taught.parent / "sounds" / "list.tsv", tmp_path / "out"
    with pytest.raises(UserError, match="a model to start from"):
        train_transcribe(files(recordings), tiny_recipe(augment={"crossed": 0.5}), out, device="cpu", quiet=True)
    assert not out.exists()


def test_crossed_asks_no_head_that_learned_nothing(tmp_path: Path) -> None:
    deaf = trained(tmp_path, "deaf", ctc=0.0, train={"steps": 2})
    recordings = files(tmp_path / "sounds" / "list.tsv")
    with pytest.raises(UserError, match="was trained without it"):
        train_transcribe(recordings, going_on(deaf, crossed=0.5), tmp_path / "out", device="cpu", quiet=True)


def test_crossed_vectors_must_say_how_loud_they_are(tmp_path: Path) -> None:
    for i in range(12):
        np.save(tmp_path / f"{i}.npy", np.random.default_rng(i).standard_normal((40 + i, 5)))
    (tmp_path / "list.tsv").write_text("".join(f"{i}.npy\tword {i % 3}\n" for i in range(12)))
    data, first = files(tmp_path / "list.tsv"), tmp_path / "first"
    assert train_transcribe(data, tiny_recipe(train={"steps": 2}), first, device="cpu", quiet=True)
    with pytest.raises(UserError, match="where they are quiet"):
        train_transcribe(data, going_on(first, crossed=0.5), tmp_path / "out", device="cpu", quiet=True)
    assert not (tmp_path / "out" / "model.safetensors").exists()
    assert train_transcribe(
        data, going_on(first, crossed=0.5, throat=0.1), tmp_path / "cepstral", device="cpu", quiet=True
    )


def test_crossed_and_resumed_is_unbroken_to_the_bit(
    taught: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cuts are those of the model that was started from, also when the weights have moved on; with two views."""
    data = files(taught.parent / "sounds" / "list.tsv")
    recipe = replace(going_on(taught, crossed=1.0, n_time_masks=2), agreement=0.2)
    check_resuming(data, recipe, tmp_path, 3, monkeypatch)


def test_vectors_and_bpe(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    lines = []
    for i in range(12):
        np.save(tmp_path / f"{i}.npy", random.standard_normal((20 + i, 5)))
        lines.append(f"{i}.npy\tword {i % 3}\n")
    (tmp_path / "list.tsv").write_text("".join(lines))
    changes = {"tokenizer": {"kind": "bpe", "size": 270}, "train": {"steps": 2}}
    out = tmp_path / "out"
    assert train_transcribe(files(tmp_path / "list.tsv"), tiny_recipe(**changes), out, device="cpu", quiet=True)
    transcriber = Transcriber(load_model(out))
    assert transcriber.features.kind == "vectors"
    assert len(transcriber.transcribe([tmp_path / "0.npy", tmp_path / "1.npy"])) == 2
    write_sound(tmp_path / "a.wav", say("low"), RATE)
    with pytest.raises(UserError, match="is no file of vectors"):
        transcriber.transcribe([tmp_path / "a.wav"])


def test_a_large_alphabet_stays_whole(tmp_path: Path) -> None:
    """Six hundred signs, each its own token: none of them falls apart into bytes."""
    signs = [chr(0x4E00 + i) for i in range(600)]
    for i in range(12):
        np.save(tmp_path / f"{i}.npy", np.random.default_rng(i).standard_normal((60, 5)))
    lines = (f"{i}.npy\t{''.join(signs[50 * i : 50 * i + 50])}\n" for i in range(12))
    (tmp_path / "list.tsv").write_text("".join(lines), encoding="utf-8")
    recipe = tiny_recipe(tokenizer={"kind": "char", "size": "none"}, train={"steps": 1})
    given = SpeechFiles(*[open_recordings(tmp_path / "list.tsv")] * 2)
    assert train_transcribe(given, recipe, tmp_path / "out", device="cpu", quiet=True)
    tokenizer = load_model(tmp_path / "out").tokenizer
    assert all(len(tokenizer.encode(sign)) == 1 for sign in signs)


def test_start_from_another(taught: Path, tmp_path: Path) -> None:
    out, data = tmp_path / "next", taught.parent / "sounds" / "list.tsv"
    recipe = replace(tiny_recipe(train={"steps": 2}), size="auto", model={}, start=str(taught))
    with pytest.raises(UserError, match="whose size, shape and vocabulary are given"):
        train_transcribe(files(data), recipe, out, device="cpu", quiet=True)
    recipe = replace(recipe, tokenizer=TranscriptSettings())
    assert train_transcribe(files(data), recipe, out, device="cpu", quiet=True)
    old, new = (load_file(folder / "model.safetensors") for folder in (taught, out))
    assert all(old[name].shape == new[name].shape for name in old)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": "huge"}, "There is no size 'huge'"),
        ({"size": "translate-tiny"}, "no encoder-decoder that hears"),
        ({"tokenizer": {"kind": "nothing"}}, "There is no tokenizer"),
        ({"features": {"kind": "vectors", "n_features": 3}}, "but the files hold sound"),
        ({"max_seconds": 0.01}, "No recording is left"),
        ({"agreement": 0.2, "ctc": 0.0}, "agreement is asked of CTC"),
        ({"agreement": -1.0}, "agreement is -1.0"),
    ],
)
def test_what_is_refused(taught: Path, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    data = taught.parent / "sounds" / "list.tsv"
    with pytest.raises(UserError, match=message):
        train_transcribe(files(data), tiny_recipe(**changes), tmp_path / "out", device="cpu", quiet=True)


def test_bad_validation_recordings_are_named_and_never_held_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_recordings(tmp_path / "sounds", 12)
    missing = "".join(f"none{i}.wav\tlow\n" for i in range(30))
    data.write_text(data.read_text() + missing)
    recipe = tiny_recipe(train={"steps": 1})
    assert train_transcribe(files(data), recipe, tmp_path / "held", device="cpu")
    said = capsys.readouterr().err
    n_valid = int(re.search(r"Validation: (\d+) recording", said)[1])  # type: ignore[index]
    n_train = int(re.search(r"(\d+) recordings to learn from", said)[1])  # type: ignore[index]
    assert (n_train + n_valid, n_valid) == (12, default_number(12))
    assert "Left out" not in said
    (tmp_path / "sounds" / "valid.tsv").write_text("0.wav\tlow\nnone.wav\thigh\n1.wav\t" + "high " * 500 + "\n")
    given = SpeechFiles(open_recordings(data), open_recordings(tmp_path / "sounds" / "valid.tsv"))
    assert train_transcribe(given, recipe, tmp_path / "given", device="cpu")
    said = capsys.readouterr().err
    assert "Validation: 2 recordings, 1 line skipped." in said
    assert "1 line that is a file that is not there: none.wav (2)" in said
    assert "Left out: 0 recordings to learn from and 1 to validate on" in said
    (tmp_path / "sounds" / "valid.tsv").write_text(missing)
    with pytest.raises(UserError, match=r"valid.tsv holds no usable recording \(line 1: There is no file"):
        train_transcribe(given, recipe, tmp_path / "none", device="cpu", quiet=True)


def test_each_file_gets_its_answer(taught: Path, tmp_path: Path) -> None:
    good = write_sound(tmp_path / "good.wav", say("low high", 5), RATE)
    (tmp_path / "bad.wav").write_text("no sound at all")
    (tmp_path / "empty.wav").write_bytes(b"")
    write_sound(tmp_path / "silent.wav", np.zeros(RATE, dtype=np.float32), RATE)
    transcriber = Transcriber(load_model(taught))
    names = [tmp_path / "bad.wav", good, tmp_path / "none.wav", tmp_path / "silent.wav", tmp_path / "empty.wav", good]
    bad, heard, missing, silent, empty, again = transcriber.transcribe_files(names, details=True)
    assert all(isinstance(answer, UserError) for answer in (bad, missing, empty))
    assert isinstance(heard, Transcript)
    assert heard == again
    assert heard.text == "low high"
    assert isinstance(silent, Transcript)
    assert silent.text == ""
    [segment] = heard.segments
    assert [word.word for word in segment.words] == ["low", "high"]
    assert 0 <= segment.words[0].start <= segment.words[1].start <= segment.words[1].end <= segment.end + 0.05


def test_long_recordings_come_in_segments(taught: Path) -> None:
    transcriber = Transcriber(load_model(taught))
    pause = np.zeros(2 * RATE, dtype=np.float32)
    wave = np.concatenate([say("low", 1), pause, say("high", 2), pause, say("low low", 3)])
    [(text, _, seconds, segments)] = transcriber.hear([wave])
    assert len(segments) == 3
    assert text == " ".join(segment.text for segment in segments if segment.text)
    for segment in segments:
        [alone] = transcriber.hear([wave[round(segment.start * RATE) : round(segment.end * RATE)]])
        assert alone[0] == segment.text
    assert seconds == pytest.approx(len(wave) / RATE, abs=1e-3)
    assert segments[1].start == pytest.approx(len(say("low", 1)) / RATE + 2, abs=0.3)


def test_batched_is_single(taught: Path) -> None:
    transcriber = Transcriber(load_model(taught))
    waves = [say("low high", 11), say("high", 12), say("low low high", 13)]
    together = transcriber.hear(waves)
    for wave, found in zip(waves, together, strict=True):
        [alone] = transcriber.hear([wave])
        assert alone[0] == found[0]
        assert alone[1] == pytest.approx(found[1], abs=1e-4)


def test_evaluation(taught: Path, tmp_path: Path) -> None:
    data = write_recordings(tmp_path / "test", 12, seed=7)
    data.write_text(data.read_text() + "missing.wav\tlow\n")
    report = evaluate_transcribe(Transcriber(load_model(taught)), open_recordings(data))
    own, baseline = report.systems
    assert report.n_recordings == 12
    assert report.n_bad == 1
    assert "missing.wav" in str(report.bad_example)
    assert own.wer.low <= own.wer.rate <= own.wer.high
    assert own.wer.rate < baseline.wer.rate
    texts = [line.split("\t")[1] for line in data.read_text().splitlines()[:12]]
    commonest = Counter(texts).most_common(1)[0][0]
    assert baseline.wer.rate == pytest.approx(100 * jiwer.wer(texts, [commonest] * 12))


def test_mistakes_are_counted() -> None:
    references, guesses = ["a b c", "a b", "x"], ["a d c", "a b e", ""]
    found = {(m.wanted, m.heard): m.n for m in count_mistakes(references, guesses)}
    assert found == {("b", "d"): 1, ("", "e"): 1, ("x", ""): 1}
    assert measure("m", references, guesses).wer.rate == pytest.approx(100 * jiwer.wer(references, guesses))
    assert measure("m", references, guesses).cer.rate == pytest.approx(100 * jiwer.cer(references, guesses))


def test_commands(taught: Path, tmp_path: Path) -> None:
    (tmp_path / "commands.txt").write_text("# what it knows\nlow high\n\nhigh  high high\nlow low\n")
    commands = read_commands(tmp_path / "commands.txt")
    assert commands == ["low high", "high high high", "low low"]
    listener = Listener(Transcriber(load_model(taught)), commands)
    names = []
    for i, text in enumerate(["low high", "high high high", "low low", "high"]):
        names.append(write_sound(tmp_path / f"{i}.wav", say(text, 20 + i), RATE))
    names.append(write_sound(tmp_path / "noise.wav", noise(0.5, RATE, 0.2), RATE))
    names.append(write_sound(tmp_path / "silent.wav", np.zeros(RATE, dtype=np.float32), RATE))
    found = list(listener.listen([*names, tmp_path / "none.wav"]))
    assert [answer.best for answer in found[:3]] == commands
    assert [answer.command for answer in found[3:6]] == [None, None, None]
    assert isinstance(found[6], UserError)
    for answer in found[:6]:
        assert 0 <= answer.confidence <= 1


def test_lists_of_commands_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no file"):
        read_commands(tmp_path / "none.txt")
    (tmp_path / "empty.txt").write_text("# nothing\n")
    with pytest.raises(UserError, match="holds no command"):
        read_commands(tmp_path / "empty.txt")


def test_the_forward_path_never_goes_back() -> None:
    gain = np.full((3, 9), -1.0)
    for row, columns in enumerate([(0, 3), (3, 4), (4, 9)]):
        gain[row, slice(*columns)] = 1.0
    assert forward_path(gain) == [0, 3, 4]
