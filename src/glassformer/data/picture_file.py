"""One picture, from a file or an array, as the model's bytes: of one size, one or three channels, turned upright.

A file may be anything: broken, huge, of any mode. What cannot be used comes back as a reason that goes on from its
name: "cat.png is cut short". h height, w width, c channels
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

T = TypeVar("T")
Pixels = NDArray[np.uint8]  # (h, w, c)
Fit = Literal["crop", "stretch", "pad"]
Resample = Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]

# No format that needs another program to be read, such as EPS.
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
SUFFIXES = frozenset([".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm"])
MOST_PIXELS = 64_000_000  # of a picture: a small file can unpack to more than the memory holds
GREY = frozenset({"1", "L", "LA", "La", "I", "F", "I;16", "I;16B", "I;16L", "I;16N"})
PAGE = 255  # what shows through where a picture is transparent, and beside one that does not fill its frame


@dataclass(frozen=True)
class Frame:
    """What every picture is made into."""

    height: int
    width: int
    n_channels: int
    fit: Fit = "crop"
    resample: Resample = "bilinear"


@dataclass(frozen=True)
class Header:
    """What is known of a picture before it is unpacked, upright."""

    height: int
    width: int
    is_coloured: bool


def is_picture_name(name: str) -> bool:
    return Path(name).suffix.lower() in SUFFIXES


def read_header(path: Path) -> Header | str:
    """Size and colours, or why there are none."""

    def look(image: Image.Image) -> Header:
        turned = image.getexif().get(0x0112, 1) in (5, 6, 7, 8)
        width, height = image.size
        return Header(*((width, height) if turned else (height, width)), image.mode not in GREY)

    return _opened(path, look)


def read_picture(path: Path, frame: Frame) -> Pixels | str:
    """The whole picture in its frame, or why there is none."""

    def read(image: Image.Image) -> Pixels:
        longest = 2 * max(frame.height, frame.width)
        image.draft(None, (longest, longest))  # JPEG can leave out what would be shrunk away
        return framed(ImageOps.exif_transpose(image), frame)

    return _opened(path, read)


def array_picture(pixels: Pixels, frame: Frame) -> Pixels:
    """The same for bytes that are in memory (h, w, c)."""
    if pixels.shape == (frame.height, frame.width, frame.n_channels):
        return pixels
    return framed(Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels), frame)


def framed(image: Image.Image, frame: Frame) -> Pixels:
    """In the frame's size and channels."""
    flat = _flat(image).convert("L" if frame.n_channels == 1 else "RGB")
    size, how = (frame.width, frame.height), Image.Resampling[frame.resample.upper()]
    if flat.size != size:
        match frame.fit:
            case "crop":
                flat = ImageOps.fit(flat, size, how)
            case "pad":
                flat = ImageOps.pad(flat, size, how, color=PAGE if frame.n_channels == 1 else (PAGE, PAGE, PAGE))
            case "stretch":
                flat = flat.resize(size, how)
    return np.asarray(flat, dtype=np.uint8).reshape(frame.height, frame.width, frame.n_channels)


def _flat(image: Image.Image) -> Image.Image:
    """Eight bits a channel, and nothing transparent."""
    if image.mode.startswith("I") or image.mode == "F":
        return Image.fromarray(_eight_bits(np.asarray(image)))
    if image.mode in ("P", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
    if image.mode in ("RGBA", "LA", "La", "RGBa"):
        image = image.convert("RGBA")
        page = Image.new("RGBA", image.size, (PAGE, PAGE, PAGE, 255))
        return Image.alpha_composite(page, image)
    return image


def _eight_bits(values: NDArray[Any]) -> Pixels:
    """16 bits are 257 times as fine; floats go from 0 to 1, or are bytes already."""
    top = float(values.max(initial=0))
    if values.dtype.kind == "f":
        scaled = values * 255.0 if top <= 1 else values
    else:
        scaled = values / 257.0 if top > 255 or values.dtype == np.uint16 else values
    return np.clip(np.nan_to_num(scaled).round(), 0, 255).astype(np.uint8)


def _opened(path: Path, use: Callable[[Image.Image], T]) -> T | str:
    """What `use` makes of the picture, or why it cannot be used."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd metadata, and of sizes, which are checked here
            with Image.open(path, formats=FORMATS) as image:
                if image.width * image.height > MOST_PIXELS:
                    return _too_large(image.width * image.height)
                if 0 in image.size:
                    return "has no pixels"
                return use(image)
    except FileNotFoundError:
        return "is not there"
    except UnidentifiedImageError:
        return "is empty" if _is_empty(path) else "is no picture that can be read"
    except Image.DecompressionBombError:
        return _too_large(2 * (Image.MAX_IMAGE_PIXELS or MOST_PIXELS))
    except OSError as error:
        return f"is a folder or cannot be read ({error.strerror})" if error.strerror else _broken(error)
    except Exception as error:  # a decoder on a broken file can fail in any way
        return _broken(error)


def _broken(error: Exception) -> str:
    return "is cut short" if "truncated" in str(error) else f"is broken ({str(error)[:80] or type(error).__name__})"


def _too_large(n: int) -> str:
    return f"has {n:,} pixels or more; {MOST_PIXELS:,} are read at most"


def _is_empty(path: Path) -> bool:
    return path.is_file() and path.stat().st_size == 0
