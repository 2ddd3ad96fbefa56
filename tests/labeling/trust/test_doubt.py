import numpy as np
import pytest

from transduce.labeling.trust.doubt import LEAST, MOST, doubts, shifted

TOP = np.float32([[0.9, 0.05], [0.6, 0.3], [0.6, 0.1], [1.0, 0.0], [0.4, 0.4]])
LABELS = np.arange(5)
ALL_CLASSES, FEW_CLASSES = {"prior_weight": 0.0}, {"prior_weight": 1.0}


def evidence(neighbors, text):
    return {"neighbors": np.float32(neighbors), "text": np.float32(text)}


def test_the_mean_is_what_the_probabilities_leave():
    assert doubts(LABELS, TOP).mean() == pytest.approx(1 - TOP[:, 0].mean(), abs=1e-3)


def test_labels_far_ahead_and_likely_are_doubted_least():
    order = np.argsort(doubts(LABELS, TOP))
    assert order.tolist() == [3, 0, 2, 1, 4]


def test_the_lead_counts_where_few_classes_are_present_and_the_probability_where_all_are():
    top = np.float32([[0.5, 0.05], [0.6, 0.4]])
    ahead, likely = doubts(LABELS[:2], top, estimates=FEW_CLASSES)
    assert ahead < likely
    ahead, likely = doubts(LABELS[:2], top, estimates=ALL_CLASSES)
    assert ahead > likely


def test_alike_images_with_other_labels_raise_it():
    top, labels = np.float32([[0.8, 0.1]] * 9), np.zeros(9, int)
    doubt = doubts(labels, top, evidence([1, 0.2, *[1] * 7], [-0.1] * 9), ALL_CLASSES)
    assert doubt[1] > 2 * doubt[0]


def test_they_say_less_where_counts_made_the_labels():
    top, labels = np.float32([[0.8, 0.1]] * 9), np.zeros(9, int)
    near = evidence([1, 0.2, *[1] * 7], [-0.1] * 9)
    few = doubts(labels, top, near, FEW_CLASSES)
    every = doubts(labels, top, near, ALL_CLASSES)
    assert 0 < few[1] - few[0] < every[1] - every[0]


def test_where_no_image_has_neighbors_of_its_class_they_say_nothing():
    top, labels = np.float32([[0.8, 0.1]] * 10), np.arange(10)
    doubt = doubts(labels, top, evidence([0.0] * 9 + [0.3], [-0.1] * 10), ALL_CLASSES)
    np.testing.assert_allclose(doubt, doubt[0], rtol=1e-3)


def test_names_against_a_label_raise_the_doubt_of_all_that_have_it():
    """Ten images of class 1, of which the names know two; the names know all of class 0."""
    top, labels = np.float32([[0.8, 0.1]] * 20), np.repeat([0, 1], 10)
    known = evidence([1] * 20, [-0.1] * 12 + [-4] * 8)
    doubt = doubts(labels, top, known, FEW_CLASSES)
    assert doubt[10] > 1.5 * doubt[0]
    assert doubt[12] > doubt[10]
    every = doubts(labels, top, known, ALL_CLASSES)
    np.testing.assert_allclose(every[10], every[0], rtol=1e-3)


def test_names_tell_the_likely_from_the_likelier():
    top, labels = np.float32([[0.8, 0.1]] * 2), np.array([0, 1])
    doubt = doubts(labels, top, evidence([1, 1], np.log([0.9, 0.99])), FEW_CLASSES)
    assert doubt[0] > 1.1 * doubt[1]


def test_any_evidence_gives_probabilities():
    extremes = evidence([0, 1, 0, 1, 0], [0, -np.inf, -80, -1e-12, -0.7])
    doubt = doubts(LABELS, TOP, extremes, {"prior_weight": 0.5})
    assert ((doubt > 0) & (doubt < 1)).all()


def test_nothing_is_certain():
    doubt = doubts(LABELS[:3], np.float32([[1, 0], [1, 0], [1, 0]]))
    assert (doubt >= LEAST / 2).all()
    assert (shifted(np.array([-500.0, 0.0, 500.0]), 0.5) <= MOST).all()


def test_one_image():
    assert doubts(LABELS[:1], np.float32([[0.7, 0.2]])) == pytest.approx(0.3, abs=1e-4)


@pytest.mark.parametrize("mean", [0.01, 0.2, 0.9])
def test_shifted_probabilities_have_the_mean_asked(mean):
    logits = np.random.default_rng(0).normal(-2, 2, 100)
    assert shifted(logits, mean).mean() == pytest.approx(mean, abs=1e-3)
