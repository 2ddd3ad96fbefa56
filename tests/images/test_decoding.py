import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from tests.images.pictures import encoded, picture
from transduce.encoders.encoder import Preprocessing
from transduce.images.decoding import Decoding, decode
from transduce.images.entries import Unreadable

HOW = Decoding(Preprocessing(size=16))


def pixels_of(image):
    return HOW.preprocessing(image)


def test_plain_picture_is_the_preprocessing_of_its_pixels():
    data = encoded(picture(), "PNG")
    decoded = decode(data, HOW)
    np.testing.assert_array_equal(decoded.pixels, pixels_of(picture()))
    assert (decoded.width, decoded.height, decoded.converted) == (24, 18, "")


@pytest.mark.parametrize("mode", ["RGBA", "L", "LA", "P", "1", "CMYK"])
def test_every_mode_becomes_rgb_as_pillow_converts_it(mode):
    odd = picture().convert(mode)
    kind = "TIFF" if mode == "CMYK" else "PNG"
    decoded = decode(encoded(odd, kind), HOW)
    np.testing.assert_array_equal(decoded.pixels, pixels_of(odd.convert("RGB")))
    assert decoded.converted == f"{mode} to RGB"


def test_alpha_is_dropped_not_blended():
    see_through = picture().convert("RGBA")
    see_through.putalpha(0)
    decoded = decode(encoded(see_through, "PNG"), HOW)
    np.testing.assert_array_equal(decoded.pixels, pixels_of(picture()))


def test_palette_with_transparency():
    palette = picture().convert("P")
    data = encoded(palette, "PNG", transparency=bytes(range(256)))
    assert decode(data, HOW).converted == "P to RGB"


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bits_are_scaled_not_clipped(kind):
    gray = np.linspace(0, 255, 24 * 18).reshape(18, 24).round()
    deep = Image.fromarray((gray * 257).astype(np.uint16))
    decoded = decode(encoded(deep, kind), HOW)
    expected = Image.fromarray(gray.astype(np.uint8)).convert("RGB")
    np.testing.assert_array_equal(decoded.pixels, pixels_of(expected))
    assert decoded.converted.endswith("to RGB")


def test_floating_point_between_zero_and_one():
    gray = np.linspace(0, 1, 24 * 18, dtype=np.float32).reshape(18, 24)
    decoded = decode(encoded(Image.fromarray(gray), "TIFF"), HOW)
    expected = Image.fromarray(np.rint(gray * 255).astype(np.uint8)).convert("RGB")
    np.testing.assert_array_equal(decoded.pixels, pixels_of(expected))


def test_animation_gives_its_first_frame():
    frames = [picture(seed) for seed in range(3)]
    data = encoded(frames[0], "PNG", save_all=True, append_images=frames[1:])
    decoded = decode(data, HOW)
    np.testing.assert_array_equal(decoded.pixels, pixels_of(frames[0]))
    assert decoded.converted == "first of 3 frames"


@pytest.mark.parametrize(
    ("orientation", "turn"),
    [
        (3, Image.Transpose.ROTATE_180),
        (6, Image.Transpose.ROTATE_270),
        (8, Image.Transpose.ROTATE_90),
    ],
)
def test_exif_orientation_is_applied(orientation, turn):
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(picture(), "PNG", exif=exif)
    decoded = decode(data, HOW)
    np.testing.assert_array_equal(decoded.pixels, pixels_of(picture().transpose(turn)))
    assert decoded.converted == f"orientation {orientation} applied"


def test_fast_decode_is_close_and_only_for_large_jpegs():
    photograph = picture(size=(640, 480))
    data = encoded(photograph, "JPEG", quality=95)
    exact = decode(data, HOW)
    fast = decode(data, Decoding(HOW.preprocessing, fast=True))
    assert (fast.width, fast.height) == (640, 480)
    difference = np.abs(fast.pixels - exact.pixels).mean()
    assert 0 < difference < 0.05
    small = encoded(picture(), "JPEG")
    np.testing.assert_array_equal(
        decode(small, Decoding(HOW.preprocessing, fast=True)).pixels, decode(small, HOW).pixels
    )


def jpeg_without_end():
    """Zeros where the end of the picture was, as an interrupted download leaves them."""
    data = encoded(picture(size=(200, 150)), "JPEG")
    half = len(data) * 2 // 3
    return data[:half] + bytes(len(data) - half)


def huge_png():
    """A few bytes that claim to be 60,000 x 60,000 pixels."""
    size = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", size), (b"IDAT", zlib.compress(bytes(1000))), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )


def damaged_png():
    data = bytearray(encoded(picture(size=(200, 150)), "PNG"))
    middle = len(data) // 2
    data[middle : middle + 40] = bytes(255 - byte for byte in data[middle : middle + 40])
    return bytes(data)


BROKEN = {
    "empty": (b"", "empty"),
    "text": (b"I am a caption.\n", "not an image"),
    "html": (b"<html><body>404</body></html>", "not an image"),
    "jpeg cut": (encoded(picture(size=(200, 150)))[:-200], "truncated"),
    "jpeg cut after the header": (encoded(picture(size=(200, 150)))[:30], "truncated"),
    "jpeg with zeros at the end": (jpeg_without_end(), "truncated"),
    "png cut": (encoded(picture(size=(200, 150)), "PNG")[:-300], "truncated"),
    "png damaged": (damaged_png(), "corrupt"),
    "webp cut": (encoded(picture(size=(200, 150)), "WEBP")[:-200], "corrupt"),
    "gif cut": (encoded(picture(size=(200, 150)), "GIF")[:-4000], "truncated"),
    "huge": (huge_png(), "too large"),
    "elongated": (encoded(Image.new("L", (40_000_000, 1)), "PNG"), "too elongated"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_files_have_a_reason(kind):
    data, reason = BROKEN[kind]
    with pytest.raises(Unreadable) as caught:
        decode(data, HOW)
    assert caught.value.reason == reason
    assert "0x" not in caught.value.detail  # an address would make two runs differ


def test_trailing_data_is_no_damage():
    """Phones append a film after the picture."""
    data = encoded(picture(), "JPEG") + b"\xff\xda" + bytes(5000)
    assert decode(data, HOW).width == 24


def test_damaged_exif_is_ignored():
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encoded(picture(), "JPEG", exif=exif.tobytes()[:14])
    assert decode(data, HOW).pixels.shape == (3, 16, 16)


def test_pixel_limit_is_a_setting():
    data = encoded(picture(), "PNG")
    with pytest.raises(Unreadable, match="24 x 18 pixels; the limit is 100"):
        decode(data, Decoding(HOW.preprocessing, most_pixels=100))


def test_same_content_same_hash():
    data = encoded(picture(), "PNG")
    assert decode(data, HOW).sha256 == decode(io.BytesIO(data).read(), HOW).sha256
    assert decode(data, HOW).sha256 != decode(encoded(picture(1), "PNG"), HOW).sha256
