"""Ten thousand small pictures, three in a hundred broken in every way we know."""

import random

from tests.features.tiny_encoder import TinyEncoder
from tests.images.pictures import encoded, picture
from tests.images.test_decoding import BROKEN
from transduce.features.embedding import embed

IMAGES = 10_000
WAYS = [way for way in BROKEN if way != "elongated"]  # slow to write, and tested by itself


def test_every_broken_file_is_listed_with_its_reason(tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    different = [encoded(picture(seed)) for seed in range(50)]
    broken = random.Random(0).sample(range(IMAGES), IMAGES * 3 // 100)
    expected = {}
    for number in range(IMAGES):
        # Bytes after the end of a JPEG make the files differ, not the pictures.
        data = different[number % 50] + number.to_bytes(4, "big")
        (photos / f"{number:05d}.jpg").write_bytes(data)
    for turn, number in enumerate(broken):
        data, reason = BROKEN[WAYS[turn % len(WAYS)]]
        name = f"{number:05d}.jpg"
        (photos / name).write_bytes(data)
        expected[name] = reason

    store = embed(photos, TinyEncoder(), out=tmp_path / "feats")
    assert {skip.file_name: skip.reason for skip in store.skipped()} == expected
    whole = [f"{number:05d}.jpg" for number in range(IMAGES)]
    assert store.keys() == [name for name in whole if name not in expected]
    assert len(store.embeddings()) == store.meta.rows == IMAGES - len(broken)
    assert store.meta.duplicates == 0
