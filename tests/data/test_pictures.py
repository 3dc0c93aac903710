"""Pictures come from folders, tables, IDX and arrays; what is broken or huge is named and the others go on."""

import io
import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from glassformer.data.idx import labels_beside, read_idx
from glassformer.data.labelled_layout import Columns
from glassformer.data.picture_file import Frame, read_header, read_picture
from glassformer.data.picture_find import find_pictures, holds_pictures
from glassformer.data.pictures import are_grey, as_bytes, find_span, read_pictures, survey
from glassformer.errors import UserError
from tests.data.drawings import shapes, write_folders, write_idx

GREY, COLOUR = Frame(12, 12, 1), Frame(12, 12, 3)


def saved(path: Path, image: Image.Image, **options: object) -> Path:
    image.save(path, **options)  # type: ignore[arg-type]
    return path


def read(path: Path, frame: Frame = GREY) -> np.ndarray:
    found = read_picture(path, frame)
    assert not isinstance(found, str), found
    return found


# Where they are


def test_a_folder_for_each_class(tmp_path: Path) -> None:
    write_folders(tmp_path, 6, 0)
    (tmp_path / "lies" / "deep").mkdir()
    (tmp_path / "lies" / "0000.png").rename(tmp_path / "lies" / "deep" / "a.png")
    (tmp_path / "lies" / "notes.txt").write_text("hello")
    (tmp_path / "lies" / ".hidden.png").write_bytes(b"")
    assert holds_pictures(tmp_path, Columns())
    found = read_pictures(find_pictures([tmp_path]), GREY)
    assert found.labels == ["lies"] * 3 + ["stands"] * 3
    assert found.bad == [f"{tmp_path / 'lies' / 'notes.txt'} is no picture by its name"]
    pixels = dict(zip(found.places, found.pixels, strict=True))
    np.testing.assert_array_equal(pixels[str(tmp_path / "lies" / "deep" / "a.png")][:, :, 0], shapes(6, 0)[0][0])


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("a.tsv", ["p/0.png\tlies", "p/1.png\tstands", "p/2.png\tlies", "p/3.png\tstands"]),
        ("a.csv", ["label,picture", "lies,p/0.png", "stands,p/1.png", "lies,p/2.png", "stands,p/3.png"]),
        (
            "a.jsonl",
            [json.dumps({"id": i, "file": f"p/{i}.png", "label": ["lies", "stands"][i % 2]}) for i in range(4)],
        ),
    ],
)
def test_a_table_of_paths(tmp_path: Path, name: str, lines: list[str]) -> None:
    pixels, labels = shapes(4, 0)
    (tmp_path / "p").mkdir()
    for i, one in enumerate(pixels[:3]):
        Image.fromarray(one).save(tmp_path / "p" / f"{i}.png")
    table = tmp_path / name
    table.write_text("\n".join(lines) + "\n")
    assert holds_pictures(table, Columns())
    found = read_pictures(find_pictures([table]), GREY)
    np.testing.assert_array_equal(found.pixels[..., 0], pixels[:3])
    assert found.labels == labels[:3]
    last = len(lines)
    assert found.bad == [f"{table} line {last}: p/3.png is not there"]


def test_tables_of_texts_are_no_pictures(tmp_path: Path) -> None:
    table = tmp_path / "a.tsv"
    table.write_text("I like a.png\tgood\nnot this one\tbad\nnor this\tbad\n" * 3)
    assert not holds_pictures(table, Columns())


@pytest.mark.parametrize("packed", ["", ".gz"])
def test_idx(tmp_path: Path, packed: str) -> None:
    pixels, _ = shapes(6, 0)
    images = write_idx(tmp_path / f"train-images-idx3-ubyte{packed}", pixels)
    write_idx(tmp_path / f"train-labels-idx1-ubyte{packed}", np.arange(6, dtype=np.uint8))
    np.testing.assert_array_equal(read_idx(images), pixels)
    assert labels_beside(images).name == f"train-labels-idx1-ubyte{packed}"
    found = read_pictures(find_pictures([images]), GREY)
    assert found.labels == list("012345")
    assert found.places[2] == f"{images} picture 3"
    with pytest.raises(UserError, match="holds IDX files"):
        find_pictures([tmp_path])


def test_broken_idx(tmp_path: Path) -> None:
    whole = write_idx(tmp_path / "a-images-idx3-ubyte", shapes(6, 0)[0]).read_bytes()
    short = tmp_path / "b-images-idx3-ubyte"
    short.write_bytes(whole[:-1])
    with pytest.raises(UserError, match=r"is to hold 864 bytes of numbers, but holds fewer"):
        read_idx(short)
    short.write_bytes(whole + b"x")
    with pytest.raises(UserError, match="but holds more"):
        read_idx(short)
    short.write_bytes(bytes([0, 0, 8, 3]) + b"\xff" * 12)
    with pytest.raises(UserError, match="which is too much"):
        read_idx(short)
    with pytest.raises(UserError, match="there is no file a-labels-idx1-ubyte beside it"):
        find_pictures([tmp_path / "a-images-idx3-ubyte"])
    write_idx(tmp_path / "a-labels-idx1-ubyte", np.zeros(5, dtype=np.uint8))
    with pytest.raises(UserError, match=r"has 6 pictures, but .* has labels of shape \(5,\)"):
        find_pictures([tmp_path / "a-images-idx3-ubyte"])


def test_arrays(tmp_path: Path) -> None:
    pixels, labels = shapes(6, 0)
    bytes_, shares, first = tmp_path / "bytes.npz", tmp_path / "shares.npz", tmp_path / "first.npz"
    np.savez(bytes_, x=pixels, y=np.array(labels))
    np.savez(shares, x=pixels[..., None] / 255, y=np.array(labels))
    np.savez(first, images=pixels[:, None], y=np.array(labels))
    for path in (bytes_, shares, first):
        assert holds_pictures(path, Columns())
        files = find_pictures([path])
        found = read_pictures(files, GREY, survey(files).span)
        np.testing.assert_array_equal(found.pixels[..., 0], pixels)
        assert found.labels == labels
    series = tmp_path / "series.npz"
    np.savez(series, x=pixels / 255, y=np.array(labels))
    assert not holds_pictures(series, Columns())
    assert holds_pictures(series, Columns(), arrays=True)
    np.savez(series, x=np.zeros((4, 5, 5, 2)))
    with pytest.raises(UserError, match=r"the pictures have shape \(4, 5, 5, 2\)"):
        find_pictures([series])
    np.savez(series, x=np.full((4, 5, 5, 1), np.nan))
    with pytest.raises(UserError, match="a value that is not a number"):
        find_pictures([series])


def test_what_is_black_and_what_is_white() -> None:
    def span(*values: float, kind: type = np.float32) -> tuple[float, float]:
        return find_span([np.array(values, dtype=kind)])

    assert span(0, 3, kind=np.uint8) == span(0, 255) == span(0, 16, kind=np.int64) == (0, 255)
    assert span(0, 0.3) == span(0, 1, kind=np.bool_) == (0, 1)
    assert span(0, 16) == (0, 16)
    assert span(-1, 1) == (-1, 1)
    np.testing.assert_array_equal(as_bytes(np.array([0, 8, 16, 99.0]), (0, 16)), [0, 128, 255, 255])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: folder / "nowhere", "There is no file or folder"),
        (lambda folder: folder, "has no folders with pictures in them"),
        (lambda folder: saved(folder / "a.png", Image.new("L", (3, 3))), "is one picture, of which nobody says"),
        (lambda folder: (folder / "train").mkdir() or (folder / "test").mkdir() or folder, "but the parts test, train"),
    ],
)
def test_nothing_there(tmp_path: Path, make: object, said: str) -> None:
    with pytest.raises(UserError, match=said):
        find_pictures([make(tmp_path)])  # type: ignore[operator]


# What they look like


def test_modes(tmp_path: Path) -> None:
    grey = np.linspace(0, 255, 144).round().astype(np.uint8).reshape(12, 12)
    image = Image.fromarray(grey)
    np.testing.assert_array_equal(read(saved(tmp_path / "l.png", image))[..., 0], grey)
    np.testing.assert_array_equal(read(saved(tmp_path / "rgb.png", image.convert("RGB")))[..., 0], grey)
    np.testing.assert_array_equal(read(saved(tmp_path / "p.png", image.convert("P")))[..., 0], grey)
    sixteen = Image.fromarray(grey.astype(np.uint16) * 257)
    np.testing.assert_array_equal(read(saved(tmp_path / "16.png", sixteen))[..., 0], grey)
    np.testing.assert_array_equal(
        read(saved(tmp_path / "f.tiff", Image.fromarray(grey / np.float32(255))))[..., 0], grey
    )
    black = read(saved(tmp_path / "1.png", image.convert("1")))
    assert set(np.unique(black)) == {0, 255}
    cmyk = read(saved(tmp_path / "c.jpg", image.convert("RGB").convert("CMYK"), quality=100), COLOUR)
    assert np.abs(cmyk[..., 0].astype(int) - grey).max() < 12
    clear = Image.merge("RGBA", [image, image, image, Image.new("L", (12, 12), 0)])
    assert read(saved(tmp_path / "clear.png", clear)).min() == 255  # the page shows through
    assert are_grey(read(tmp_path / "rgb.png", COLOUR)[None])
    red = saved(tmp_path / "red.png", Image.new("RGB", (12, 12), (200, 0, 0)))
    assert not are_grey(read(red, COLOUR)[None])


def test_cameras_that_were_turned(tmp_path: Path) -> None:
    grey = np.arange(96, dtype=np.uint8).reshape(8, 12)
    exif = Image.Exif()
    exif[0x0112] = 6  # to be seen turned to the right by a quarter
    path = saved(tmp_path / "turned.png", Image.fromarray(grey), exif=exif)
    header = read_header(path)
    assert not isinstance(header, str)
    assert (header.height, header.width) == (12, 8)
    np.testing.assert_array_equal(read(path, Frame(12, 8, 1))[..., 0], np.rot90(grey, -1))


def test_other_shapes(tmp_path: Path) -> None:
    wide = np.zeros((12, 36), dtype=np.uint8)
    wide[:, :12], wide[:, 24:] = 90, 200
    path = saved(tmp_path / "wide.png", Image.fromarray(wide))
    assert np.unique(read(path)).tolist() == [0]  # the middle
    stretched = read(path, Frame(12, 12, 1, "stretch"))[6, :, 0]
    assert (stretched[0], stretched[-1]) == (90, 200)
    padded = read(path, Frame(12, 12, 1, "pad"))[:, 1, 0]
    assert (padded[0], padded[6]) == (255, 90)


def bomb(path: Path, side: int) -> Path:
    """A PNG whose header promises side × side pixels, in a few bytes."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    content = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + content)
    return path


def test_what_cannot_be_read_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    write_folders(tmp_path, 4, 0)
    good = (tmp_path / "lies" / "0000.png").read_bytes()
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (80, 80), dtype=np.uint8)).save(buffer, "JPEG")
    hostile = {
        "empty.png": b"",
        "short.png": good[: len(good) // 2],
        "short.jpg": buffer.getvalue()[:1500],
        "text.png": b"<html>not found</html>",
        "header.png": good[:20] + bytes([good[20] ^ 0xFF]) + good[21:],
    }
    for name, content in hostile.items():
        (tmp_path / "stands" / name).write_bytes(content)
    bomb(tmp_path / "stands" / "bomb.png", 9000)
    bomb(tmp_path / "stands" / "greater.png", 60_000)
    (tmp_path / "stands" / "folder.png").mkdir()
    files = find_pictures([tmp_path])
    found = read_pictures(files, GREY)
    assert len(found.places) == 4
    said = {reason.split(" ")[0].rpartition("/")[2]: reason.partition(" ")[2] for reason in found.bad}
    assert said["empty.png"] == "is empty"
    assert said["short.jpg"] == "is cut short"
    assert said["text.png"] == "is no picture that can be read"
    assert said["bomb.png"] == "has 81,000,000 pixels or more; 64,000,000 are read at most"
    assert "pixels or more" in said["greater.png"]
    assert len(found.bad) == 7
    assert survey(files).size == (12, 12)
    assert f"Skipped 7: the first, {tmp_path}" in str(found)
    only = find_pictures([tmp_path / "stands" / "text.png"], labelled=False)
    with pytest.raises(UserError, match=r"No picture can be read: .*text.png is no picture that can be read"):
        read_pictures(only, GREY)


def test_the_commonest_size(tmp_path: Path) -> None:
    write_folders(tmp_path, 6, 0)
    saved(tmp_path / "lies" / "large.png", Image.new("RGB", (40, 30)))
    found = survey(find_pictures([tmp_path]))
    assert (found.size, found.n_other, found.is_coloured) == ((12, 12), 1, True)
