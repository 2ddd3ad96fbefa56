"""Features of datasets: embedded once, split by split; drawn; read from the reference folder."""

import os

import numpy as np
import pytest

from tests.benchmark.small_features import small_features
from transduce.benchmark.reference import read_reference
from transduce.benchmark.sources import DataFolders, load_features, split_by_class
from transduce.benchmark.suite_files import load_suite
from transduce.benchmark.synthetic import LOOKS, TEXTURES, UNSEEN, Thing, draw, name_of
from transduce.errors import InvalidFile, InvalidSetting, MissingData, UnknownName

needs_reference = pytest.mark.skipif(
    "TRANSDUCE_REFERENCE" not in os.environ, reason="TRANSDUCE_REFERENCE names no folder"
)


def draw_folder(root, splits, pictures=3, classes=3):
    """Class folders of drawn pictures, as a person would have them."""
    generator = np.random.default_rng(1)
    for split in splits:
        for pair in UNSEEN[:classes]:
            folder = root / split / name_of(pair)
            folder.mkdir(parents=True)
            for number in range(pictures):
                thing = Thing(pair[1], pair[0], TEXTURES[0])
                draw(thing, LOOKS["shifted"], generator).save(folder / f"{number}.png")
    return root


def test_a_folder_with_splits_is_embedded_once(tmp_path):
    folder = draw_folder(tmp_path / "things", ["train", "test"])
    places = DataFolders(features=tmp_path / "features")
    told = []
    name = f"folder:{folder}"
    features = load_features(name, "shapes", {"test"}, places, told.append)
    assert {key: len(split) for key, split in features.splits.items()} == {"train": 9, "test": 9}
    assert len(told) == 2
    again = load_features(name, "shapes", {"test"}, places, told.append)
    assert len(told) == 2
    np.testing.assert_array_equal(again.split("test").embeddings, features.split("test").embeddings)
    cosines = features.split("test").embeddings @ features.class_embeddings.T
    assert (cosines.argmax(1) == features.split("test").labels).mean() > 0.5


def test_a_folder_without_splits_is_split_by_class(tmp_path):
    whole = small_features(images=20, splits=["test"])
    split = split_by_class(whole)
    counts = {name: np.bincount(part.labels).tolist() for name, part in split.splits.items()}
    assert counts == {"all": [20] * 6, "train": [8] * 6, "val": [4] * 6, "test": [8] * 6}
    parts = [split.split(name).embeddings for name in ("train", "val", "test")]
    assert len(np.unique(np.concatenate(parts), axis=0)) == 120
    np.testing.assert_array_equal(parts[0], split_by_class(whole).split("train").embeddings)


def test_missing_things_are_told(tmp_path):
    with pytest.raises(InvalidSetting, match="--data"):
        load_features("dtd", "shapes", {"test"}, DataFolders())
    with pytest.raises(MissingData, match="transduce data prepare dtd"):
        load_features("dtd", "shapes", {"test"}, DataFolders(tmp_path))
    with pytest.raises(UnknownName, match="did you mean 'dtd'"):
        load_features("dtdd", "shapes", {"test"}, DataFolders(tmp_path))
    with pytest.raises(MissingData, match="class folders"):
        load_features(f"folder:{tmp_path / 'no'}", "shapes", {"test"}, DataFolders())
    with pytest.raises(InvalidSetting, match="drawn:2 to"):
        load_features("drawn:1000", "shapes", {"test"}, DataFolders())


def test_reference_features_must_be_there_and_whole(tmp_path, monkeypatch):
    monkeypatch.delenv("TRANSDUCE_REFERENCE", raising=False)
    with pytest.raises(InvalidSetting, match="TRANSDUCE_REFERENCE"):
        load_features("reference:whurs19", "RN50", {"all"}, DataFolders())
    (tmp_path / "data").mkdir()
    with pytest.raises(InvalidFile, match="no such file"):
        read_reference(tmp_path, "reference:whurs19", "RN50")
    path = tmp_path / "data" / "whurs19_RN50.npz"
    np.savez(path, labels=np.zeros(3, int))
    with pytest.raises(InvalidFile, match="classes"):
        read_reference(tmp_path, "reference:whurs19", "RN50")
    np.savez(path, classes=np.array([{}], dtype=object))
    with pytest.raises(InvalidFile, match="allow_pickle"):
        read_reference(tmp_path, "reference:whurs19", "RN50")


@needs_reference
def test_reference_splits_are_as_the_suite_tells():
    places = DataFolders()
    whu = load_features("reference:whurs19", "RN50", set(), places)
    counts = {name: np.bincount(split.labels) for name, split in whu.splits.items()}
    assert set(counts["train"]) == {20}
    assert set(counts["val"]) == {10}
    assert (counts["test"].min(), counts["test"].max()) == (20, 31)
    assert counts["all"].sum() == 1005
    caltech = load_features("reference:caltech101_62/16", "ViT-B-32", set(), places)
    assert caltech.n_classes == 17
    assert np.bincount(caltech.split("val").labels).min() >= 16


@needs_reference
@pytest.mark.parametrize(("encoder", "accuracy"), [("RN50", 71.5), ("ViT-B-32", 81.3)])
def test_plain_zero_shot_on_all_images_is_what_was_recorded(encoder, accuracy):
    features = load_features("reference:whurs19", encoder, set(), DataFolders())
    split = features.split("all")
    unit = split.embeddings / np.linalg.norm(split.embeddings, axis=1, keepdims=True)
    right = (unit @ features.class_embeddings.T).argmax(1) == split.labels
    assert 100 * right.mean() == pytest.approx(accuracy, abs=0.06)


@needs_reference
@pytest.mark.parametrize("name", ["regimes", "few-shot-regimes"])
def test_all_columns_of_the_regimes_are_read(name):
    for column in load_suite(name).columns:
        features = load_features(column.dataset, column.encoder, set(), DataFolders())
        splits = {split: len(features.split(split)) for split in features.splits}
        assert splits["test"] + splits["val"] + splits.get("train", 0) == splits["all"]


@needs_reference
def test_distractors_are_names_without_images():
    features = load_features(
        "reference:caltech101_62+distractors", "ViT-B-32", set(), DataFolders()
    )
    assert features.n_classes == 562
    assert features.split("all").labels.max() == 61
    cars = load_features("reference:cars98", "ViT-B-32", set(), DataFolders())
    assert min(len(rows) for rows in cars.rows_by_class("test")) >= 9
