"""Maps of embeddings and positions; attention laid on pictures and along recordings."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import UserError
from glassformer.look.readings.maps import embedding_map, likeness, position_vectors, principal_axes
from glassformer.look.readings.senses import along_frames, frame_spans, on_patches, over_picture, patch_pixels
from glassformer.model import build
from glassformer.model.positions import sinusoids
from glassformer.model.settings import EncoderOnlySettings, FramesSettings, PatchesSettings, RegressionHeadSettings
from tests.builders import close, decoder_only, encoder_only, stack


def test_principal_axes_are_numpy_s() -> None:
    points = torch.randn(30, 6) * torch.tensor([5.0, 3, 1, 0.5, 0.2, 0.1])
    plane = principal_axes(points, axes=3)
    values, vectors = np.linalg.eigh(np.cov(points.double().numpy().T))
    wanted = (points.double() - points.double().mean(0)).numpy() @ vectors[:, ::-1][:, :3]
    np.testing.assert_allclose(np.abs(plane.places.numpy()), np.abs(wanted), atol=1e-8)
    np.testing.assert_allclose(plane.shares.numpy(), values[::-1][:3] / values.sum(), atol=1e-10)
    close(principal_axes(points[torch.arange(30)], axes=3).places, plane.places)
    assert principal_axes(torch.ones(1, 1)).places.tolist() == [[0.0, 0.0]]
    with pytest.raises(UserError, match="nothing to map"):
        principal_axes(torch.empty(0, 3))


def test_embeddings_and_positions_are_the_model_s() -> None:
    model = decoder_only("sinusoidal")
    assert embedding_map(model.source.embedding, [3, 5, 7]).places.shape == (3, 2)
    waves = position_vectors(model.source, 600)
    close(waves.double(), sinusoids(torch.arange(600), 16))
    alike = likeness(waves)
    close(alike.diagonal(), torch.ones(600).double())
    close(alike[10, 13], alike[400, 403])  # waves are alike by distance only
    learned = decoder_only("learned")
    assert torch.equal(position_vectors(learned.source, 100), learned.source.positions.table)
    assert position_vectors(
        encoder_only("patches", head=RegressionHeadSettings(), tie_output=False).source, 3
    ).shape == (3, 16)
    with pytest.raises(UserError, match="adds no positions"):
        position_vectors(decoder_only("rotary").source, 3)


def test_attention_lies_on_the_patches_it_belongs_to() -> None:
    settings = PatchesSettings(height=8, width=12, n_channels=2, patch=4)
    weights = torch.arange(7.0).expand(4, 7)
    view = on_patches(weights, settings)
    assert view.grid[0].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert view.class_token is not None
    assert view.class_token.tolist() == [0, 0, 0, 0]
    large = over_picture(view.grid[0], settings)
    assert large.shape == (8, 12)
    assert large[5, 9] == 6
    picture = torch.randn(2, 8, 12)
    patches = patch_pixels(picture, settings)
    assert patches.shape == (6, 2, 4, 4)
    assert torch.equal(patches[5], picture[:, 4:, 8:])
    bare = PatchesSettings(height=8, width=8, patch=4, class_token=False)
    assert on_patches(torch.ones(4), bare).class_token is None


@given(st.lists(st.integers(1, 3), max_size=3), st.integers(1, 40), st.integers(0, 20))
def test_a_position_is_made_from_the_frames_of_its_span_and_from_no_other(
    strides: list[int], n: int, seed: int
) -> None:
    settings = FramesSettings(n_features=3, strides=tuple(strides), dropout=0.0)
    torch.manual_seed(seed)
    whole = EncoderOnlySettings(source=settings, encoder=stack(), head=RegressionHeadSettings(), tie_output=False)
    front_end = build(whole).eval().source
    frames = torch.randn(1, n, 3, requires_grad=True)
    x, _ = front_end(frames)
    spans = frame_spans(settings, n)
    assert len(spans) == x.shape[1]
    i = seed % len(spans)
    (gradient,) = torch.autograd.grad(x[0, i].square().sum(), frames)
    touched = gradient[0].abs().sum(-1).nonzero().flatten()
    assert (int(touched.min()), int(touched.max()) + 1) == spans[i]
    weights = torch.softmax(torch.randn(2, len(spans)), dim=-1)
    curve = along_frames(weights, settings, n)
    assert curve.shape == (2, n)
    close(curve.sum(-1), torch.ones(2))
