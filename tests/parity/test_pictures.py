"""An imported ViT reads picture files as Hugging Face's does, and pictures of another size too."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import ViTForImageClassification, ViTImageProcessor

from glassformer.api import load_classifier
from glassformer.data.picture_file import Frame, read_picture
from glassformer.exchange.importing import import_model
from glassformer.model import EncoderOnly
from glassformer.model.picture_size import at_size
from tests.exchange.foreign_encoders import save_vit, vit_judge


@pytest.fixture
def vit(tmp_path: Path) -> ViTForImageClassification:
    theirs = vit_judge().eval()
    import_model(save_vit(theirs, tmp_path / "theirs", size={"height": 12, "width": 12}), tmp_path / "ours")
    return theirs


def photograph(path: Path, height: int, width: int) -> Path:
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (height, width, 3), dtype=np.uint8)).save(path)
    return path


@torch.no_grad()
def test_a_file_gets_the_same_answer(vit: ViTForImageClassification, tmp_path: Path) -> None:
    path = photograph(tmp_path / "a.png", 30, 50)
    with Image.open(path) as image:
        processor = ViTImageProcessor.from_pretrained(tmp_path / "theirs")
        logits = vit(**processor(image, return_tensors="pt")).logits
    ours = load_classifier(tmp_path / "ours").classify([path])[0]
    theirs = dict(zip(("cat", "dog"), logits.softmax(-1)[0].tolist(), strict=True))
    assert ours.probabilities == pytest.approx(theirs, abs=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("size", [(24, 24), (8, 20), (12, 16)])
def test_positions_interpolated(vit: ViTForImageClassification, tmp_path: Path, size: tuple[int, int]) -> None:
    model = load_classifier(tmp_path / "ours").model
    assert isinstance(model, EncoderOnly)
    x = torch.randn(2, 3, *size)
    wanted = vit(x, interpolate_pos_encoding=True).logits
    torch.testing.assert_close(at_size(model, *size)(x), wanted, rtol=0, atol=1e-5)


def test_the_same_size_is_the_same_model(vit: ViTForImageClassification, tmp_path: Path) -> None:
    model = load_classifier(tmp_path / "ours").model
    assert isinstance(model, EncoderOnly)
    assert at_size(model, 12, 12) is model


@pytest.mark.parametrize("quality", [30, 95])
def test_large_jpegs_are_read_in_a_short_way(tmp_path: Path, quality: int) -> None:
    """Nearly what the long way gives: a photograph is smooth, and shrunk in two steps."""
    columns, rows = np.meshgrid(np.linspace(0, 6, 900), np.linspace(0, 4, 700))
    grey = ((np.sin(columns) * np.cos(rows) + 1) * 127).astype(np.uint8)
    Image.fromarray(grey).save(tmp_path / "a.jpg", quality=quality)
    Image.fromarray(grey).save(tmp_path / "a.png")
    short, long = (read_picture(tmp_path / name, Frame(28, 28, 1)) for name in ("a.jpg", "a.png"))
    assert not isinstance(short, str)
    assert not isinstance(long, str)
    assert np.abs(short.astype(int) - long).max() <= 6
