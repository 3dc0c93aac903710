"""Recordings from files of every kind, and what is said of files that are none."""

import io
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from glassformer.data import audio
from glassformer.data.audio import level, read_sound, read_vectors, resample, sound_info
from glassformer.data.audio_store import AudioStore, write_audio_store
from glassformer.errors import UserError
from tests.data.sounds import noise, speechlike, tone, write_sound


@pytest.mark.parametrize(("suffix", "most"), [("wav", 1e-4), ("flac", 1e-4), ("ogg", 0.05), ("mp3", 0.05)])
def test_kinds_of_files(tmp_path: Path, suffix: str, most: float) -> None:
    wave = tone(1.0)
    found = read_sound(write_sound(tmp_path / f"a.{suffix}", wave), 16_000)
    inside = slice(2000, 14_000)  # the lossy ones blur the ends
    assert abs(len(found) - len(wave)) < 2500
    assert np.abs(found[inside] - wave[inside]).max() < most


@pytest.mark.parametrize("rate", [8000, 11_025, 22_050, 44_100, 48_000])
def test_any_rate_keeps_the_pitch(tmp_path: Path, rate: int) -> None:
    found = read_sound(write_sound(tmp_path / "a.wav", tone(1.0, 1000.0, rate), rate), 16_000)
    assert len(found) == pytest.approx(16_000, abs=2)
    assert np.abs(np.fft.rfft(found[:16_000])).argmax() == 1000
    assert sound_info(tmp_path / "a.wav").rate == rate


def test_channels_are_mixed(tmp_path: Path) -> None:
    left, right = tone(), noise()
    soundfile.write(tmp_path / "a.wav", np.stack([left, right], axis=1), 16_000, subtype="FLOAT")
    assert np.allclose(read_sound(tmp_path / "a.wav", 16_000), (left + right) / 2)


@given(st.integers(1, 5000), st.sampled_from([8000, 12_000, 16_000]), st.sampled_from([8000, 16_000]))
def test_resampling_keeps_the_duration(n: int, rate: int, new: int) -> None:
    assert abs(len(resample(np.zeros(n, dtype=np.float32), rate, new)) - n * new / rate) <= 1


def test_level() -> None:
    assert level(np.ones(100, dtype=np.float32)) == 0.0
    assert level(tone(1.0, loud=0.1)) == pytest.approx(20 * np.log10(0.1 / np.sqrt(2)), abs=1e-3)
    assert level(np.zeros(10, dtype=np.float32)) == -np.inf


def refused(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        read_sound(path, 16_000) if path.suffix == ".wav" else read_vectors(path)
    assert str(path) in caught.value.message
    return caught.value.message


def test_files_that_are_no_sound(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    assert "There is no file" in refused(path)
    path.write_bytes(b"")
    assert "is empty" in refused(path)
    path.write_text("this is a text, not a sound\n" * 100)
    assert "cannot be read as sound" in refused(path)
    write_sound(path, np.zeros(0, dtype=np.float32))
    assert "holds no samples" in refused(path)
    path.unlink()
    path.mkdir()
    assert "is not a file" in refused(path)


def test_a_file_cut_short(tmp_path: Path) -> None:
    """A wav that lost its end gives what is left; a flac, whose frames are coded, says that it is broken."""
    whole = write_sound(tmp_path / "whole.wav", speechlike())
    (tmp_path / "cut.wav").write_bytes(whole.read_bytes()[:5000])
    assert len(read_sound(tmp_path / "cut.wav", 16_000)) < 3000
    (tmp_path / "head.wav").write_bytes(whole.read_bytes()[:20])
    assert "cannot be read as sound" in refused(tmp_path / "head.wav")


def test_numbers_that_are_none(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", np.array([0.0, np.nan, 1.0], dtype=np.float32), 16_000, subtype="FLOAT")
    assert "no numbers" in refused(tmp_path / "a.wav")


def test_ten_hours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audio, "MOST_SECONDS", 1)
    assert "at most" in refused(write_sound(tmp_path / "a.wav", tone(1.5)))


def test_vectors(tmp_path: Path) -> None:
    series = np.random.default_rng(0).standard_normal((7, 13)).astype(np.float32)
    np.save(tmp_path / "a.npy", series.astype(np.float64))
    np.savez(tmp_path / "a.npz", series)
    for order in (">", "<"):
        (tmp_path / "a.mfc").write_bytes(struct.pack(f"{order}i", series.size) + series.astype(f"{order}f4").tobytes())
        assert np.array_equal(read_vectors(tmp_path / "a.mfc"), series)
    assert np.array_equal(read_vectors(tmp_path / "a.npy"), series)
    assert np.array_equal(read_vectors(tmp_path / "a.npz"), series)


def test_vectors_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "a.mfc").write_bytes(struct.pack(">i", 26) + b"\0" * 100)
    assert "its count does not fit" in refused(tmp_path / "a.mfc")
    (tmp_path / "b.mfc").write_bytes(struct.pack(">i", 14) + b"\0" * 56)
    assert "no whole vectors of 13" in refused(tmp_path / "b.mfc")
    np.save(tmp_path / "a.npy", np.zeros(5))
    assert "shape (5,)" in refused(tmp_path / "a.npy")
    np.save(tmp_path / "b.npy", np.full((2, 3), np.nan))
    assert "no numbers" in refused(tmp_path / "b.npy")
    np.savez(tmp_path / "a.npz", np.zeros((2, 2)), np.zeros((2, 2)))
    assert "holds 2 arrays" in refused(tmp_path / "a.npz")
    (tmp_path / "c.npy").write_bytes(b"no numpy file")
    assert "numpy's file" in refused(tmp_path / "c.npy")
    np.save(tmp_path / "d.npy", np.zeros((2, 3)))
    with pytest.raises(UserError, match="vectors of 3 numbers, but the others have 4"):
        read_vectors(tmp_path / "d.npy", 4)


def test_a_pickle_in_an_array_is_not_run(tmp_path: Path) -> None:
    file = io.BytesIO()
    np.save(file, np.array([[pickle.dumps(1)]], dtype=object))
    (tmp_path / "a.npy").write_bytes(file.getvalue())
    assert "numpy's file" in refused(tmp_path / "a.npy")


def test_store(tmp_path: Path) -> None:
    waves = [noise(0.1, seed=i) for i in range(3)]
    store = write_audio_store(tmp_path / "a", waves)
    assert store.lengths.tolist() == [1600] * 3
    for i, wave in enumerate(waves):
        assert np.abs(store[i] - wave).max() < 1e-4
    vectors = [np.random.default_rng(i).standard_normal((i + 2, 5)).astype(np.float32) for i in range(3)]
    store = write_audio_store(tmp_path / "b", vectors)
    assert store.width == 5
    assert all(np.array_equal(store[i], series) for i, series in enumerate(vectors))
    (tmp_path / "b.values").write_bytes((tmp_path / "b.values").read_bytes()[:-4])
    with pytest.raises(UserError, match="is damaged"):
        AudioStore(tmp_path / "b")
    with pytest.raises(UserError, match="is not complete"):
        AudioStore(tmp_path / "none")
