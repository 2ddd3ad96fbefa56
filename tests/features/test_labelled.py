import numpy as np
import pytest

from transduce.errors import InvalidTask
from transduce.features.labelled import LabelledFeatures, Split

ROWS = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


def labelled(split, classes=("a", "b", "c"), texts=ROWS[:3]):
    return LabelledFeatures("mine", "any", classes, texts, {"test": split})


def test_rows_are_found_by_class_also_where_there_are_none():
    data = labelled(Split.of(ROWS, [1, 0, 1, 1, 0, 1], 3))
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
        labelled(split, classes=("a", "b"))
    with pytest.raises(InvalidTask, match=r"the test split of mine.*found 4 and 2"):
        labelled(split, texts=ROWS[:3, :2])
