"""Changes at random keep what a picture shows, come again with the same generator, and mix labels as pictures."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.data import picture_augment as changes
from glassformer.data.picture_augment import Augmentation, augment, bend, erase, mix, shift
from glassformer.data.picture_batch import PictureExamples, moments, normalised
from tests.data.drawings import shapes


def pictures(b: int = 6, h: int = 16, w: int = 24) -> torch.Tensor:
    return torch.randn(b, 3, h, w, generator=torch.Generator().manual_seed(0))


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@settings(max_examples=20, deadline=None)
@given(
    strength=st.sampled_from(["off", "light", "strong"]),
    flip=st.booleans(),
    size=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    seed=st.integers(0, 2**32),
)
def test_the_same_generator_gives_the_same_pictures(
    strength: str, flip: bool, size: tuple[int, int], seed: int
) -> None:
    x, how = pictures(3, *size), Augmentation(strength, flip)  # type: ignore[arg-type]
    one, again = augment(x, how, generator(seed)), augment(x, how, generator(seed))
    assert torch.equal(one, again)
    assert one.shape == x.shape
    assert bool(torch.isfinite(one).all())
    assert torch.equal(x, pictures(3, *size))  # the pictures themselves stay as they are


def test_nothing_asked_for_changes_nothing() -> None:
    x = pictures()
    assert torch.equal(augment(x, Augmentation("off"), generator()), x)


def test_half_of_them_are_mirrored() -> None:
    x = pictures(400, 3, 5)
    found = augment(x, Augmentation("off", flip=True), generator())
    same = (found == x).flatten(1).all(dim=1)
    mirrored = (found == x.flip(3)).flatten(1).all(dim=1)
    assert bool((same | mirrored).all())
    assert 150 < int(mirrored.sum()) < 250


def test_shift_is_a_crop_of_the_picture_with_its_edges_repeated() -> None:
    x = pictures(400, 16, 30)
    found = shift(x, 0.1, generator())
    wide = torch.nn.functional.pad(x, (3, 3, 2, 2), mode="replicate")
    seen = set()
    for one, around in zip(found, wide, strict=True):
        fits = [
            (dy, dx) for dy in range(5) for dx in range(7) if torch.equal(one, around[:, dy : dy + 16, dx : dx + 30])
        ]
        assert len(fits) == 1
        seen.add(fits[0])
    assert len(seen) == 35  # all places come


def test_bend_by_nothing_and_by_a_quarter_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    x, nothing = pictures(2, 9, 9), torch.zeros(2)
    torch.testing.assert_close(bend(x, nothing, nothing, nothing, nothing), x, rtol=0, atol=1e-5)
    monkeypatch.setattr(changes, "ANGLE", math.pi / 2)
    turned = bend(x, torch.ones(2), nothing, nothing, nothing)
    torch.testing.assert_close(turned, torch.rot90(x, 1, (2, 3)), rtol=0, atol=1e-5)


def test_erase_hides_one_rectangle_of_those_that_are_named() -> None:
    x = torch.ones(50, 1, 20, 20)
    which = torch.arange(50) % 2 == 0
    found = erase(x, which, generator())
    assert torch.equal(found[1::2], x[1::2])
    for one in found[::2, 0]:
        hidden = (one == 0).nonzero()
        height, width = (hidden.max(dim=0).values - hidden.min(dim=0).values + 1).tolist()
        assert len(hidden) == height * width
        assert 3 <= height <= 10
        assert 3 <= width <= 10


def test_mixed_targets_are_the_shares_of_the_pictures() -> None:
    """Each picture is its own number, so that the mixed picture tells the shares that its target must have."""
    x = torch.eye(8).view(8, 1, 1, 8)
    mixed, targets = mix(x, torch.eye(8), 0.5, generator())
    torch.testing.assert_close(mixed.view(8, 8), targets)
    torch.testing.assert_close(targets.sum(dim=1), torch.ones(8))
    assert bool((targets.diagonal() < 1).any())
    numbers = mix(x, torch.arange(8.0), 0.5, generator())[1]
    torch.testing.assert_close(numbers, targets @ torch.arange(8.0))


def examples(how: Augmentation) -> PictureExamples:
    pixels = shapes(20, 0)[0][..., None]
    targets = np.arange(20, dtype=np.int64) % 2
    return PictureExamples(pixels, *moments(pixels), 9, targets, [str(i) for i in range(20)], how, n_classes=2)


def test_means_and_deviations() -> None:
    x = examples(Augmentation("off")).load(np.arange(20)).source
    assert float(x.mean()) == pytest.approx(0, abs=1e-5)
    assert float(x.std(correction=0)) == pytest.approx(1, abs=1e-5)
    assert moments(np.zeros((2, 3, 3, 1), np.uint8)) == ((0.0,), (1.0,))
    colours = normalised(np.full((1, 2, 2, 3), 255, np.uint8), (0.0, 0.5, 1.0), (1.0, 0.5, 1.0))
    assert colours[0, :, 0, 0].tolist() == [1.0, 1.0, 0.0]


def test_batches_follow_torchs_state_which_a_run_saves() -> None:
    data, rows = examples(Augmentation("strong", True, 0.4)), np.arange(8)
    torch.manual_seed(7)
    first, second = data.train_batch(rows), data.train_batch(rows)
    assert not torch.equal(first.inputs.source, second.inputs.source)
    assert first.targets.shape == (8, 2)
    torch.manual_seed(7)
    again = data.train_batch(rows)
    assert torch.equal(first.inputs.source, again.inputs.source)
    assert torch.equal(first.targets, again.targets)
