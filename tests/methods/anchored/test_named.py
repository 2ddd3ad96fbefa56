import numpy as np
import pytest

from transduce import Anchored, Task
from transduce.methods.anchored.named import LabelSums


@pytest.fixture
def rows():
    random = np.random.default_rng(0)
    return random.normal(size=(50, 8)).astype(np.float32), random.integers(0, 5, 50)


def test_sums_of_parts_are_those_of_the_whole(rows):
    images, labels = rows
    whole = LabelSums.of(labels, images)
    parts = LabelSums.of(labels[:7], images[:7]).plus(LabelSums.of(labels[7:], images[7:]))
    np.testing.assert_array_equal(parts.classes, whole.classes)
    np.testing.assert_array_equal(parts.counts, whole.counts)
    np.testing.assert_allclose(parts.sums, whole.sums, atol=1e-5)


def test_moved_sums_are_those_of_moved_rows(rows):
    images, labels = rows
    by = np.arange(8, dtype=np.float32)
    moved = LabelSums.of(labels, images).moved(by)
    np.testing.assert_allclose(moved.sums, LabelSums.of(labels, images + by).sums, atol=1e-4)


def test_the_lead_of_a_name_is_that_over_the_next_in_the_mean():
    images = np.float32([[4, 0, 1], [2, 0, 1], [0, 5, 9]])
    leads = LabelSums.of(np.array([0, 0, 1]), images).leads(np.eye(3, dtype=np.float32))
    np.testing.assert_allclose(leads[:2], [3 - 1, 5 - 9])
    assert leads[2] == np.inf


def test_one_name_has_no_rival(rows):
    images, labels = rows
    assert LabelSums.of(np.zeros_like(labels), images).leads(images[:1]).tolist() == [np.inf]


def task(n_features, **shots):
    """Four of sixteen classes, with more features than images or fewer."""
    random, names = np.random.default_rng(1), np.eye(16, n_features)
    truth = random.integers(0, 4, 60)
    images = names[truth] + random.normal(0, 0.2, (60, n_features))
    return Task.from_embeddings(images, names, space="embedding", **shots)


@pytest.mark.parametrize("n_features", [16, 100])
def test_anchored_says_it_of_every_image(n_features):
    batch, method = task(n_features), Anchored(text_scale=10)
    found = method.predict(batch)
    scores = 10 * batch.query @ batch.class_embeddings.T
    for k in np.unique(found.labels):
        own = found.labels == k
        mean = scores[own].mean(0)
        expected = mean[k] - np.delete(mean, k).max()
        np.testing.assert_allclose(found.evidence["named"][own], expected, atol=1e-4)


def test_names_of_classes_with_shots_are_known():
    batch = task(16, support=np.eye(16)[:1], support_labels=np.array([0]), partial_support=True)
    found = Anchored(text_scale=10).predict(batch)
    known = found.labels == 0
    assert np.isinf(found.evidence["named"][known]).all()
    assert np.isfinite(found.evidence["named"][~known]).all()
