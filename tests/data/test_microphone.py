"""A stream of sound becomes recordings; a microphone that is not there is said."""

import sys
import types

import numpy as np
import pytest

from glassformer.data.audio import Series
from glassformer.data.microphone import BLOCK, LONGEST, RATE, microphone, spoken
from glassformer.errors import UserError

SIZE = round(BLOCK * RATE)
random = np.random.default_rng(0)


def noise(seconds: float, loudness: float) -> Series:
    return (random.standard_normal(round(seconds * RATE)) * loudness).astype(np.float32)


def blocks(*parts: Series) -> list[Series]:
    wave = np.concatenate(parts)
    return [wave[i : i + SIZE] for i in range(0, len(wave) - SIZE + 1, SIZE)]


def test_what_is_said_between_silences() -> None:
    quiet, word, long_word = noise(1.5, 1e-3), noise(0.6, 0.1), noise(1.2, 0.1)
    found = list(spoken(blocks(quiet, word, quiet, long_word, quiet)))
    assert len(found) == 2
    for heard, said in zip(found, (word, long_word), strict=True):
        assert len(said) < len(heard) < len(said) + 1.3 * RATE
        # all of it is there: nothing of the word's energy is lost
        assert np.square(heard).sum() == pytest.approx(np.square(said).sum(), rel=0.05)


def test_a_pause_inside_a_sentence_does_not_cut_it() -> None:
    quiet, word, breath = noise(1.5, 1e-3), noise(0.5, 0.1), noise(0.4, 1e-3)
    assert len(list(spoken(blocks(quiet, word, breath, word, quiet)))) == 1


def test_clicks_and_silence_are_nothing() -> None:
    quiet, click = noise(1.5, 1e-3), noise(BLOCK, 0.5)
    assert list(spoken(blocks(quiet, click, quiet, np.zeros(RATE, np.float32)))) == []
    assert list(spoken([])) == []


def test_what_is_said_when_the_stream_ends_counts_and_nothing_is_endless() -> None:
    quiet, word = noise(1.5, 1e-3), noise(0.6, 0.1)
    assert len(list(spoken(blocks(quiet, word)))) == 1
    tones = blocks(quiet, *[noise(0.5, 0.1), noise(0.2, 1e-3)] * 60)
    assert all(len(heard) <= LONGEST * RATE + SIZE for heard in spoken(tones))


def test_a_missing_package_or_device_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    with pytest.raises(UserError, match="microphone cannot be used") as error:
        next(microphone())
    assert "glassformer[mic]" in error.value.hint

    class NoDevice(Exception):
        pass

    def refuse(**_: object) -> None:
        raise NoDevice("Error querying device -1")

    fake = types.SimpleNamespace(InputStream=refuse, PortAudioError=NoDevice)
    monkeypatch.setitem(sys.modules, "sounddevice", fake)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="querying device"):
        next(microphone())
