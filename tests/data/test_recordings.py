"""Lists and folders of recordings: every layout is read, and whatever is wrong is said with its line."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.data.audio_split import cut_at_silence
from glassformer.data.pairs import BadLine
from glassformer.data.recordings import (
    Recording,
    holds_recordings,
    open_recordings,
    read_recordings,
    recordings_fingerprint,
)
from glassformer.data.recordings_check import check_recordings, explain_recordings
from glassformer.errors import UserError
from tests.data.sounds import noise, speechlike, tone, write_sound


def rows(path: Path) -> list[tuple[str, str]]:
    found = [item for item in read_recordings(open_recordings(path)) if isinstance(item, Recording)]
    return [(item.path.relative_to(path if path.is_dir() else path.parent).as_posix(), item.text) for item in found]


WANTED = [("a/one.wav", "hello, you"), ("a/two.flac", "good bye")]
LISTS = {
    "plain.tsv": "a/one.wav\thello, you\na/two.flac\tgood bye\n",
    "header.tsv": "client\tpath\tsentence\nx\ta/one.wav\thello, you\ny\ta/two.flac\tgood bye\n",
    "plain.csv": 'a/one.wav,"hello, you"\na/two.flac,good bye\n',
    "header.csv": 'transcript;file\n"hello, you";a/one.wav\ngood bye;a/two.flac\n',
    "sphinx.tsv": "train\tid1\ta/one.wav\t99\thello, you\ntrain\tid2\ta/two.flac\t98\tgood bye\n",
    "turned.tsv": "hello, you\ta/one.wav\ngood bye\ta/two.flac\n",
    "folder.csv": 'file_name,transcription\na/one.wav,"hello, you"\na/two.flac,good bye\n',
    "deep.csv": 'wav_filename,wav_filesize,transcript\na/one.wav,9,"hello, you"\na/two.flac,8,good bye\n',
    "numbered.tsv": "path\ttext\n1\ta/one.wav\thello, you\n2\ta/two.flac\tgood bye\n",
    "list.jsonl": "".join(
        json.dumps({"id": "x", "audio_filepath": path, "duration": 1.0, "text": text}) + "\n" for path, text in WANTED
    ),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(LISTS[name], encoding="utf-8")
    assert rows(tmp_path / name) == WANTED
    assert holds_recordings(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("long.tsv", "a " * 70_000 + "\tb\nc\td\n", None),
        ("return.tsv", "a\rb\tc\nd\te\n", None),
        ("return.csv", "a\rb,c\nd,e\nf,g\n", None),
        ("array.json", '[{"path": "a.wav", "text": "a"}, {"path": "b.wav", "text": "b"}]\n', "holds no JSON object"),
        ("deep.json", "[" * 100_000 + "\n", "holds no JSON object"),
        ("deep.txt", '{"a":' * 100_000 + "\n", "holds no JSON object"),
        ("wide.tsv", "\u3000\n\u3000\n", "nothing but empty lines"),
        ("wide.txt", "\u3000\n\u3000\n", "nothing but empty lines"),
        ("endless.csv", "a" * 2**20 + "\n", "holds nothing that can be read"),
    ],
)
def test_what_is_no_list_does_not_break_the_guess(tmp_path: Path, name: str, content: str, wanted: str | None) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8", newline="")
    assert not holds_recordings(tmp_path / name)
    if wanted is None:
        assert list(read_recordings(open_recordings(tmp_path / name)))
    else:
        with pytest.raises(UserError, match=wanted):
            open_recordings(tmp_path / name)


def test_sounds_in_clips_beside_the_list(tmp_path: Path) -> None:
    (tmp_path / "clips").mkdir()
    for name in ("clips/a.wav", "clips/b.wav", "b.wav"):
        write_sound(tmp_path / name, tone(0.1))
    (tmp_path / "train.tsv").write_text("path\tsentence\na.wav\tone\nb.wav\ttwo\nc.wav\tthree\n")
    assert [name for name, _ in rows(tmp_path / "train.tsv")] == ["clips/a.wav", "b.wav", "c.wav"]


@pytest.mark.parametrize("name", ["x" * 5000 + ".wav", "a\0b.wav"])
def test_a_path_that_cannot_be_is_a_file_that_is_not_there(tmp_path: Path, name: str) -> None:
    for good in ("a.wav", "b.wav"):
        write_sound(tmp_path / good, tone(0.2))
    (tmp_path / "a.tsv").write_text(f"a.wav\thello\nb.wav\tyou\n{name}\tbye\n")
    files = open_recordings(tmp_path / "a.tsv")
    report = check_recordings(files)
    assert [(finding.lines, finding.reason[:27]) for finding in report.bad] == [((3,), "is a file that is not there")]
    assert recordings_fingerprint(files)


def test_columns_by_hand(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("hello\tx\tone.wav\nbye\ty\ttwo.wav\n")
    found = list(read_recordings(open_recordings(tmp_path / "a.tsv", "3", "1")))
    assert [(item.path.name, item.text) for item in found] == [("one.wav", "hello"), ("two.wav", "bye")]


def test_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name, text in (("b.wav", "good  bye\n"), ("sub/a.wav", "hello")):
        write_sound(tmp_path / name, tone(0.1))
        (tmp_path / name).with_suffix(".txt").write_text(text)
    write_sound(tmp_path / "c.wav", tone(0.1))
    found = list(read_recordings(open_recordings(tmp_path)))
    assert rows(tmp_path) == [("b.wav", "good bye"), ("sub/a.wav", "hello")]
    assert [item.reason for item in found if isinstance(item, BadLine)] == ["has no transcript: c.txt is missing"]
    assert holds_recordings(tmp_path)


def test_pairs_of_sentences_are_no_recordings(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("hello\thallo\nbye\ttschüss\n", encoding="utf-8")
    assert not holds_recordings(tmp_path / "pairs.tsv")
    assert not holds_recordings(tmp_path / "none.tsv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="holds no recordings"):
        open_recordings(tmp_path / "empty")
    (tmp_path / "a.wav").write_text("text in a sound's clothes\n")
    with pytest.raises(UserError, match="is a recording, but a list"):
        open_recordings(tmp_path / "a.wav")


def test_fingerprint_changes_with_text_and_sound(tmp_path: Path) -> None:
    sound = write_sound(tmp_path / "a.wav", tone(0.1))
    (tmp_path / "a.tsv").write_text("a.wav\tone\na.wav\ttwo\n")
    first = recordings_fingerprint(open_recordings(tmp_path / "a.tsv"))
    assert first == recordings_fingerprint(open_recordings(tmp_path / "a.tsv"))
    write_sound(sound, tone(0.2))
    second = recordings_fingerprint(open_recordings(tmp_path / "a.tsv"))
    (tmp_path / "a.tsv").write_text("a.wav\tone\na.wav\tthree\n")
    assert len({first, second, recordings_fingerprint(open_recordings(tmp_path / "a.tsv"))}) == 3


def test_check_names_what_is_wrong(tmp_path: Path) -> None:
    write_sound(tmp_path / "good.wav", speechlike(1.0))
    write_sound(tmp_path / "other.wav", speechlike(1.2, 8000), 8000)
    write_sound(tmp_path / "loud.wav", np.clip(10 * tone(1.0), -1, 1))
    write_sound(tmp_path / "silent.wav", 1e-5 * noise(1.0))
    (tmp_path / "broken.wav").write_bytes(b"RIFF....")
    names = ["good", "other", "loud", "silent", "broken", "missing"]
    lines = [f"{name}.wav\tword number {i}\n" for i, name in enumerate(names)]
    (tmp_path / "a.tsv").write_text("".join(lines) + "good.wav\t" + "many words " * 30 + "\nno transcript\n")
    report = check_recordings(open_recordings(tmp_path / "a.tsv"))
    assert report.n_recordings == 5
    assert report.rates == {8000: 1, 16_000: 4}
    assert report.rate == 16_000
    assert report.seconds == pytest.approx(5.2, abs=0.01)
    suspicious = {finding.reason: finding.lines for finding in report.suspicious}
    assert suspicious["has a clipped recording"] == (3,)
    assert suspicious["has a silent recording"] == (4,)
    assert suspicious["has a recording that another line has too"] == (1, 7)
    assert any("characters a second" in reason and lines == (7,) for reason, lines in suspicious.items())
    bad = {line: finding.reason for finding in report.bad for line in finding.lines}
    assert "cannot be read as sound" in bad[5]
    assert bad[6] == "is a file that is not there: missing.wav"
    assert bad[8] == "has 1 column, not 2"
    text = explain_recordings(report)
    assert "5 recordings" in text
    assert "Warning: 38% of the recordings cannot be used." in text


def test_check_refuses_what_cannot_teach(tmp_path: Path) -> None:
    write_sound(tmp_path / "a.wav", tone(0.2))
    (tmp_path / "one.tsv").write_text("a.wav\thello\nmissing.wav\tbye\n")
    with pytest.raises(UserError, match=r"holds 1 usable recording \(line 2: There is no file"):
        check_recordings(open_recordings(tmp_path / "one.tsv"))
    (tmp_path / "same.tsv").write_text("a.wav\thello\na.wav\thello\n")
    with pytest.raises(UserError, match="The transcript is the same"):
        check_recordings(open_recordings(tmp_path / "same.tsv"))


def test_what_is_validated_on_is_checked_too(tmp_path: Path) -> None:
    for i, name in enumerate(("a", "b", "c")):
        write_sound(tmp_path / f"{name}.wav", tone(0.2, 300.0 + i))
    (tmp_path / "copy.wav").write_bytes((tmp_path / "a.wav").read_bytes())
    (tmp_path / "train.tsv").write_text("a.wav\thello\nb.wav\tyou\n")
    (tmp_path / "valid.tsv").write_text("copy.wav\thello\nnone.wav\tyou\nc.wav\tyou\n")
    report = check_recordings(*(open_recordings(tmp_path / name) for name in ("train.tsv", "valid.tsv")))
    assert report.valid is not None
    assert (report.valid.n_recordings, report.valid.n_same, report.valid.bad_lines) == (2, 1, (2,))
    text = explain_recordings(report)
    assert "Validation: 2 recordings, 1 line skipped.\n  Also in training: 1 of the recordings." in text
    assert (
        "valid.tsv: skipped, as they cannot be used:\n  1 line that is a file that is not there: none.wav (2)" in text
    )
    assert "Warning: 50% of the validation recordings are in training too" in text


def test_sound_and_vectors_do_not_mix(tmp_path: Path) -> None:
    write_sound(tmp_path / "a.wav", tone(0.2))
    write_sound(tmp_path / "b.wav", tone(0.2))
    np.save(tmp_path / "c.npy", np.zeros((20, 13)))
    (tmp_path / "a.tsv").write_text("a.wav\thello\nb.wav\tyou\nc.npy\tbye\n")
    report = check_recordings(open_recordings(tmp_path / "a.tsv"))
    assert [finding.lines for finding in report.bad] == [(3,)]


def silence(seconds: float) -> np.ndarray:
    return np.zeros(round(16_000 * seconds), dtype=np.float32)


def test_long_recordings_are_cut_at_silence() -> None:
    wave = np.concatenate([silence(1), tone(2.0), silence(2), tone(2.0), silence(0.4), tone(1.0), silence(1)])
    parts = cut_at_silence(wave, 16_000, 4.0)
    assert len(parts) == 2
    for (begin, end), (first, last) in zip(parts, [(1.0, 3.0), (5.0, 8.4)], strict=True):
        assert begin / 16_000 == pytest.approx(first, abs=0.2)
        assert end / 16_000 == pytest.approx(last, abs=0.2)


def test_short_ones_stay_whole_and_silent_ones_are_nothing() -> None:
    assert cut_at_silence(tone(2.0), 16_000, 4.0) == [(0, 32_000)]
    assert cut_at_silence(silence(9), 16_000, 4.0) == []
    assert cut_at_silence(silence(0), 16_000, 4.0) == []


@given(st.lists(st.tuples(st.booleans(), st.floats(0.1, 3.0)), min_size=1, max_size=8), st.floats(0.5, 3.0))
def test_no_part_is_too_long_and_no_sound_is_lost(plan: list[tuple[bool, float]], longest: float) -> None:
    wave = np.concatenate([tone(s) if loud else silence(s) for loud, s in plan])
    parts = cut_at_silence(wave, 16_000, longest)
    covered = np.zeros(len(wave), dtype=bool)
    for begin, end in parts:
        assert 0 < end - begin <= longest * 16_000 + 640
        assert not covered[begin:end].any()
        covered[begin:end] = True
    assert not (np.abs(wave[~covered]) > 0.01).any()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", 'file,text\na.wav," one\n two  three"\nb.wav,four\n'),
        ("a.jsonl", '{"path": "a.wav", "text": "one\\n\\ttwo three\\n"}\n{"path": "b.wav", "text": "four"}\n'),
    ],
)
def test_transcripts_are_one_line(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert rows(tmp_path / name) == [("a.wav", "one two three"), ("b.wav", "four")]
