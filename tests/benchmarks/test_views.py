"""The batches and views that pairs of encoders are compared on."""

import numpy as np
import pytest

from benchmarks.views import REGIMES, batches, measure, table, view_of
from transduce.benchmark.labeled_features import LabeledFeatures, Split

CLASSES = 12


def features(encoder, dimension, seed):
    random = np.random.default_rng(seed)
    texts = random.normal(size=(CLASSES, dimension)).astype(np.float32)
    labels = np.repeat(np.arange(CLASSES), 20)
    images = texts[labels] + random.normal(size=(len(labels), dimension)).astype(np.float32)
    names = tuple(f"class {number}" for number in range(CLASSES))
    split = Split.of(images, labels, CLASSES)
    return LabeledFeatures("drawn", encoder, names, texts, {"all": split})


@pytest.mark.parametrize("regime", REGIMES)
def test_batches_are_the_same_each_time_and_hold_what_the_regime_says(regime):
    labels = np.repeat(np.arange(CLASSES), 20)
    drawn, again = list(batches(labels, regime)), list(batches(labels, regime))
    count, images, _, most = REGIMES[regime]
    assert len(drawn) == count
    for rows, same in zip(drawn, again, strict=True):
        np.testing.assert_array_equal(rows, same)
        assert len(np.unique(rows)) == len(rows)
        if images:
            assert len(rows) <= images
            assert len(np.unique(labels[rows])) <= min(most, CLASSES)


def test_a_view_is_the_other_encoder_or_both_at_unit_length():
    names, eyes = features("a", 30, 0), features("b", 14, 1)
    assert view_of(names, names, "-") is None
    alone, beside = view_of(names, eyes, "alone"), view_of(names, eyes, "beside")
    assert (alone.shape, beside.shape) == ((240, 14), (240, 44))
    np.testing.assert_allclose(np.linalg.norm(beside, axis=1), 1.0, atol=1e-6)
    row = measure(names, eyes, "alone", "whole")
    key = {"names": "a", "eyes": "b", "form": "alone", "regime": "whole"}
    (line,) = table([{**key, **row}])
    assert line["whole"] == row["anchored"]
    assert 0.0 <= row["zero-shot"] <= 100.0
