"""What was away is asked again; what was damaged is found, named, and made again alone."""

import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.attacks.outcomes import is_clear, refused
from tests.features.stores import assert_same_store, contents
from tests.features.tiny_encoder import TinyEncoder
from tests.images.pictures import encoded, picture, write_pictures
from transduce.errors import InvalidStore
from transduce.features.embedding import Resources, embed
from transduce.features.importing import open_features
from transduce.features.store import FeatureStore
from transduce.features.verification import verify_store

IMAGES = 24


def embedded(photos, out, encoder=None):
    options = {"batch_size": 4, "shard_size": 8, "resources": Resources(workers=1)}
    return embed(photos, encoder or TinyEncoder(), out=out, **options)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = write_pictures(tmp_path_factory.mktemp("photos") / "photos", IMAGES)
    (folder / "00003.jpg").write_bytes(b"never an image")
    return folder


@pytest.fixture(scope="module")
def whole(photos, tmp_path_factory):
    out = tmp_path_factory.mktemp("store") / "whole"
    embedded(photos, out)
    return out


@pytest.fixture
def copy(whole, tmp_path):
    return Path(shutil.copytree(whole, tmp_path / "store"))


class SourceGoesAway(TinyEncoder):
    """An encoder during whose first batch the source is renamed, as an unmounted disk would be."""

    def embed_images(self, pixels):
        photos = Path(self.name)
        if photos.exists():
            photos.rename(photos.with_name("away"))
        return TinyEncoder.embed_images(self, pixels)

    @property
    def identity(self):
        return TinyEncoder().identity


def test_a_source_that_was_away_is_asked_again(photos, whole, tmp_path):
    here = Path(shutil.copytree(photos, tmp_path / "photos"))
    first = embedded(here, tmp_path / "store", SourceGoesAway(name=str(here)))
    missing = [skip for skip in first.skipped() if skip.reason == "missing"]
    assert missing
    (tmp_path / "away").rename(here)
    again = TinyEncoder()
    second = embedded(here, tmp_path / "store", again)
    assert len(second) == IMAGES - 1
    assert [skip.reason for skip in second.skipped()] == ["not an image"]
    np.testing.assert_array_equal(np.asarray(second), np.asarray(FeatureStore.open(whole)))
    settled = TinyEncoder()
    embedded(here, tmp_path / "store", settled)
    assert settled.calls == []  # what was read and is broken is settled


def test_a_link_that_leads_somewhere_again_is_no_change_of_the_source(photos, tmp_path):
    here = Path(shutil.copytree(photos, tmp_path / "photos"))
    (here / "late.jpg").symlink_to(tmp_path / "late.jpg")
    first = embedded(here, tmp_path / "store")
    assert ("late.jpg", "missing") in [(s.file_name, s.reason) for s in first.skipped()]
    (tmp_path / "late.jpg").write_bytes(encoded(picture(99)))
    second = embedded(here, tmp_path / "store")
    assert "late.jpg" in second.keys()  # noqa: SIM118


@pytest.mark.parametrize(
    "name", ["img_emb/img_emb_0001.npy", "metadata/metadata_0001.parquet", "shards/0001.json"]
)
@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "remove"])
def test_a_damaged_shard_is_named_and_made_again_alone(name, damage, copy, photos, whole):
    hurt(copy / name, damage, random.Random(1))
    problems = verify_store(copy).problems
    assert len(problems) == 1
    assert name in problems[0]
    if not name.startswith("shards"):
        with pytest.raises(InvalidStore, match=r"0001.*transduce embed .* --out"):
            read_all(copy)
    encoder = TinyEncoder()
    embedded(photos, copy, encoder)
    assert sum(encoder.calls) == 8
    assert_same_store(copy, whole)


@pytest.mark.parametrize("name", ["manifest.parquet", "skipped.csv", "duplicates.csv", "meta.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_verify_sees_every_file(name, damage, copy):
    hurt(copy / name, damage, random.Random(2))
    if (name, damage) == ("meta.json", "remove"):
        with pytest.raises(InvalidStore):
            verify_store(copy)
        return
    problems = verify_store(copy).problems
    assert any(name in problem for problem in problems), problems


def test_damages_are_refused_in_words(copy, whole, photos):
    """Of every file, in many ways: read, verified, described and embedded again."""
    chance, names = random.Random(3), list(contents(whole))
    for number in range(60):
        shutil.rmtree(copy)
        shutil.copytree(whole, copy)
        name = names[number % len(names)]
        hurt(copy / name, chance.choice(["flip", "cut", "empty", "remove"]), chance)
        for use in (read_all, verify_store):
            assert is_clear(refused(use, copy))
        if number % 6 == 0:
            assert is_clear(refused(embedded, photos, copy))


def read_all(folder):
    store = open_features(folder)
    return store.embeddings(), store.metadata(), store.skipped()


def hurt(path, damage, chance):
    data = bytearray(path.read_bytes())
    if damage == "remove":
        path.unlink()
        return
    if damage == "flip":
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes({"flip": data, "cut": data[: len(data) // 2], "empty": b""}[damage])
