"""Read the bytes of an image and decode them into the array an encoder takes, or say why not.

The bytes come from a file, an archive, a row of a table, or a URL.

Every mode becomes RGB the way Pillow's `convert` does it, as open_clip's transform would: alpha is
dropped, not blended; of an animation the first frame counts. What was changed is recorded.
"""

import contextlib
import hashlib
import io
import warnings
from dataclasses import dataclass, field
from functools import cache
from typing import IO

import numpy as np
from jaxtyping import Float32
from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

from transduce.encoders.encoder import Preprocessing
from transduce.images.entries import Unreadable, is_table, is_url
from transduce.images.remote import open_remote
from transduce.images.tables import read_row

MOST_PIXELS = 178_956_970  # where Pillow itself calls an image a decompression bomb
MOST_BYTES = 1 << 30

ORIENTATION_TAG = 0x0112

# Pillow knows more, some of them programs: it hands PostScript to Ghostscript.
FORMATS = (
    "JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "AVIF", "HEIF", "JPEG2000", "MPO", "DIB", "ICO",
    "PCX", "PPM", "QOI", "SGI", "TGA",
)  # fmt: skip
HEIF_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")


def read_bytes(path: str, offset: int | None, size: int) -> bytes:
    """Return the bytes of a file, of an archive member at `offset`, or of a row of a table."""
    if size > MOST_BYTES:
        raise Unreadable("too large", f"{size:,} bytes; the limit is {MOST_BYTES:,}")
    try:
        if offset is not None and is_table(path):
            return read_row(path, offset)
        with _open(path) as file:
            if offset is None:
                data: bytes = file.read(MOST_BYTES + 1)
            else:
                file.seek(offset)
                data = file.read(size)
    except Unreadable:
        raise
    except FileNotFoundError:
        raise Unreadable("missing", "no such file") from None
    except PermissionError:
        raise Unreadable("no permission", "the file may not be read") from None
    except Exception as error:  # file systems behind URLs have errors of their own kinds
        raise Unreadable("cannot be read", f"{type(error).__name__}: {error}") from None
    if len(data) > MOST_BYTES:
        raise Unreadable("too large", f"more than {MOST_BYTES:,} bytes")
    if offset is not None and len(data) < size:
        raise Unreadable("truncated", "the archive ends inside this file")
    return data


def _open(path: str) -> IO[bytes]:
    if is_url(path):
        return open_remote(path)
    return open(path, "rb")  # noqa: PTH123 - called for each image; closed by the caller


@dataclass(frozen=True, slots=True)
class Decoding:
    """How to decode: the encoder's preprocessing, the largest image, exact or fast.

    Fast lets the JPEG decoder shrink by 2, 4 or 8 while it reads, to no less than twice the
    encoder's size: several times quicker on photographs, and slightly different pixels.
    `also` are the preprocessings of further encoders, for the same decoded image.
    """

    preprocessing: Preprocessing = field(default_factory=Preprocessing)
    most_pixels: int = MOST_PIXELS
    fast: bool = False
    also: tuple[Preprocessing, ...] = ()

    @property
    def preprocessings(self) -> tuple[Preprocessing, ...]:
        """The preprocessing of the first encoder, then those of the others."""
        return (self.preprocessing, *self.also)


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded image and what is known of its file."""

    pixels: Float32[np.ndarray, "3 size size"]
    width: int
    height: int
    sha256: str
    converted: str  # what was done to reach upright RGB; empty if nothing
    also: tuple[Float32[np.ndarray, "3 _size _size"], ...] = ()  # for further encoders


def decode(data: bytes, how: Decoding) -> Decoded:
    """Return the image in `data`, ready for the encoder; raises `Unreadable`."""
    if not data:
        raise Unreadable("empty", "the file has 0 bytes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # odd metadata is no reason to fail or to print
        image, size, changes = _read(data, how)
    try:
        pixels, *also = (prepare(image) for prepare in how.preprocessings)
    except (ValueError, MemoryError) as error:
        raise Unreadable("cannot be resized", str(error)) from None
    digest = hashlib.sha256(data).hexdigest()
    return Decoded(pixels, *size, digest, "; ".join(changes), tuple(also))


def shrunk(data: bytes, side: int) -> Image.Image:
    """Return the image in `data`, upright RGB, at most `side` wide and high."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        image, _, _ = _read(data, Decoding(Preprocessing(size=side), fast=True))
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    return image


def _read(data: bytes, how: Decoding) -> tuple[Image.Image, tuple[int, int], list[str]]:
    ImageFile.LOAD_TRUNCATED_IMAGES = False  # half an image must never pass for a whole one
    Image.MAX_IMAGE_PIXELS = None  # checked below, with our own limit and words
    try:
        with Image.open(io.BytesIO(data), formats=known_formats()) as image:
            size = image.size
            _check_size(*size, how)
            if image.format in ("JPEG", "MPO"):
                _check_jpeg_ends(data)
            if how.fast:
                image.draft("RGB", (2 * max(each.side for each in how.preprocessings),) * 2)
            image.load()
            changes = _frames(image)
            upright, turned = _upright(image)
            rgb, converted = _to_rgb(upright)
            return rgb, size, changes + turned + converted
    except UnidentifiedImageError:
        raise Unreadable(*_unidentified(data)) from None
    except Unreadable:
        raise
    except MemoryError:
        raise Unreadable("too large", "it does not fit into memory") from None
    except Exception as error:
        # Pillow's decoders raise nearly anything on damaged files (OSError, SyntaxError,
        # struct.error, EOFError ...); whichever it is, this file has no whole image.
        raise Unreadable(*_cause(error)) from None


@cache
def known_formats() -> tuple[str, ...]:
    """Return the formats that are decoded, by Pillow's names: no others, whatever a file says."""
    with contextlib.suppress(ImportError):
        import pillow_heif

        pillow_heif.register_heif_opener()
    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)


def _unidentified(data: bytes) -> tuple[str, str]:
    if data[4:8] == b"ftyp" and data[8:12] in HEIF_BRANDS and "HEIF" not in known_formats():
        return "needs an extra", 'HEIC: pip install "transduce[heif]"'
    return "not an image", "no known image format"


def _cause(error: Exception) -> tuple[str, str]:
    words = " ".join(str(error).split())
    if "truncated" in words or "Truncated" in words or isinstance(error, EOFError):
        return "truncated", words
    return "corrupt", f"{type(error).__name__}: {words}"


def _check_size(width: int, height: int, how: Decoding) -> None:
    if width * height > how.most_pixels:
        raise Unreadable(
            "too large", f"{width} x {height} pixels; the limit is {how.most_pixels:,}"
        )
    for side in (each.side for each in how.preprocessings if each.resize == "shortest"):
        longest = side * max(width, height) // max(1, min(width, height))
        if longest * side > how.most_pixels:
            raise Unreadable("too elongated", f"{width} x {height} pixels")


def _check_jpeg_ends(data: bytes) -> None:
    """Refuse a JPEG without its end marker: libjpeg would fill the missing part with gray."""
    position = 2
    while position + 4 <= len(data):
        if data[position] != 0xFF:
            return  # not the plain segments this check knows; the decoder will judge
        marker = data[position + 1]
        if marker == 0xDA:  # start of scan: inside it FF D9 is always the end of the image
            if data.find(b"\xff\xd9", position) < 0:
                raise Unreadable("truncated", "the JPEG has no end marker")
            return
        if marker == 0xFF or 0xD0 <= marker <= 0xD8 or marker == 0x01:
            position += 1 if marker == 0xFF else 2
            continue
        position += 2 + int.from_bytes(data[position + 2 : position + 4], "big")


def _frames(image: Image.Image) -> list[str]:
    try:
        count = int(getattr(image, "n_frames", 1))
        if count > 1:
            image.seek(0)
            image.load()
    except (OSError, EOFError, ValueError, SyntaxError):
        return ["first frame; the later ones are damaged"]
    return [f"first of {count} frames"] if count > 1 else []


def _upright(image: Image.Image) -> tuple[Image.Image, list[str]]:
    try:
        orientation = image.getexif().get(ORIENTATION_TAG, 1)
        if orientation in range(2, 9):
            return ImageOps.exif_transpose(image), [f"orientation {orientation} applied"]
    except Exception:  # damaged EXIF raises nearly anything; the pixels are whole
        return image, ["unreadable EXIF ignored"]
    return image, []


def _to_rgb(image: Image.Image) -> tuple[Image.Image, list[str]]:
    mode = image.mode
    if mode == "RGB":
        return image, []
    if mode == "F" or mode.startswith("I"):
        return _eight_bits(image).convert("RGB"), [f"{mode} to RGB"]
    try:
        return image.convert("RGB"), [f"{mode} to RGB"]
    except ValueError as error:
        raise Unreadable("unsupported mode", str(error)) from None


def _eight_bits(image: Image.Image) -> Image.Image:
    """Scale gray of 16 or 32 bits to 8: `convert` would clip all above 255 to white."""
    values = np.asarray(image, dtype=np.float64)
    if not np.isfinite(values).all():
        raise Unreadable("corrupt", "NaN or infinite pixels")
    if image.mode == "F":
        full = 1.0 if values.max() <= 1.0 else 255.0
    else:
        full = 65535.0 if image.mode != "I" or values.max() > 255 else 255.0
    scaled = np.clip(np.rint(values * (255.0 / full)), 0, 255)
    return Image.fromarray(scaled.astype(np.uint8))
