"""Templates, their ensemble, and class embeddings kept on disk."""

import hashlib

import numpy as np
import pytest

from transduce.encoders.class_names import ClassNames
from transduce.encoders.encoder import Identity, Preprocessing
from transduce.encoders.prompts import (
    embed_classes,
    read_cached,
    sentences,
    text_cache_folder,
    write_cached,
)
from transduce.errors import InvalidEncoder, InvalidTemplate

CLASSES = ClassNames.of(["cat", "dog", "fox"])


class Scribe:
    """An encoder that remembers what it was asked; its embeddings are hashes of sentences."""

    preprocessing = Preprocessing()

    def __init__(self, weights="sha256:1"):
        self.identity = Identity("scribe", weights, self.preprocessing.describe(), 8)
        self.asked = []

    def embed_images(self, pixels):
        raise AssertionError("no pictures in these tests")

    def embed_texts(self, sentences):
        self.asked += sentences
        rows = [np.frombuffer(hashlib.sha256(s.encode()).digest(), np.uint8) for s in sentences]
        return np.array(rows)[:, :8].astype(np.float32)  # of any length, on purpose


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def test_only_the_blank_is_replaced():
    assert sentences(["cat", "{0}"], "a {{}} of {x} {}") == [
        "a {cat} of {x} cat",
        "a {{0}} of {x} {0}",
    ]


@pytest.mark.parametrize("templates", [["a photo"], ["a {} here", "a {name}"], [], "a {}"])
def test_templates_without_a_blank_are_refused(tmp_path, templates):
    scribe = Scribe()
    with pytest.raises(InvalidTemplate):
        embed_classes(scribe, CLASSES, templates, cache=tmp_path)
    assert scribe.asked == []


def test_one_template_gives_unit_rows(tmp_path):
    found = embed_classes(Scribe(), CLASSES, ["a {}."], cache=tmp_path)
    expected = unit(Scribe().embed_texts(["a cat.", "a dog.", "a fox."]))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found.dtype == np.float32


def test_the_ensemble_is_the_direction_of_the_mean_of_directions(tmp_path):
    found = embed_classes(Scribe(), CLASSES, ["a {}.", "one {}"], cache=tmp_path)
    first = unit(Scribe().embed_texts(["a cat.", "a dog.", "a fox."]))
    second = unit(Scribe().embed_texts(["one cat", "one dog", "one fox"]))
    np.testing.assert_allclose(found, unit((first + second) / 2), rtol=1e-6)


def test_encoded_once_for_encoder_classes_and_templates(tmp_path):
    scribe = Scribe()
    first = embed_classes(scribe, CLASSES, ["a {}."], cache=tmp_path)
    again = embed_classes(scribe, CLASSES, ["a {}."], cache=tmp_path)
    np.testing.assert_array_equal(first, again)
    assert len(scribe.asked) == 3
    embed_classes(scribe, CLASSES, ["one {}."], cache=tmp_path)
    assert len(scribe.asked) == 6
    embed_classes(scribe, ClassNames.of(["dog", "cat", "fox"]), ["a {}."], cache=tmp_path)
    assert len(scribe.asked) == 9
    other = Scribe(weights="sha256:2")
    embed_classes(other, CLASSES, ["a {}."], cache=tmp_path)
    assert len(other.asked) == 3


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-5],
        lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
        lambda data: b"not an array",
    ],
)
def test_a_damaged_cache_is_ignored_and_written_anew(tmp_path, damage):
    scribe = Scribe()
    expected = embed_classes(scribe, CLASSES, cache=tmp_path)
    (path,) = (tmp_path / "texts").iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    np.testing.assert_array_equal(embed_classes(scribe, CLASSES, cache=tmp_path), expected)
    assert len(scribe.asked) == 6
    assert path.read_bytes() == whole
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_whole_file_of_another_shape_is_ignored(tmp_path):
    write_cached("key", np.ones((2, 8), np.float32), tmp_path)
    assert read_cached("key", (2, 8), tmp_path) is not None
    assert read_cached("key", (3, 8), tmp_path) is None


def test_a_cache_that_cannot_be_written_costs_only_time(tmp_path):
    (tmp_path / "file").write_text("a file, not a folder")
    scribe = Scribe()
    for _ in range(2):
        embed_classes(scribe, CLASSES, cache=tmp_path / "file")
    assert len(scribe.asked) == 6


def test_the_folder_follows_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSDUCE_CACHE", str(tmp_path / "mine"))
    embed_classes(Scribe(), CLASSES)
    assert len(list((tmp_path / "mine" / "texts").iterdir())) == 1
    monkeypatch.delenv("TRANSDUCE_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert text_cache_folder() == tmp_path / "xdg" / "transduce"


@pytest.mark.parametrize("number", [0.0, np.nan])
def test_a_text_tower_without_a_direction_is_refused_and_not_kept(tmp_path, number):
    scribe = Scribe()
    scribe.embed_texts = lambda sentences: np.full((len(sentences), 8), number, np.float32)
    with pytest.raises(InvalidEncoder, match=r"in 'a cat\.'"):
        embed_classes(scribe, CLASSES, ["a {}."], cache=tmp_path)
    assert not (tmp_path / "texts").exists()


def test_names_of_one_class_are_averaged_as_templates_are(tmp_path):
    scribe = Scribe()
    classes = ClassNames.of(["dog", "cat"], ["dog | puppy", "cat"])
    templates = ["a {}.", "the {}."]
    found = embed_classes(scribe, classes, templates, cache=tmp_path)
    each = {
        name: unit(scribe.embed_texts([template.replace("{}", name) for template in templates]))
        for name in ("dog", "puppy", "cat")
    }
    dog = unit(np.concatenate([each["dog"], each["puppy"]]).mean(0))
    np.testing.assert_allclose(found, [dog, unit(each["cat"].mean(0))], atol=1e-6)
