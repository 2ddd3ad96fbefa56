"""Small pictures on disk for the tests."""

import io

import numpy as np
from PIL import Image


def picture(seed=0, size=(24, 18)):
    random = np.random.default_rng(seed)
    coarse = random.integers(0, 256, (4, 4, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize(size, Image.Resampling.BILINEAR)


def encoded(image, kind="JPEG", **options):
    data = io.BytesIO()
    image.save(data, kind, **options)
    return data.getvalue()


def write_pictures(folder, count, first=0):
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(first, first + count):
        (folder / f"{number:05d}.jpg").write_bytes(encoded(picture(number)))
    return folder
