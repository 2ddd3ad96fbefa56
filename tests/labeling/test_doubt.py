import numpy as np
import pytest

from transduce.labeling.doubt import LEAST, MOST, doubts, shifted

TOP = np.float32([[0.9, 0.05], [0.6, 0.3], [0.6, 0.1], [1.0, 0.0], [0.4, 0.4]])
ALL_CLASSES, FEW_CLASSES = {"prior_weight": 0.0}, {"prior_weight": 1.0}


def evidence(neighbors, image, text):
    parts = {"neighbors": neighbors, "image": image, "text": text}
    return {name: np.float32(part) for name, part in parts.items()}


def test_the_mean_is_what_the_probabilities_leave():
    assert doubts(TOP).mean() == pytest.approx(1 - TOP[:, 0].mean(), abs=1e-3)


def test_labels_far_ahead_and_likely_are_doubted_least():
    order = np.argsort(doubts(TOP))
    assert order.tolist() == [3, 0, 2, 1, 4]


def test_alike_images_with_other_labels_and_other_looks_raise_it():
    top = np.float32([[0.8, 0.1]] * 9)
    doubt = doubts(top, evidence([1, 0.2, *[1] * 7], [0, 0, -8, *[0] * 6], [0] * 9), ALL_CLASSES)
    assert doubt[1] > 2 * doubt[0]
    assert doubt[2] > 2 * doubt[0]


def test_where_counts_made_the_labels_names_count_instead():
    none, others = [0, 0, 0, 0, 0], [1, 0, 1, 0, 1]
    doubt = doubts(TOP, evidence(others, [0, -9, 0, -9, 0], none), FEW_CLASSES)
    np.testing.assert_allclose(doubt, doubts(TOP), atol=1e-6)
    top = np.float32([[0.8, 0.1]] * 2)
    doubt = doubts(top, evidence([1, 1], [0, 0], [0, -5]), FEW_CLASSES)
    assert doubt[1] > doubt[0]


def test_where_no_image_has_neighbors_of_its_class_they_say_nothing():
    top = np.float32([[0.8, 0.1]] * 10)
    lonely = [0.0] * 9 + [0.3]
    doubt = doubts(top, evidence(lonely, [0] * 10, [0] * 10), ALL_CLASSES)
    np.testing.assert_allclose(doubt, doubt[0], rtol=1e-3)


def test_nothing_is_certain():
    doubt = doubts(np.float32([[1, 0], [1, 0], [1, 0]]))
    assert (doubt >= LEAST / 2).all()
    assert (shifted(np.array([-500.0, 0.0, 500.0]), 0.5) <= MOST).all()


def test_one_image():
    assert doubts(np.float32([[0.7, 0.2]])) == pytest.approx(0.3, abs=1e-4)


@pytest.mark.parametrize("mean", [0.01, 0.2, 0.9])
def test_shifted_probabilities_have_the_mean_asked(mean):
    logits = np.random.default_rng(0).normal(-2, 2, 100)
    assert shifted(logits, mean).mean() == pytest.approx(mean, abs=1e-3)
