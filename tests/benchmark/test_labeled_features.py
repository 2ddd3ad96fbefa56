import numpy as np
import pytest

from tests.benchmark.datasets.miniatures import CARD, draw_coop
from tests.features.tiny_encoder import TinyEncoder
from transduce.benchmark.datasets.card import parse_card
from transduce.benchmark.datasets.dataset import load_card
from transduce.benchmark.labeled_features import LabeledFeatures, Split
from transduce.errors import InvalidStore, InvalidTask
from transduce.features.embedding import Resources, embed

ROWS = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


def labeled(split, classes=("a", "b", "c"), texts=ROWS[:3]):
    return LabeledFeatures("mine", "any", classes, texts, {"test": split})


def test_rows_are_found_by_class_also_where_there_are_none():
    data = labeled(Split.of(ROWS, [1, 0, 1, 1, 0, 1], 3))
    assert [rows.tolist() for rows in data.rows_by_class("test")] == [[1, 4], [0, 2, 3, 5], []]


def test_float32_rows_are_not_copied():
    assert Split.of(ROWS, [0] * 6, 3).embeddings is ROWS


def test_what_does_not_fit_is_refused():
    with pytest.raises(InvalidTask, match="same length, found 6 and 5"):
        Split.of(ROWS, [0] * 5, 3)
    with pytest.raises(InvalidTask, match="classes 0 to 2, found 3"):
        Split.of(ROWS, [0, 1, 2, 3, 0, 0], 3)
    with pytest.raises(InvalidTask, match="NaN or infinity in row 2"):
        Split.of(np.where(np.arange(6)[:, None] == 2, np.nan, ROWS), [0] * 6, 3)
    split = Split.of(ROWS, [0] * 6, 3)
    with pytest.raises(InvalidTask, match="one row for 2 classes of mine, found 3"):
        labeled(split, classes=("a", "b"))
    with pytest.raises(InvalidTask, match=r"the test split of mine.*found 4 and 2"):
        labeled(split, texts=ROWS[:3, :2])


def test_a_store_and_a_dataset_make_labeled_features(tmp_path):
    draw_coop(tmp_path)
    dataset = load_card(parse_card("tiny", CARD), tmp_path)
    store = embed(dataset.root, TinyEncoder(), resources=Resources(workers=1))
    data = LabeledFeatures.from_store(store, dataset, ROWS[:3].repeat(2, 1))
    assert (data.name, data.encoder, data.classes) == ("tiny", "tiny", dataset.classes)
    assert data.split("val").labels.tolist() == [0, 1, 2]
    row = store.keys().index("red fox/val_0.jpg")
    np.testing.assert_array_equal(data.split("val").embeddings[1], store.embeddings()[row])
    assert {name: len(split) for name, split in data.splits.items()} == {
        "train": 6, "val": 3, "test": 6,
    }  # fmt: skip


def test_a_store_that_lacks_images_is_refused(tmp_path):
    draw_coop(tmp_path)
    dataset = load_card(parse_card("tiny", CARD), tmp_path)
    part = dataset.listing(["test"])
    store = embed(part, TinyEncoder(), resources=Resources(workers=1))
    with pytest.raises(InvalidStore, match=r"6 train images of tiny .* none of 6, such as tabby_"):
        LabeledFeatures.from_store(store, dataset, ROWS[:3].repeat(2, 1))
