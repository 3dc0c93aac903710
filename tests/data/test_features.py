"""Log-mel and MFCC are librosa's and Whisper's, to rounding; a batch is its recordings one by one."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.data.audio_augment import (
    BANDS,
    MOST_EXCHANGES,
    NONE,
    AugmentSettings,
    augment_vectors,
    augment_wave,
    change_speed,
    change_tempo,
    cross,
    draw_speed,
    draw_tempo,
    hide_parts,
    pairs_to_join,
    stretched_cepstra,
)
from glassformer.data.features import (
    FeatureSettings,
    automatic_features,
    cosines,
    extract,
    mel_filters,
    pad_features,
    pad_to,
)
from glassformer.errors import UserError
from tests.data.sounds import noise, speechlike, tone

with warnings.catch_warnings():  # librosa's own imports warn
    warnings.simplefilter("ignore")
    import librosa

WHISPER = FeatureSettings(n_fft=400, scale="whisper")


@pytest.mark.parametrize(("rate", "n_fft", "bands"), [(16_000, 400, 80), (16_000, 512, 128), (8000, 256, 40)])
def test_filters_are_librosas(rate: int, n_fft: int, bands: int) -> None:
    theirs = librosa.filters.mel(sr=rate, n_fft=n_fft, n_mels=bands)
    assert np.abs(mel_filters(rate, n_fft, bands).numpy() - theirs).max() < 1e-7


@pytest.mark.parametrize("settings", [FeatureSettings(scale="none"), replace(automatic_features(8000), scale="none")])
def test_log_mel_is_librosas(settings: FeatureSettings) -> None:
    wave = speechlike(rate=settings.rate)
    mel = librosa.feature.melspectrogram(
        y=wave,
        sr=settings.rate,
        n_fft=settings.n_fft,
        hop_length=settings.hop_samples,
        win_length=settings.window_samples,
        n_mels=settings.n_features,
        pad_mode="reflect",
    )
    theirs = librosa.power_to_db(mel, amin=1e-10, top_db=80).T[:-1] / 10
    assert np.abs(extract([wave], settings)[0].numpy() - theirs).max() < 1e-3


def test_mfcc_is_librosas() -> None:
    settings = FeatureSettings(kind="mfcc", n_features=13, n_mels=40, scale="none")
    wave = speechlike()
    theirs = librosa.feature.mfcc(
        y=wave, sr=16_000, n_mfcc=13, n_mels=40, n_fft=512, win_length=400, hop_length=160, pad_mode="reflect"
    )
    assert np.abs(extract([wave], settings)[0].numpy() - theirs.T[:-1]).max() < 1e-2  # in decibels


def test_log_mel_is_whispers() -> None:
    from transformers import WhisperFeatureExtractor

    theirs = WhisperFeatureExtractor()
    wave = speechlike(3.0)
    whole = np.pad(wave, (0, 480_000 - len(wave)))  # it hears 30 seconds
    wanted = theirs(whole, sampling_rate=16_000, return_tensors="np").input_features[0].T
    found = extract([whole], WHISPER)[0].numpy()
    assert found.shape == wanted.shape == (3000, 80)
    assert np.abs(found - wanted).max() < 1e-4


@given(st.lists(st.integers(1, 4000), min_size=1, max_size=5), st.sampled_from(["mel", "mfcc"]))
def test_a_batch_is_its_recordings_one_by_one(lengths: list[int], kind: str) -> None:
    settings = FeatureSettings(kind=kind, n_features=13)  # type: ignore[arg-type]
    waves = [noise(n / 16_000, seed=n) for n in lengths]
    together = extract(waves, settings)
    for wave, found in zip(waves, together, strict=True):
        assert found.shape == (settings.n_frames(len(wave)), 13)
        assert torch.allclose(found, extract([wave], settings)[0], atol=2e-3)


def test_each_recording_gets_mean_zero_and_deviation_one() -> None:
    for features in (extract([speechlike()], FeatureSettings())[0], extract([tone()], FeatureSettings())[0]):
        assert features.mean(dim=0).abs().max() < 1e-3
    assert extract([speechlike()], FeatureSettings())[0].std(dim=0).sub(1).abs().max() < 0.02
    silence = extract([np.zeros(8000, dtype=np.float32)], FeatureSettings())[0]
    assert bool((silence == 0).all())
    vectors = np.random.default_rng(0).standard_normal((50, 13)).astype(np.float32) * 7 + 3
    scaled = extract([vectors], FeatureSettings(kind="vectors", n_features=13))[0]
    assert scaled.mean(dim=0).abs().max() < 1e-5


def test_loudness_does_not_matter() -> None:
    wave = speechlike()
    loud, soft = extract([wave, wave / 8], FeatureSettings())
    assert torch.allclose(loud, soft, atol=1e-2)


def test_padding() -> None:
    batch, keep = pad_features([torch.ones(2, 3), torch.ones(4, 3)])
    assert batch.shape == (2, 4, 3)
    assert keep is not None
    assert keep.tolist() == [[True, True, False, False], [True] * 4]
    assert pad_features([torch.ones(2, 3)])[1] is None
    assert pad_to(torch.ones(2, 3), 3).sum() == 6
    assert pad_to(torch.ones(5, 3), 3).shape == (3, 3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_features": 0},
        {"rate": 10},
        {"hop": 0.0},
        {"n_fft": 100},
        {"kind": "mfcc", "n_mels": 4},
        {"kind": "mfcc", "scale": "whisper"},
    ],
)
def test_wrong_settings(wrong: dict[str, object]) -> None:
    with pytest.raises(UserError, match="features"):
        FeatureSettings(**wrong)  # type: ignore[arg-type]


def generator(seed: int = 3) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_speed_changes_the_length() -> None:
    wave = speechlike()
    fast = change_speed(wave, 1.25, 16_000)
    assert len(fast) == pytest.approx(len(wave) / 1.25, abs=2)
    vectors = np.arange(20, dtype=np.float32)[:, None] * np.ones((1, 3), dtype=np.float32)
    slow = change_speed(vectors, 0.5, None)
    assert slow.shape == (40, 3)
    assert np.allclose(slow[:, 0], np.linspace(0, 19, 40), atol=1e-4)
    drawn = {draw_speed(replace(NONE, speeds=(0.5, 1.25)), generator(seed)) for seed in range(20)}
    assert drawn == {0.5, 1.25}


def test_gain_and_noise_keep_their_promises() -> None:
    wave = tone(2.0)
    for seed in range(20):
        louder = augment_wave(wave, replace(NONE, gain=6.0), generator(seed))
        assert 10 ** (-6 / 20) <= np.abs(louder).max() / np.abs(wave).max() <= 10 ** (6 / 20)
        noisy = augment_wave(wave, replace(NONE, noise=1.0, noise_below=(20.0, 30.0)), generator(seed))
        below = 10 * np.log10(np.mean(wave**2) / np.mean((noisy - wave) ** 2))
        assert 19.5 < below < 30.5


@given(st.integers(1, 60), st.integers(1, 20), st.integers(0, 1000))
def test_hidden_parts_are_stretches_and_bands(n: int, f: int, seed: int) -> None:
    features = torch.randn(n, f, generator=torch.Generator().manual_seed(seed))
    settings = AugmentSettings(n_time_masks=1, time_mask=0.5, n_feature_masks=1, feature_mask=0.3)
    hidden = hide_parts(features, settings, generator(seed))
    changed = hidden != features
    rows, columns = changed.all(dim=1), changed.all(dim=0)
    assert int(rows.sum()) <= 0.5 * n or f == 1 or n == 1 or bool(columns.all())
    outside = changed[~rows][:, ~columns]
    assert not bool(outside.any())


def test_the_same_generator_gives_the_same_bits() -> None:
    wave, settings = speechlike(), AugmentSettings(noise=1.0)
    one, two = (augment_wave(wave, settings, generator()) for _ in range(2))
    assert np.array_equal(one, two)
    features = extract([one], FeatureSettings())[0]
    first, second = (hide_parts(features, settings, generator()) for _ in range(2))
    assert torch.equal(first, second)
    assert not torch.equal(first, hide_parts(features, settings, generator(4)))


def test_wrong_augmentation() -> None:
    for wrong in ({"speeds": (3.0,)}, {"noise": 2.0}, {"gain": -1.0}):
        with pytest.raises(UserError, match="augment"):
            AugmentSettings(**wrong)  # type: ignore[arg-type]


def test_another_throat_stretches_the_spectrum_behind_cepstra() -> None:
    bands = torch.arange(BANDS, dtype=torch.float32)
    hill = torch.exp(-((bands - 12.0) ** 2) / 50)[None]  # smooth: few cepstral numbers hold it
    cepstra = hill @ cosines(BANDS, 13)
    spectrum = (cepstra @ stretched_cepstra(13, 1.25)) @ cosines(BANDS, 13).T
    assert abs(int(spectrum.argmax()) - 15) <= 1
    torch.testing.assert_close(cepstra @ stretched_cepstra(13, 1.0), cepstra, atol=1e-5, rtol=0)


def test_bands_of_cepstra_are_hidden_in_their_spectrum() -> None:
    cepstra = generator().standard_normal((50, 13)).astype(np.float32)
    settings = replace(NONE, throat=1e-9, n_feature_masks=1, feature_mask=0.6)
    changed = augment_vectors(cepstra, settings, generator(0))
    before, after = ((x - x.mean(axis=0)) @ cosines(BANDS, 13).T.numpy() for x in (cepstra, changed))
    lost = 1 - after.std(axis=0) / before.std(axis=0)
    assert lost.max() > 0.5  # inside the band
    assert np.median(np.abs(lost)) < 0.2  # and little elsewhere
    features = torch.from_numpy(cepstra)
    assert torch.equal(hide_parts(features, settings, generator()), features)  # not twice


@pytest.mark.parametrize("seed", range(5))
def test_tempo_changes_the_length_and_not_the_values(seed: int) -> None:
    hill = torch.linspace(0, 1, 100)[:, None].repeat(1, 3)
    changed = change_tempo(hill, draw_tempo(replace(NONE, tempo=0.3), generator(seed)))
    assert 100 / 1.3 - 1 <= len(changed) <= 100 / 0.7 + 1
    assert len(changed) != 100
    torch.testing.assert_close(changed, torch.linspace(0, 1, len(changed))[:, None].repeat(1, 3))
    assert change_tempo(hill, draw_tempo(NONE, generator(seed))) is hill


@given(n=st.integers(1, 30), joined=st.sampled_from([0.0, 0.5, 1.0]), seed=st.integers(0, 99))
def test_each_recording_of_a_batch_is_heard_once(n: int, joined: float, seed: int) -> None:
    together = pairs_to_join(n, replace(NONE, joined=joined), generator(seed))
    assert sorted(i for part in together for i in part) == list(range(n))
    assert {0.0: [n], 0.5: [n, (n + 1) // 2], 1.0: [(n + 1) // 2]}[joined].count(len(together)) > 0


@given(st.lists(st.integers(1, 6), min_size=1, max_size=7), st.integers(0, 50))
def test_crossed_recordings_go_on_as_another_ends(sizes: list[int], seed: int) -> None:
    """Nothing is lost or said twice, no recording is empty, and each is made of a few runs of two of them."""
    rows = [[(i, k) for k in range(size)] for i, size in enumerate(sizes)]
    crossed = cross(rows, replace(NONE, crossed=1.0), generator(seed))
    assert sorted(itertools.chain.from_iterable(crossed)) == sorted(itertools.chain.from_iterable(rows))
    assert len(crossed) == len(rows)
    for row in crossed:
        assert row
        assert len({i for i, _ in row}) <= 2
        cuts = sum((i, k + 1) != following for (i, k), following in itertools.pairwise(row))
        assert cuts <= MOST_EXCHANGES


def test_crossed_is_a_share_of_the_batches() -> None:
    rows = [[(i, k) for k in range(5)] for i in range(8)]
    assert cross(rows, NONE, generator()) is rows
    changed = sum(cross(rows, replace(NONE, crossed=0.5), generator(seed)) != rows for seed in range(200))
    assert 70 < changed < 130
